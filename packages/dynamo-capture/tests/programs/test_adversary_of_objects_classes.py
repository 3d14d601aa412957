"""Programs about classes and what they answer, found by the adversary ``objects``: the smallest that differed."""

from __future__ import annotations

import pytest

START = """\
import array, collections, copy, enum, functools, logging, operator, types, typing, warnings
import torch
LOG = []
WATCHED = {"log": LOG}
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(6.) * 2,), lambda: (torch.arange(4.) - 1,)]
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
"""

PROGRAMS = {
    "modules, classes and constants change their class": """
class Lazy(types.ModuleType):
    extra = 5
    def __getattr__(self, name): return name
    @property
    def asked(self): return 4
class First(type): z = 1
class Second(type): z = 2
class C(metaclass=First): pass
class E(enum.Enum): a = 1
class Plain: z = 9
class Log(logging.Logger): z = 3
module, log = types.ModuleType("m"), logging.Logger("l")
def change():
    module.__class__, C.__class__, E.a.__class__, log.__class__ = Lazy, Second, Plain, Log
    return torch.ones(2)
CALLS = [lambda: (torch.ones(2),), lambda: (change(),)]
def program(x):
    kinds = [type(one).__name__ for one in (module, C, E.a, log)]
    return kinds, C.z, [getattr(module, name, "none") for name in ("extra", "other", "asked")], x + 1
""",
    "a module is given another class inside": """
class M(types.ModuleType): pass
m = M("m")
def program(x):
    name = type(m).__name__
    m.__class__ = type("Other", (type(m),), {"extra": len(name)})
    return name, m.extra, x + 1
""",
    "what super() binds of a class in C": """
class L(list):
    def append(self, item):
        found = super().append
        kind, name = type(found).__name__, found.__name__
        found(item)
        return found, kind, name, found.__self__ is self, hasattr(found, "__func__"), type(super().__len__).__name__
class E(ValueError):
    def __str__(self): return super().__str__.__name__ + super().__str__()
def program(x):
    items = L()
    return items.append(3), items, str(E("a")), type(super(L, items).pop).__name__, x + 1
""",
    "methods of type and object that are called with a class, a module or a constant": """
class Meta(type):
    def __setattr__(cls, name, value):
        LOG.append(name)
        super().__setattr__(name, value)
    def __delattr__(cls, name): super().__delattr__(name)
    def __getattribute__(cls, name): return super().__getattribute__(name)
    @property
    def count(cls):
        LOG.append("count")
        return len(LOG)
class C(metaclass=Meta): k = 0
class E(enum.Enum):
    a = 1
    @property
    def count(self):
        LOG.append("count of a")
        return len(LOG)
m = types.ModuleType("m")
m.v = 0
def program(x):
    type.__setattr__(C, "k", C.k + 1)
    types.ModuleType.__setattr__(m, "v", m.v + 1)
    object.__setattr__(E.a, "v", getattr(E.a, "v", 0) + 1)
    C.z = C.k
    got = C.count, type.__getattribute__(C, "count"), property.__get__(vars(Meta)["count"], C)
    of_a = E.a.count, object.__getattribute__(E.a, "count"), property.__get__(vars(E)["count"], E.a), E.a.v
    del C.z
    return got, of_a, m.v, hasattr(C, "count"), hasattr(C, "z"), types.ModuleType.__getattribute__(m, "v"), x + 1
""",
    "constants of classes that answer for attributes": """
class E(enum.Enum):
    a = 1
    def __getattr__(self, name):
        LOG.append(name)
        if name.startswith("_"): raise AttributeError(name)
        return "got " + name, len(LOG)
    @enum.property
    def own(self):
        LOG.append("own")
        return len(LOG)
class F(enum.Enum):
    a = 1
    def __getattribute__(self, name):
        LOG.append("F " + name)
        return super().__getattribute__(name)
class L(logging.Logger):
    def __getattr__(self, name): return name, len(LOG)
log = L("log")
def program(x):
    return E.a.own, E.a.other, E.a.value, hasattr(E.a, "more"), F.a.value, F.a.name, hasattr(F.a, "no"), log.name, log.more, x + 1
""",
    "classes and modules that answer for each attribute are asked for nothing more": """
class Meta(type):
    def __getattribute__(cls, name):
        LOG.append("class " + name)
        return super().__getattribute__(name)
class C(metaclass=Meta):
    k = 1
    def f(self): return self.k
class M(types.ModuleType):
    def __getattribute__(self, name):
        LOG.append("module " + name)
        return super().__getattribute__(name)
m, o = M("m"), C()
m.v = 1
def program(x):
    first = C.k, o.f(), type(o) is C, isinstance(o, C), m.v, isinstance(m, int), isinstance(C, int), hasattr(C, "z")
    return first, [C, m], C(), x + 1
""",
    "a view that autograd is told to follow": """
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return func(*(a.as_subclass(torch.Tensor) if isinstance(a, T) else a for a in args), **(kwargs or {}))
def program(x):
    t, y = x.as_subclass(T), x + 1
    t.requires_grad_()
    part = y[:2].requires_grad_()
    return t.requires_grad, y.requires_grad, part.requires_grad, y[:2].requires_grad, part.is_leaf, x.requires_grad
""",
    "lists as indices, which torch takes for tuples or masks": """
class L(list): pass
class S(enum.StrEnum): a = "x"
KEYS = [[torch.tensor(0)], [slice(0, 1)], [None], [..., 0], [[0, 1]], [0, 1], [True] * 6, L([0, 1]), range(2), S.a, b"a", int, {0: 1}]
def program(x):
    found = []
    for key in KEYS:
        with warnings.catch_warnings(record=True) as told:
            found.append((caught(lambda: x[key]), len(told)))
    return found, x + 1
""",
    "methods of a parent class that the class has otherwise": """
def program(x):
    one, two = collections.OrderedDict(a=1, b=2), collections.OrderedDict(b=2, a=1)
    sizes = tuple.__mul__(x.size(), 2), tuple.__add__(x.size(), (2,)), x.size() * 2, x.size() + (2,)
    return dict.__eq__(one, two), one == two, sizes, object.__repr__([])[:8], object.__str__((1,)), x + 1
""",
    "a copy asks what the class of the object answers": """
class P:
    def __getattribute__(self, name):
        LOG.append(name)
        return object.__getattribute__(self, name)
class Q:
    def __getattr__(self, name):
        LOG.append(name)
        raise AttributeError(name)
class R: pass
def program(x):
    made = [type(copy.copy(o)).__name__ for o in (P(), Q(), R())] + [type(copy.deepcopy(P())).__name__]
    print(end="")
    return made, "__slotnames__" in vars(R), x + 1
""",
    "super objects of before, and what Python uses for iteration": """
class A:
    a = 1
    def f(self): return "A.f"
class Meta(type):
    def __getattribute__(cls, name): return super().__getattribute__(name)
class B(A, metaclass=Meta):
    a = 2
    def __new__(cls):
        made = super().__new__(cls)
        LOG.append("new")
        return made
    def __getitem__(self, i):
        if i > 2: raise IndexError
        return i
b = B()
s = super(B, b)
def program(x):
    return s.a, s.f(), type(s).__name__, B().a, list(b), 2 in b, x + 1
""",
    "properties that keep what they compute": """
class Slots:
    __slots__ = ("a",)
    @functools.cached_property
    def c(self):
        LOG.append("computed")
        return 1
class Named:
    @functools.cached_property
    def c(self):
        LOG.append("computed")
        return len(LOG)
Named.d = vars(Named)["c"]
def program(x):
    o = Named()
    return caught(lambda: Slots().c), o.d, o.d, o.c, sorted(vars(o)), x + 1
""",
    "a subclass of tuple once is a tuple": """
class T(tuple): pass
t = T((1, 2))
def program(x):
    n = x.shape[0] - 5
    return t * n, t * 1, t + (), t[:], (t * 1) is t, type(t.__mul__(1)), x + 1
""",
    "a view of a leaf that was made here is written to": """
def program(x):
    t = x * 2
    t.requires_grad_()
    part, LOG[:] = t[1:], [1]
    def write(): part.mul_(2)
    def add(): t[0] += 1
    found = caught(write), caught(add)
    with torch.no_grad():
        t[0] = 5
    return found, t.detach(), x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
