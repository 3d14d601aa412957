"""Programs about objects, found by the adversary ``objects``: the smallest that differed."""

from __future__ import annotations

import pytest

START = """\
import collections, functools, operator, sys, traceback, types, typing
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

IDENTITY = """
VALUES = dict(partial=functools.partial(max, 3), method=LOG.append, tuple=(1, [2]), size=torch.Size([1, 2]), empty=())
METHOD = types.MethodType(lambda self: 1, 2)
class C: pass
for name, value in VALUES.items(): setattr(C, name, value)
C.bound = METHOD
o = C()
"""

SLOTS = """
class B: __slots__ = ("c", "__dict__")
class E(B): pass
o = E()
made = E
"""

SUBCLASS = """
class T(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    def __add__(self, other): return "own add"
    def sin(self): return "own sin"
    def __getitem__(self, key): return "own item"
    @property
    def shape(self):
        LOG.append("shape")
        return super().shape
class Mode(torch.overrides.TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return func(*args, **(kwargs or {}))
"""

PROGRAMS = {
    "one partial, tuple or method however it is read": IDENTITY
    + """
def program(x):
    again = C.partial is C.partial, o.tuple is C.tuple, o.size is VALUES["size"], C.method is LOG.append, tuple() is C.empty
    other = o.bound is C.bound, C.bound is METHOD, C.partial == VALUES["partial"], C.tuple in [o.tuple]
    return again, other, x + 1
""",
    "tuples that are one in one call only": """
PAIR = [(1, 2), (1, 2)]
def program(x):
    return PAIR[0] is PAIR[1], x + 1
def after(second):
    PAIR[1] = second
    return (torch.ones(2),)
CALLS = [lambda: after((1, [2][0])), lambda: after(PAIR[0]), lambda: after((1, [2][0]))]
""",
    "a slot is not in the dictionary": SLOTS
    + """
def program(x):
    new = made()
    new.c, new.d = 1, 2
    o.c = x
    return vars(new), sorted(vars(o)), "c" in vars(new), vars(new).get("c"), x + 1
""",
    "a slot goes before the dictionary": SLOTS
    + """
def program(x):
    o.__dict__["c"] = 3
    return hasattr(o, "c"), o.__dict__["c"], caught(lambda: o.c), x + 1
""",
    "deleting does not compute": """
class C:
    @functools.cached_property
    def c(self):
        LOG.append("computed")
        return 1
o = C()
def delete():
    del o.c
def program(x):
    return caught(delete), "c" in vars(o), x + 1
""",
    "items of a class that has one of two methods": """
class S:
    def __setitem__(self, key, value): pass
class D:
    def __delitem__(self, key): pass
class N: pass
def delete(o): del o[0]
def assign(o): o[0] = 1
def program(x):
    made = [caught(change, o) for o in (S(), D(), N(), (i for i in ()), (1,), {}.keys()) for change in (delete, assign)]
    return made, caught(lambda: (1,).__delitem__(0)), x + 1
""",
    "sequences and objects that are no numbers": """
class B:
    def __mul__(self, other): return NotImplemented
b = B()
def program(x):
    pairs = [("s", b), (b, "s"), ([1], b), ((1,), b)]
    return [caught(f, *pair) for pair in pairs for f in (operator.mul, operator.add, operator.sub)], x + 1
""",
    "divmod refuses in its own name": """
def program(x, n=3):
    pairs = [(caught, 2), (b"a", 2), ("%s", n), ([], n), (n, "a"), (7, 2), (7.5, n)]
    return [caught(divmod, *pair) for pair in pairs], x + 1
""",
    "comparing by a builtin method": """
class I(int): pass
def program(x):
    return I(4).__eq__(1), I(4).__eq__(4), I(4).__ne__(1), I(4).__eq__("a"), x + 1
""",
    "frames of a library": """
def program(x):
    try:
        typing.List[int].__contains__
    except AttributeError as error:
        return [entry.name for entry in traceback.extract_tb(error.__traceback__)], x + 1
""",
    "the dictionary of a known object": """
o = staticmethod(len)
def f(): pass
def program(x):
    o.__dict__["a"] = 1
    f.__dict__["b"] = 2
    return o.a, f.b, x + 1
""",
    "names of classes in messages": """
P = torch.nn.Parameter(torch.ones(2))
def program(x):
    return caught(torch.float32), caught(lambda: P % object), type(P.__len__).__name__, x + 1
""",
    "own members of a tensor class in a mode": SUBCLASS
    + """
def program(x):
    t = x.as_subclass(T)
    with Mode():
        return t + 1, t.sin(), t[0], t.cos()
""",
    "torch's methods read own members": SUBCLASS
    + """
def program(x):
    t = x.as_subclass(T)
    return t.__len__(), len(t), [v.dim() for v in t.unbind()]
""",
    "records that are kept in a global or a class": """
import logging
NAMES = []
class Noting(logging.Handler):
    seen = []
    def emit(self, record):
        NAMES.append(record.levelname)
        self.seen.append(record.getMessage())
logger = logging.Logger("noting")
logger.addHandler(Noting())
def program(x):
    logger.info("one")
    first = len(NAMES)
    logger.warning("two %d", 2)
    return x * 2, first, list(Noting.seen)
""",
    "an object that answers what class it has, and notes what is read of it": """
class P:
    def __getattribute__(self, name):
        LOG.append(name)
        return object.__getattribute__(self, name)
    a = 1
    p = property(lambda self: self.a)
class Q:
    __class__ = property(lambda self: LOG.append("class") or int)
o, q = P(), Q()
def program(x):
    made = P()
    made.b = o.a
    first = o.a, o.p, hasattr(o, "z"), made, isinstance(o, P), isinstance(made, int), isinstance(q, int), isinstance(q, Q)
    print(end="")
    return first, made.b, made.a, o == made, x + 1
""",
    "globals by name and by dictionary": """
K = 1
def program(x):
    global K
    K = 2
    first = globals()["K"]
    globals()["K"] = 3
    second = K
    globals()["G"] = 4
    return first, second, G, x + K
""",
    "iterators where they stand": """
S, T, D, O = {1, 5}, (1, "a"), collections.deque([1, 2]), collections.OrderedDict(a=1, b=2)
def after(iterator, steps):
    for _ in range(steps):
        next(iterator, None)
    return iterator
def program(x):
    kinds = S, T, D, O, [1, 2], frozenset([3]), {1: 2}, "ab", b"ab", range(3), O.values(), torch.ones(2).max(0), x
    made = [after(iter(kind), steps) for kind in kinds for steps in (0, 1, 9)]
    made += [after(reversed(kind), steps) for kind in kinds[1:5] for steps in (0, 1, 9)]
    return made, enumerate(T), zip(S, D), filter(None, T), x + 1
""",
    "what a container or a reduction cannot iterate": """
class One:
    def __iter__(self): return 3
class Two:
    def __iter__(self): raise TypeError("own")
class Some:
    def __iter__(self):
        for k in range(4):
            LOG.append(k)
            yield k
def program(x):
    found = [caught(operator.contains, o, 1) for o in (One(), Two(), Some())]
    return found, [caught(functools.reduce, operator.add, o) for o in (3, One(), [1, 2])], x + 1
""",
    "comparing classes made from containers and numbers": """
class S(set): pass
class L(list): pass
class I(int): pass
def program(x):
    pairs = [(2.5, S()), (S(), 2.5), (S(), {1}), (L(), 3), (3, L()), (L(), []), (S(), {1: 2}.keys()), (I(4), 2.5), (I(4), "a")]
    return [caught(f, *pair) for pair in pairs for f in (operator.lt, operator.ge, operator.eq)], x + 1
""",
    "reversed tensors": """
def program(x):
    return reversed(x), list(reversed(x)), caught(reversed, x.sum())
""",
    "members of enumerations and classes that compare in Python": """
import enum
class E(enum.Enum):
    a = 1
    def __eq__(self, other):
        LOG.append("eq")
        return other == 1
    def __lt__(self, other): return NotImplemented
    __hash__ = None
class Meta(type):
    def __eq__(cls, other):
        LOG.append("meta")
        return other == 3
    __hash__ = type.__hash__
class M(metaclass=Meta): pass
def program(x):
    made = E.a == 1, 1 == E.a, E.a in (2, 1), caught(operator.lt, E.a, 1), M in [3], 3 in [M], M == 3
    return made, dict.fromkeys == {}.fromkeys, x + 1
""",
    "weak proxies": """
import weakref
class K:
    a = 1
k = K()
o = weakref.proxy(k)
def program(x):
    return o.a, caught(lambda: o.__iter__()), caught(len, o), x + 1
""",
    "copying calls the class": """
class C:
    def __new__(cls):
        LOG.append("new")
        return super().__new__(cls)
o = C()
def program(x):
    import copy
    import threading
    return copy.copy(o), copy.deepcopy(o), caught(copy.copy, threading.Lock()), x + 1
""",
    "an object in the place of a tensor": """
class T:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None): return func.__name__
def program(x):
    return torch.numel(T()), torch.numel(x), x + 1
""",
    "containers that only Python compares": """
class E(list):
    def __iter__(self): return iter([1, 2])
CALLS = [lambda: (torch.ones(2), E([1, 2]), E([1, 2])), lambda: (torch.ones(2), E([1, 2]), E([1, 3]))]
D = {1: 2}
def program(x, o, other):
    return o == other, other != o, types.MappingProxyType(D) == D, D == types.MappingProxyType({}), x + 1
""",
    "texts of refused operators": """
class B(set): pass
o = types.SimpleNamespace()
class K:
    def __setitem__(self, key, value): pass
def delete(owner, key): del owner[key]
def set_start(part): part.start = 1
def program(x):
    made = caught(operator.ior, B(), None), {1}.__ior__(None), {1}.__or__("a")
    gone = [caught(delete, owner, key) for owner in (o, K(), object()) for key in (0, "a", None)]
    sizes = caught(operator.truediv, x, x.max(0)), caught(operator.add, x, x.shape)
    sizes += (caught(operator.lt, x, collections.OrderedDict(a=1)),)
    return made, gone, sizes, caught(set_start, slice(1)), x + 1
""",
    "operators on sizes": """
S = torch.Size([1, 2])
def program(x):
    other = caught(operator.add, S, ("a",)), caught(operator.add, S, [1])
    return S * 2, 0 * S, (1,) + S, S + (1,), x.shape * 2, (1,) + x.shape, other, x + 1
""",
    "each slice is an object": """
class K:
    def __setitem__(self, key, value): LOG.append(key)
o = K()
def program(x):
    o[1:] = 1
    one = slice(1, 2)
    return one is one, one == slice(1, 2), one.indices(7), str(one), [1, 2, 3][one], x + 1
""",
    "the class of an object is asked for each time": """
class P:
    def __getattribute__(self, name): LOG.append(name)
def program(x):
    o = P()
    return torch.is_tensor(o), isinstance(o, torch.Tensor), torch.is_tensor(x), x + 1
""",
    "torch's own functions read what a class of tensors defines": """
class T(torch.Tensor):
    @property
    def shape(self):
        LOG.append("shape")
        return (7, 7)
class U(T):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})
CALLS = [lambda: (torch.ones(2).as_subclass(T), torch.ones(2).as_subclass(U))]
def program(t, u):
    return t.__len__(), len(u), u.__len__(), len(t)
""",
    "reasons to compile again ask no object": """
class T(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    def size(self, *args):
        LOG.append("size")
        return super().size(*args)
class K:
    def __repr__(self):
        LOG.append("repr")
        return "K"
CALLS = [
    lambda: (torch.ones(2, 3).as_subclass(T), K()),
    lambda: (torch.ones(2, 1), [K()]),
    lambda: (torch.ones(2, 3).as_subclass(T), {"a": K()}),
]
def program(t, k):
    return t * 2, type(k)
""",
    "operators in place give the object": """
class L(list): pass
class S(set): pass
class D(dict): pass
def program(x):
    l, s, d = made = L([1]), S([1]), D(a=1)
    l += l
    l *= 2
    s |= {3}
    s -= s
    d |= {3: 4}
    return l is made[0], s is made[1], d is made[2], made, type(l), type(d), x + 1
""",
    "finalizers": """
import weakref
class K: pass
def program(x):
    k = K()
    end = weakref.finalize(k, LOG.append, "end")
    end.atexit = False
    y = x + 1
    LOG.append(end.alive)
    del k
    LOG.append((end.alive, end.peek()))
    other = weakref.finalize(LOG.append, LOG.append, "other")
    return other(), other.alive, other(), y
""",
    "what the class has after the object's own is deleted": """
class B:
    a = None
o = B()
o.a = 3
def program(x):
    del o.a
    found = hasattr(o, "a"), o.a
    o.a = 4
    return found, o.a, x + 1
""",
    "groups that are raised again keep their line": """
def where(error):
    return [entry.lineno for entry in traceback.extract_tb(error.__traceback__)]
def program(x):
    try:
        try:
            raise ExceptionGroup("g", [ValueError(1), KeyError(2)])
        except* ValueError as g:
            LOG.append(len(g.exceptions))
    except Exception as e:
        LOG.append(where(e))
    return x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
