"""Changes to objects and their classes: attributes, properties, methods, metaclasses, enums, dataclasses."""

from __future__ import annotations

STATES = {
    "an attribute": (
        """
        class C: pass
        c = C(); c.k = 2; c.unread = 1
        def f(x): return x * c.k
        """,
        [
            "c.k = 3",
            "c.k = 2.0; c.k = 2.5",
            "del c.k",
            "c.__dict__ = {'k': 9}",
            "c = C(); c.k = 4",
            "C.__getattribute__ = lambda self, name: 11",
            "C.k = property(lambda self: 6)",
            "c.__class__ = type('D', (), {'k': property(lambda self: 8)})",
        ],
        [
            "c.unread = 2",
            "c.new = 1",
            "c.k = int('2')",
            "del c.unread",
            "c = C(); c.k = 2",
            "C.other = 1",
            "c.__dict__ = {'k': 2}",
        ],
    ),
    "a class attribute": (
        """
        class A: k = 2; unread = 1
        class B(A): pass
        b = B()
        def f(x): return x * b.k
        """,
        [
            "A.k = 3",
            "B.k = 4",
            "b.k = 5",
            "del A.k",
            "A.k = property(lambda self: 6)",
            "class Z: k = 9\nB.__bases__ = (Z,)",
            "b = type('O', (), {'k': 7})()",
            "A.__getattribute__ = lambda self, name: 12",
            "class D:\n    def __get__(self, o, c): return 13\nA.k = D()",
        ],
        ["A.unread = 2", "B.new = 3", "b.new = 4", "A.k = int('2')", "b = B()"],
    ),
    "methods": (
        """
        class A:
            def g(self, x): return x + 1
            def h(self, x): return x
        class B(A):
            def g(self, x): return super().g(x) * 2
        b = B()
        def f(x): return b.g(x)
        """,
        [
            "A.g = lambda self, x: x - 1",
            "B.g = A.h",
            "b.g = lambda x: x * 7",
            "del B.g",
            "A.g.__code__ = A.h.__code__",
            "B.g.__code__ = (lambda __class__: lambda self, x: (__class__, x * 9)[1])(0).__code__",
            "b.__class__ = A",
            "A.g = staticmethod(lambda x: x * 3)",
        ],
        ["A.h = None", "b.k = 1", "B.k = 1", "A.g.note = 1", "b = B()"],
    ),
    "static and class methods": (
        """
        class A:
            k = 2
            @staticmethod
            def s(x): return x + 1
            @classmethod
            def c(cls, x): return x * cls.k
        def f(x): return A.s(x) + A.c(x)
        """,
        [
            "A.s = staticmethod(lambda x: x - 1)",
            "A.c = classmethod(lambda cls, x: x)",
            "A.k = 3",
            "A.s = lambda x: x * 5",
            "A.c.__func__.__code__ = (lambda cls, x: x * 4).__code__",
            "class A(A): k = 9",
        ],
        ["A.z = 1", "A.k = int('2')"],
    ),
    "properties": (
        """
        class A:
            def __init__(self): self._k = 2
            @property
            def k(self): return self._k
        a = A()
        def f(x): return x * a.k
        """,
        [
            "a._k = 3",
            "A.k = property(lambda self: 5)",
            "A.k = 6",
            "del A.k",
            "del a._k",
            "A.k.fget.__code__ = (lambda self: 8).__code__",
        ],
        ["a._z = 1", "a._k = int('2')", "vars(a)['k'] = 9"],
    ),
    "descriptors": (
        """
        class D:
            k = 2
            def __get__(self, obj, cls): return self.k + obj.j
        class A:
            d = D()
            def __init__(self): self.j = 1
        a = A()
        def f(x): return x * a.d
        """,
        [
            "D.k = 3",
            "A.__dict__['d'].k = 4",
            "a.j = 5",
            "a.d = 6",
            "D.__get__ = lambda self, o, c: 7",
            "A.d = 8",
            "D.__set__ = lambda self, o, v: None; D.__get__ = lambda s, o, c: 3.5",
        ],
        ["a.z = 1", "D.z = 1", "a.j = int('1')"],
    ),
    "getattr": (
        """
        class A:
            def __getattr__(self, name): return self.table[name]
            def __init__(self): self.table = {"k": 2}
        a = A()
        def f(x): return x * a.k
        """,
        [
            "a.k = 3",
            "A.k = 4",
            "a.table['k'] = 5",
            "A.__getattr__ = lambda self, name: 6",
            "a.table = {'k': 7}",
            "del A.__getattr__",
        ],
        ["a.z = 1", "a.table['k'] = int('2')", "a.table['z'] = 1"],
    ),
    "presence of attributes": (
        """
        class C: pass
        c = C()
        def f(x):
            if hasattr(c, "k"): return x * 2
            return x + getattr(c, "bias", 0)
        """,
        [
            "c.k = 1",
            "C.k = 1",
            "c.bias = 3",
            "C.bias = 4",
            "C.__getattr__ = lambda self, name: 5",
            "c.__class__ = type('D', (), {'k': 1})",
        ],
        ["c.z = 1", "C.z = 1"],
    ),
    "slots": (
        """
        class S:
            __slots__ = ("k", "z")
        s = S(); s.k = 2
        def f(x): return x * s.k + (1 if hasattr(s, "z") else 0)
        """,
        ["s.k = 3", "del s.k", "s.z = 1", "s = S(); s.k = 5", "s.k = torch.ones(4)"],
        ["s.k = int('2')", "t = S()"],
    ),
    "special methods": (
        """
        class V:
            def __init__(self, k): self.k = k
            def __add__(self, o): return V(self.k + o.k)
            def __len__(self): return self.k
            def __call__(self, x): return x * self.k
            def __getitem__(self, i): return self.k + i
            def __eq__(self, o): return self.k == o.k
            def __bool__(self): return self.k > 0
        a, b = V(1), V(2)
        def f(x):
            s = a + b
            return s(x) + len(s) + s[1] + (10 if a == b else 0) + (100 if a else 0)
        """,
        [
            "a.k = 2",
            "V.__add__ = lambda s, o: o",
            "V.__len__ = lambda s: 9",
            "V.__call__ = lambda s, x: x",
            "V.__getitem__ = lambda s, i: 0",
            "V.__eq__ = lambda s, o: True",
            "V.__bool__ = lambda s: False",
            "a.k = -1",
            "V.__init__ = lambda self, k: setattr(self, 'k', 5)",
            "V.__new__ = lambda cls, k: object.__new__(W)\nclass W(V):\n    def __call__(self, x): return x * 50",
        ],
        ["V.__sub__ = None", "a.z = 1", "V.z = 1"],
    ),
    "a metaclass": (
        """
        class M(type):
            k = 2
            def g(cls, x): return x + 1
        class A(metaclass=M): pass
        def f(x): return A.g(x) * A.k
        """,
        [
            "M.k = 3",
            "M.g = lambda cls, x: x - 1",
            "A.k = 4",
            "A.g = lambda x: x * 9",
            "M.k = property(lambda cls: 7)",
        ],
        ["M.z = 1", "A.z = 1"],
    ),
    "enums": (
        """
        import enum
        class E(enum.Enum):
            A, B = 1, 2
        e = E.A
        def f(x): return x * (2 if e is E.A else 3) + E.B.value
        """,
        ["e = E.B", "class E(enum.Enum):\n    A, B = 5, 6\ne = E.A", "E.B._value_ = 7", "e = 1"],
        ["e = E['A']", "other = E.B"],
    ),
    "dataclasses": (
        """
        import dataclasses
        @dataclasses.dataclass
        class D:
            k: int = 2
            z: int = 0
            items: list = dataclasses.field(default_factory=lambda: [1])
        d = D()
        def f(x): return x * d.k + d.items[0]
        """,
        ["d.k = 3", "d = D(k=4)", "d.items[0] = 5", "d.items = [6]", "d = dataclasses.replace(d, k=9)"],
        ["d.z = 1", "d = D()", "d = dataclasses.replace(d)", "d.items.append(1); d.items.pop()"],
    ),
    "an object made while tracing": (
        """
        class P:
            k = 2
            def __init__(self, x): self.x = x
            def run(self): return self.x * self.k
        def f(x): return P(x).run()
        """,
        [
            "P.k = 3",
            "P.run = lambda self: self.x",
            "P.__init__ = lambda self, x: setattr(self, 'x', x + 1)",
            "class P(P): k = 9",
            "P.k = property(lambda self: 4)",
            "P.__setattr__ = lambda self, n, v: object.__setattr__(self, n, v * 2)",
            "P.x = property(lambda self: torch.ones(4), lambda self, v: None)",
        ],
        ["P.z = 1", "P.k = int('2')"],
    ),
    "isinstance and type": (
        """
        class A: pass
        class B(A): pass
        a = B()
        def f(x):
            x = x * (2 if isinstance(a, A) else 3)
            return x + (1 if type(a) is B else 0) + (5 if issubclass(B, A) else 0)
        """,
        [
            "a = A()",
            "a = 1",
            "class C: pass\na = C()",
            "a.__class__ = A",
            "B = A",
            "class Z: pass\nclass Y(Z): pass\nB.__bases__ = (Z,)",
        ],
        ["a = B()", "a.k = 1"],
    ),
    "aliases": (
        """
        class C: pass
        a = C(); a.k = 1
        b = a
        def f(x):
            a.k = 5
            r = x * b.k
            a.k = 1
            return r
        """,
        ["b = C(); b.k = 2", "a = C(); a.k = 1; b.k = 3"],
        ["a.z = 1", "a = C(); a.k = 1; b = a"],
    ),
    "objects that were two": (
        """
        class C: pass
        a, b = C(), C()
        a.k = b.k = 1
        def f(x):
            a.k = 5
            r = x * b.k
            a.k = 1
            return r
        """,
        ["b = a", "a = b", "b.k = 7"],
        ["a.z = 1", "b = C(); b.k = 1"],
    ),
    "identity": (
        """
        marker = object()
        given = marker
        def f(x): return x * (2 if given is marker else 3)
        """,
        ["given = object()", "marker = object()", "given = None"],
        ["z = object()", "y = 1"],
    ),
    "weak references": (
        """
        import weakref
        class C: pass
        c = C(); c.k = 2
        r = weakref.ref(c)
        def f(x):
            found = r()
            return x if found is None else x * found.k
        """,
        ["import gc\ndel c\ngc.collect()", "c.k = 3", "d = C(); d.k = 5; r = weakref.ref(d)"],
        ["c.z = 1"],
    ),
    "a subclass of dict with attributes": (
        """
        class Config(dict):
            def __getattr__(self, name): return self[name]
        cfg = Config(k=2, z=1)
        def f(x): return x * cfg.k + len(cfg)
        """,
        [
            "cfg.update(k=3)",
            "cfg['new'] = 1",
            "cfg['k'] = 4",
            "Config.__getattr__ = lambda s, n: 9",
            "cfg = Config(k=5, z=1)",
            "Config.k = 8",
        ],
        ["cfg['z'] = 2", "cfg['k'] = int('2')"],
    ),
    "namedtuples": (
        """
        import collections
        P = collections.namedtuple("P", "k z")
        p = P(2, 1)
        def f(x): return x * p.k
        """,
        [
            "p = P(3, 1)",
            "p = (2, 1)",
            "p = collections.namedtuple('Q', 'z k')(2, 9)",
            "P.k = property(lambda self: 7)",
        ],
        ["p = P(2, 5)", "p = P(int('2'), 1)"],
    ),
    "SimpleNamespace": (
        """
        from types import SimpleNamespace
        n = SimpleNamespace(k=2, z=1)
        def f(x): return x * n.k
        """,
        ["n.k = 3", "n = SimpleNamespace(k=4)", "del n.k", "n.__dict__['k'] = 6"],
        ["n.z = 2", "n.new = 1", "n = SimpleNamespace(k=2)"],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()
