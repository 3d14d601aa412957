"""Changes to what is known by identity: classes' and modules' namespaces, read-only mappings, registrations."""

from __future__ import annotations

STATES = {
    "a class's namespace": (
        """
        class A: k = 2; unread = 1
        class B(A): pass
        def f(x): return x * A.__dict__["k"] + vars(B).get("z", 0) + ("w" in B.__dict__)
        """,
        ["A.k = 3", "B.z = 4", "B.w = 0", "del A.k"],
        ["A.unread = 2", "A.z = 3", "B.k = 3"],
    ),
    "all of a class's namespace": (
        """
        import types
        class A:
            k = 2
            def m(self): return 1
        def f(x): return x + 1, [n for n, v in vars(A).items() if isinstance(v, types.FunctionType)]
        """,
        ["A.m2 = lambda self: 2", "del A.m", "A.k = lambda self: 1"],
        [],
    ),
    "a read-only mapping": (
        """
        def args(): return (torch.ones(3),)
        import types
        table = {"a": 1, "t": torch.ones(3)}
        shown = types.MappingProxyType(table)
        def f(x): return x * shown["a"] + shown["t"] + shown.get("z", 0), len(shown)
        """,
        [
            "table['a'] = 5",
            "table['z'] = 5",
            "table['t'] = torch.zeros(3)",
            "shown = types.MappingProxyType({'a': 1, 't': torch.ones(3), 'z': 1})",
        ],
        ["table['t'] = torch.ones(3)"],
    ),
    "a library module's names": (
        """
        import math
        def f(x): return x * getattr(math, "unheard_of", 2)
        def restore(): del math.unheard_of
        """,
        ["math.unheard_of = 3"],
        [],
    ),
    "names and texts": (
        """
        class A: "text"
        def g(): "text"
        def f(x): return x + 1, A.__doc__, A.__module__, g.__doc__, g.__module__
        """,
        ["A.__doc__ = 'other'", "A.__module__ = 'm'", "g.__doc__ = None", "g.__module__ = 'm'"],
        ["A.other = 1", "g.other = 1"],
    ),
    "parameters": (
        """
        import functools, inspect
        def g(a, b=2): pass
        def f(x): return x + inspect.signature(g).parameters["b"].default, inspect.getfullargspec(g).args
        """,
        ["g.__defaults__ = (3,)", "g.__code__ = (lambda c, b=1: 0).__code__"],
        ["g.other = 1"],
    ),
    "attributes of members and loggers": (
        """
        import enum, logging
        class E(enum.Enum): A = 1
        logger = logging.getLogger("of the program")
        def f(x): return x * getattr(E.A, "more", 2) + E.A.value, logger.level
        """,
        ["E.A.more = 3", "E.A._value_ = 2", "logger.level = 10"],
        [],
    ),
    "registrations": (
        """
        import abc, collections.abc
        class Base(abc.ABC): pass
        class Sized(abc.ABC):
            @classmethod
            def __subclasshook__(cls, other): return True if "z" in vars(other) else NotImplemented
        class A: pass
        a = A()
        Iterable = collections.abc.Iterable
        def f(x): return x + isinstance(a, Base) + 2 * isinstance(a, Sized) + 4 * issubclass(A, Iterable)
        """,
        ["Base.register(A)", "A.z = 1; Base.register(int)", "collections.abc.Iterable.register(A)"],
        ["A.other = 1", "Base.register(int)"],
    ),
    "a metaclass that decides": (
        """
        flag = 1
        class M(type):
            def __instancecheck__(cls, value): return value.k == flag
            def __subclasscheck__(cls, other): return flag == 3
        class Base(metaclass=M): pass
        class A: k = 1
        a = A()
        def f(x): return x + isinstance(a, Base) + 2 * issubclass(A, Base)
        """,
        ["flag = 2", "A.k = 2", "a.k = 3", "flag = 3"],
        ["A.other = 1"],
    ),
    "a protocol": (
        """
        import typing
        @typing.runtime_checkable
        class P(typing.Protocol):
            k: int
        class A: pass
        a = A()
        def f(x): return x + isinstance(a, P)
        """,
        ["a.k = 2", "A.k = 2"],
        ["a.j = 1"],
    ),
    "the recursion limit": (
        """
        import sys
        limit = sys.getrecursionlimit()
        def restore(): sys.setrecursionlimit(limit)
        def f(x): return x + 1, sys.getrecursionlimit()
        """,
        ["sys.setrecursionlimit(sys.getrecursionlimit() + 1)"],
        [],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()
