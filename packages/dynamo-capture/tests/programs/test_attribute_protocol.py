"""What Python's own order of looking attributes up gives, for every kind of object."""

from __future__ import annotations

import pytest

START = """\
import collections, functools, operator, sys, traceback
import numpy as np
import torch
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
"""

METHODS = """\
import torch, functools, operator
class C:
    def m(self, i, j=2): return i + j
    c = functools.partialmethod(m, 4)
o = C()
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
"""

GETTERS = """\
import torch, operator
class C:
    def __init__(self, a): self.a = a
    @property
    def p(self): return self.a + 1
    def m(self, k, *, z=1): return self.a * k + z
G = operator.itemgetter(1)
A = operator.attrgetter("p")
M = operator.methodcaller("m", 3, z=5)
def fn(): pass
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
"""

SUPER = """\
import torch, functools
class D:
    def __get__(self, obj, cls): return ("D", obj is None, cls.__name__)
class A:
    __slots__ = ("s", "__dict__")
    d = D()
    plain = [1]
    @functools.cached_property
    def c(self): return 3
    def __init__(self): self.s = 4
class B(A):
    def go(self): return super().d, super().s, super().c, super().plain, super().__dict__, super().__class__.__name__
    @classmethod
    def kgo(cls): return super().d, super().plain, type(super().s).__name__
class E(ValueError):
    @property
    def args(self): return ("own",) + super().args
class T(torch.Tensor):
    @property
    def shape(self): return ("own", super().shape)
    @property
    def T(self): return super().T + 1
b = B()
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
"""

OPERATORS = """\
import torch
class A:
    def __radd__(self, o): return ("A.radd", type(o).__name__)
    def __add__(self, o): return NotImplemented if isinstance(o, str) else ("A.add", type(o).__name__)
class B(A): pass
class C(A):
    def __radd__(self, o): return ("C.radd", type(o).__name__)
    def __iadd__(self, o): return ("C.iadd", type(o).__name__)
class R:
    def __radd__(self, o): return "R.radd"
class I(A):
    def __iadd__(self, o): return NotImplemented
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
"""

PROGRAMS = {
    "attributes of a partial function made inside": START
    + """\
def program(x):
    p = functools.partial(torch.add, 1)
    return [n for n in dir(functools.partial) if hasattr(p, n)], x + 1
""",
    "special names of a partial function": START
    + """\
P = functools.partial(torch.add, 1)
def program(x):
    return [n for n in ("__call__","__reduce__","__class__","__doc__","__dict__","__get__","__len__","func","foo","__name__","__hash__","__eq__","__module__") if hasattr(P, n)], x + 1
""",
    "special names of an array": START
    + """\
def program(x):
    a = x.numpy()
    return hasattr(a, "__call__"), hasattr(a, "__len__"), hasattr(a, "foo"), callable(a), hasattr(np.ones(3), "__call__"), x+1
""",
    "descriptor with only a setter, made inside": START
    + """\
class D:
    def __init__(self, n): self.n = n
    def __set__(self, obj, v): obj.__dict__[self.n] = v * 2
class C:
    a = D("a")
def program(x):
    c = C()
    before = c.a is C.__dict__["a"]
    c.a = x
    return c.a, before
""",
    "descriptor with only a setter, made outside": START
    + """\
class D:
    def __init__(self, n): self.n = n
    def __set__(self, obj, v): obj.__dict__[self.n] = v * 2
class C:
    a = D("a")
c = C()
def program(x):
    c.a = x
    return c.a + 1
""",
    "classes of descriptors made inside": START
    + """\
def f(): return 1
def program(x):
    return type(classmethod(f)).__name__, isinstance(staticmethod(f), staticmethod), type(property(f)).__name__, x+1
""",
    "switch of tensor classes": START
    + """\
def program(x):
    a = torch._C._is_torch_function_enabled()
    with torch._C.DisableTorchFunctionSubclass():
        b = torch._C._is_torch_function_enabled()
    return x + 1, a, b
""",
    "cached function": START
    + """\
@functools.lru_cache
def cached(n): return n + 1
def program(x):
    return x * cached(3), 1
WATCHED = {}
def info(): return cached.cache_info()
""",
    "metaclass with a property": START
    + """\
class M(type):
    @property
    def p(cls): return "meta"
    def m(cls): return cls.__name__
    def __getattr__(cls, n):
        if n.startswith("dyn"): return n
        raise AttributeError(n)
    shadow = 7
class C(metaclass=M):
    p = "own"
    m2 = M.m
    shadow = 8
    x: int
class D(C): pass
def program(x):
    return C.p, D.p, C.m(), C.dyn_a, hasattr(C, "nope"), D.shadow, D.__annotations__, C.__annotations__, type(D).__name__, x + 1, D.__doc__, C.__abstractmethods__ if hasattr(C, "__abstractmethods__") else None
""",
    "metaclass with __getattribute__": START
    + """\
class M(type):
    def __getattribute__(cls, n):
        if n == "z": return 5
        return super().__getattribute__(n)
class C(metaclass=M):
    w = 3
def program(x):
    return C.z, C.w, x + 1, hasattr(C, "k"), C().w
""",
    "methods of a class made inside": START
    + """\
def program(x):
    class A:
        def f(self): return 1
    a = A()
    m = a.f
    return m.__class__.__name__, m.__func__ is A.f, m.__self__ is a, hasattr(m, "__call__"), hasattr(m, "zork"), m.__name__, x + 1
""",
    "what has which special names": START
    + """\
class A:
    def f(self):
        "doc"
        return 1
a = A()
def program(x):
    m = a.f
    def g(): pass
    g.k = 3
    it = iter([1, 2])
    gen = (i for i in range(3))
    return m.__class__.__name__, m.__func__ is A.f, m.__self__ is a, hasattr(m, "__call__"), hasattr(m, "zork"), m.__name__, m.__doc__, hasattr(g, "__call__"), hasattr(g, "__get__"), hasattr(g,"k"), hasattr(it, "__next__"), hasattr(it, "__len__"), hasattr(gen, "send"), hasattr(gen, "gi_frame"), gen.__name__, [].__len__(), {}.__contains__(3), x + 1, hasattr({}, "default_factory"), hasattr([], "maxlen"), hasattr(x, "__call__"), hasattr(x, "__len__"), hasattr(x.shape, "numel"), hasattr(3, "bit_length"), hasattr(x.shape[0], "bit_length"), hasattr(x.shape[0], "foo"), hasattr(slice(1,2), "start"), hasattr(super, "a")
""",
    "static and class methods made inside": START
    + """\
def program(x):
    def g(self): return 3
    s = staticmethod(g)
    c = classmethod(g)
    p = property(g)
    return type(s).__name__, type(c).__name__, type(p).__name__, s(1), callable(s), callable(c), callable(p), s.__func__ is g, c.__func__ is g, p.fget is g, p.fset, s.__name__, hasattr(s, "__get__"), hasattr(c, "__set__"), hasattr(p, "__set__"), x + 1
""",
    "descriptors that are returned": START
    + """\
def program(x):
    def g(self): return 3
    return staticmethod(g), property(g), x + 1
CALLS = [lambda: (torch.ones(3),)]
""",
    "partial functions with attributes": START
    + """\
P = functools.partial(max, 1)
P.tag = 5
def program(x):
    P.other = x.shape[0]
    return P.tag, hasattr(P, "nope"), x + 1, P.other, vars(P)
WATCHED = {"p": [P]}
""",
    "attributes of an ordered dict": START
    + """\
o = collections.OrderedDict(a=1)
def program(x):
    o.d = x.shape[0]
    return o.d, hasattr(o, "k"), x + 1, o
WATCHED = {"p": [o]}
""",
    "attributes of functions made in a loop": START
    + """\
def make(k):
    def g(): return k
    g.tag = k
    return g
fs = [make(1), make(2)]
def program(x):
    r = [f() for f in fs], fs[0].tag, hasattr(fs[1], "tag"), hasattr(fs[1], "nope")
    fs[0].tag += 1
    return r, x + 1, fs[0].tag
WATCHED = {"p": [fs]}
""",
    "containers that iterate in their own way": START
    + """\
class L(list):
    def __iter__(self):
        LOG.append("iter"); return iter([9])
    def __len__(self): LOG.append("len"); return 5
LOG = []
o = L([1, 2])
d = type("DD", (dict,), {"__len__": lambda s: 7})(a=1)
def program(x):
    return [v for v in o], len(o), o[0], x + 1, len(d), d["a"], list(d)
WATCHED = {"l": LOG}
""",
    "partial method": METHODS
    + """\
def program(x):
    p = o.c
    return p, vars(p), x + 1
""",
    "methods are made anew": METHODS
    + """\
def program(x):
    return o.m is o.m, o.c is o.c, C.m is C.m, [].append is [].append, x + 1
""",
    "itemgetter": METHODS
    + """\
def program(x):
    g = operator.itemgetter(1)
    return g, g([1, 2]), type(g).__name__, x + 1, sorted([[1, 2], [2, 1]], key=g), sorted([(x, 2), (x, 1)], key=operator.itemgetter(1))
""",
    "kinds of methods": METHODS
    + """\
def program(x):
    l = [3]
    return type(l.append).__name__, type(l.__len__).__name__, type((3).__add__).__name__, type("a".join).__name__, type(o.m).__name__, l.__eq__(1), (3).__eq__("a"), iter(l).__eq__(2), (1,).__eq__([1]), l.__ne__(2), x + 1
""",
    "round of a tensor": METHODS
    + """\
def program(x):
    try: return round(x), 1
    except TypeError as e: return str(e), x + 1
""",
    "divmod of a tensor": METHODS
    + """\
def program(x):
    try: return divmod(x, 2), 1
    except TypeError as e: return str(e), x + 1
""",
    "getters of operator": GETTERS
    + """\
def program(x):
    c = C(x)
    return G([1, x]), A(c), M(c), operator.attrgetter("a", "p")(c), operator.methodcaller("m", 2)(c), sorted([(2, x), (1, x)], key=operator.itemgetter(0)), x.nbytes
""",
    "a getter that finds nothing": GETTERS
    + """\
def program(x):
    try: return operator.attrgetter("nope")(fn)
    except AttributeError as e: return str(e), x + 1
""",
    "super reads every kind": SUPER
    + """\
def program(x):
    return b.go(), B.kgo(), B().go(), x + 1
""",
    "super reads an exception's arguments": SUPER
    + """\
def program(x):
    try: raise E(1)
    except E as e: return e.args, x + 1
""",
    "super reads a tensor's shape": SUPER
    + """\
def program(x):
    return x.shape, x.T, (x + 1).shape
CALLS = [lambda: (torch.Tensor._make_subclass(T, torch.ones(2, 3)),), lambda: (torch.Tensor._make_subclass(T, torch.ones(2, 4)),)]
""",
    "which operand is asked first": OPERATORS
    + """\
def told(f):
    try: return f()
    except TypeError as e: return str(e)
def program(x):
    a, b, c, r = A(), B(), C(), R()
    d = C(); d += C()
    e = A(); e += C()
    f = C(); f += A()
    g = I(); g += c
    return a + b, a + c, b + a, c + a, told(lambda: r + r), a + r, told(lambda: a + "s"), "s" + a, d, e, f, g, x + 1
""",
    "modes are asked about bool, int and float": OPERATORS
    + """\
class M(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        r = func(*args, **(kwargs or {}))
        LOG.append((func.__name__, type(r).__name__))
        return r
LOG = []
def program(x):
    with M():
        a = bool(x.sum() > 0), int(x.sum()), float(x.sum())
    return a, x + 1
WATCHED = {"log": LOG}
""",
    "known objects get attributes": """\
import threading, torch, typing
U, LOCAL = typing.NewType("U", int), threading.local()
CALLS = [lambda n=n: (torch.ones(n), n) for n in (2, 3, 4, 5)]
def program(x, n):
    held = typing.Optional[int], typing.List[str], U
    for one in held:
        object.__setattr__(one, "noted", n)
    try:
        object.__setattr__(LOCAL, "noted", n)
    except TypeError as error:
        refused = str(error)
    return [one.noted for one in held], refused, x + 1
""",
    "what is made of known objects is another one each time": """\
import torch
CALLS = [lambda n=n: (torch.ones(n),) for n in (2, 3, 4)]
def program(x):
    device, known, pair = x.device, slice(3).indices(5), (1, 2)
    part = pair[:1]
    same = x.device is device, device is device, pair[:] is pair, slice(3).indices(5) is known
    pairs = divmod(7, 2), divmod(7, 2), "a,b".partition(","), "a,b".partition(",")
    return device, x.device, x.device == device, known, slice(3).indices(5), part, pair[:1], same, pairs, x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(PROGRAMS[name])
