"""Programs about special methods, texts, indices and iterators, found by the adversary ``objects``."""

from __future__ import annotations

import pytest

START = """\
import collections, copy, functools, operator, weakref
import numpy
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
    "special methods that are None": """
class Sequence:
    __reversed__ = __iter__ = None
    def __len__(self): return 1
    def __getitem__(self, index): return [1][index]
class Unsized:
    def __getitem__(self, index): return [1][index]
class Container:
    __contains__ = __copy__ = None
    def __iter__(self): return iter([1])
class Nothing:
    __add__ = __radd__ = __iadd__ = __len__ = __bool__ = __call__ = __getitem__ = __setitem__ = __delitem__ = None
    __eq__ = __hash__ = __neg__ = __lt__ = __enter__ = __exit__ = __index__ = __int__ = __float__ = __next__ = None
    __abs__ = __round__ = __getattr__ = None
def enter(o):
    with o: pass
def set_item(o): o[0] = 1
def delete_item(o): del o[0]
def add_to(o): o += 1
USES = [
    iter, list, len, bool, callable, abs, round, int, float, next, operator.neg, operator.index, enter, set_item, delete_item,
    add_to, lambda o: 1 in o, lambda o: o + 1, lambda o: 1 + o, lambda o: o(), lambda o: o[0], lambda o: o == 1,
    lambda o: o != 1, lambda o: o < 1, lambda o: o.missing, lambda o: [*o], lambda o: [1][o],
]
def program(x):
    made = [caught(use, Nothing()) for use in USES if use is not iter]
    asked = [lambda o: 1 in o, bool, callable, lambda o: list(copy.copy(o))]
    return made, [caught(use, Container()) for use in asked], [
        caught(use, Sequence()) for use in (reversed, list, lambda o: 1 in o)
    ], caught(reversed, Unsized()), x + 1
""",
    "texts that are no strings": """
class A:
    def __repr__(self): return None
class B:
    def __repr__(self): return "B"
    def __str__(self): return 3
class C(ValueError):
    def __repr__(self): return 3
class D(ValueError):
    def __str__(self): return 3
class E:
    def __repr__(self): return "E"
    def __str__(self): return super().__str__() + "!"
USES = [
    repr, str, format, lambda o: "%s" % (o,), lambda o: "%r" % (o,), lambda o: f"{o}", lambda o: f"{o!r}",
    lambda o: o.__str__(), lambda o: o.__repr__(), lambda o: o.__format__(""), lambda o: object.__str__(o),
]
def program(x):
    return [[caught(use, kind()) for use in USES] for kind in (A, B, C, D, E)], x + 1
""",
    "a slice has the objects that it was made of": """
VALUES = [frozenset([1]), (1, 2), "a" * 50, 10 ** 30, 2.5, frozenset(), range(3), b"x" * 20]
def program(x, n=3):
    return [(slice(v, n).start is v, slice(v).stop is v, slice(n, n, v).step is v) for v in VALUES], x + 1
""",
    "numbers of numpy as indices": """
INDICES = [numpy.float32(1.5), numpy.float64(1.0), numpy.complex64(1), numpy.int64(1), numpy.bool_(True), (numpy.float32(1), 0)]
def put(x, index): x[index] = 1
def program(x):
    y = x.reshape(2, -1).clone()
    return [caught(lambda: y[index]) for index in INDICES], [caught(put, y, index) for index in INDICES], y
""",
    "iterators of classes that are made from builtin ones": """
class T(tuple): pass
class L(list): pass
class D(dict): pass
class S(set): pass
OUT = [T((1, 2)), L([1, 2]), D(a=1), S({1})]
WATCHED = {"log": LOG, "out": OUT}
def program(x):
    made = T((1, 2)), L([1, 2]), D(a=1), S({1})
    iterators = [iter(o) for o in (*OUT, *made)]
    next(iterators[0])
    next(iterators[5])
    return made, iterators, [reversed(o) for o in (*OUT[:3], *made[:3])], [zip(o, o) for o in OUT], x + 1
""",
    "iterators of objects that give items by their index": """
class G:
    def __init__(self, n=3): self.n = n
    def __getitem__(self, index):
        LOG.append(index)
        if index >= self.n: raise IndexError(index)
        return index * 10
class H(G):
    def __len__(self): return self.n
class Negative(G):
    def __len__(self): return -1
g, h = G(), H()
def ended(iterator):
    for _ in iterator: pass
    return iterator
def begun(iterator):
    next(iterator)
    return iterator
def program(x):
    made = [iter(g), begun(iter(g)), ended(iter(g)), iter(h), reversed(h), begun(reversed(h)), ended(reversed(h))]
    a, b, c = g
    return made, caught(reversed, Negative()), caught(reversed, g), [*zip(g, reversed(h))], 10 in g, a + b + c, x + 1
""",
    "hints of lengths": """
class N:
    def __init__(self, length): self.length = length
    def __iter__(self):
        LOG.append("iter")
        return iter([3, 1])
    def __len__(self):
        LOG.append("len")
        if isinstance(self.length, Exception): raise self.length
        return self.length
class H(N):
    __len__ = None
    def __length_hint__(self): return N.__len__(self)
def extended(o):
    made = [0]
    made.extend(o)
    return made
USES = [list, tuple, sorted, set, extended, lambda o: [*o], lambda o: {*o}, sum, collections.deque]
def program(x):
    lengths = 2, -1, "a", None, ValueError("v"), TypeError("t"), NotImplemented
    return [caught(use, kind(length)) for kind in (N, H) for length in lengths for use in USES], x + 1
""",
    "metaclasses have members of their own": """
class Meta(type):
    def __getattr__(cls, name):
        LOG.append(name)
        return 12.0
    def __iter__(cls): return iter([1])
    def __len__(cls): return 2
    def __getitem__(cls, index): return index
    def __enter__(cls): return 1
    def __exit__(cls, *args): return None
    def __index__(cls): return 1
    def keys(cls): return ["a"]
class A(metaclass=Meta):
    def __getattr__(self, name): raise AttributeError(name)
class D(metaclass=Meta):
    def __get__(self, obj, cls=None): return 3
class B(metaclass=Meta):
    d, e = D(), A()
class T(tuple, metaclass=Meta): pass
a, b, t = A(), B(), T((1, 2))
def enter(o):
    with o: pass
def unpacked(o):
    one, two = o
USES = [len, list, unpacked, enter, operator.index, next, bool, lambda o: [*o], lambda o: dict(**o), lambda o: 1 in o,
    lambda o: o[0], lambda o: [1, 2][o], lambda o: o.d, lambda o: o.missing, lambda o: {}.update(o)]
def program(x):
    return [caught(use, o) for o in (a, b, t) for use in USES], x + 1
""",
    "attributes of tensors and properties without names": """
o = torch.tensor(3)
Pair = collections.namedtuple("Pair", "one two")
class E: pass
e = E()
V = [1]
def delete(owner, name): delattr(owner, name)
def program(x):
    E.d, E.e = property(lambda self: 8), property()
    o.__dict__["q"] = x
    texts = [caught(lambda: o.q is x), hasattr(o, "__doc__"), hasattr(o, "none"), caught(list, o), caught(lambda: x["a"])]
    refused = [caught(delete, e, "d"), caught(setattr, e, "d", 1), caught(getattr, e, "e"), caught(delete, Pair(1, 2), "one")]
    return texts, refused, caught(setattr, Pair(1, 2), "one", 3), caught(setattr, V, "__class__", 4), x + 1
""",
    "what has no hash is no argument of an operation": """
def program(x):
    return caught(torch.tensor, torch.finfo(torch.float32)), caught(operator.add, x, torch.finfo(torch.float32)), x + 1
""",
    "named tuples with a __new__ of their own": """
class B(collections.namedtuple("P", "a b")):
    def __new__(cls, a, b=3):
        LOG.append("new")
        return super().__new__(cls, a, b)
P = collections.namedtuple("P", "a b")
o, p = B(1), P(1, 2)
def program(x):
    refused = caught(operator.add, o, x), caught(operator.add, x, o)
    return refused, copy.copy(o) == o, copy.copy(p) is p, copy.copy(p), copy.deepcopy(p), x + 1
""",
    "copies of what is known": """
LOCK = torch.finfo(torch.float32)
PAIR = (1, "a")
def program(x):
    values = LOCK, torch.float32, print, len, PAIR, Ellipsis, range(3), collections, int
    return [(caught(copy.copy, v) is v, caught(copy.deepcopy, v) is v) for v in values], caught(copy.copy, LOCK), x + 1
""",
    "a number that varies and an object that compares in its own way": """
class C:
    def __eq__(self, other):
        LOG.append("eq")
        return type(other) is int and other in (3, 7)
    def __lt__(self, other): return other > 4
CALLS = [lambda n=n: (torch.arange(4.), n) for n in (5, 7, 9, 3)]
def program(x, n):
    return n == C(), C() == n, n != C(), n in [C()], n > C(), C() < n, caught(operator.le, n, C()), x + n
""",
    "attributes that are items": """
class D(dict):
    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__
    __getattr__ = dict.__getitem__
d = D(a=1)
WATCHED = {"log": LOG, "d": d}
def delete(o): del o.a
def program(x):
    new = D()
    new.b = x
    d.c = x + 1
    first = d.a, d.c, new.b, "c" in d, vars(d), vars(new)
    delete(d)
    d.a = 3
    return first, caught(delete, new), caught(lambda: d.missing), new, x + 1
""",
    "operands of classes made from list": """
class L(list): pass
class T(tuple): pass
def program(x):
    return caught(operator.add, x, L([1, 2])), caught(operator.add, T((1,)), x), x + 1
""",
    "containers with lengths of their own": """
class S(set):
    def __len__(self): return None
class L(list):
    def __len__(self): return None
def program(x):
    s, l = S([1]), L([1, 2])
    made = [iter(s), enumerate(s), iter(l)]
    next(made[2])
    print(x.sum() > 1e9)
    return made, next(made[2]), x + 1
""",
    "tuples with methods of their own": """
class T(tuple):
    def __getitem__(self, index): return 10 * index if isinstance(index, int) else tuple.__getitem__(self, index)
class U(tuple):
    def __len__(self): return 1
def program(x):
    return [caught(lambda: list(use(kind("ab")))) for kind in (T, U) for use in (reversed, iter, enumerate)], x + 1
""",
    "weak references": """
class K:
    def m(self): return 1
k = K()
r = weakref.ref(k)
p = torch.nn.Parameter(torch.ones(2))
def in_table():
    table = weakref.WeakKeyDictionary()
    table[p] = 1
    return table[p]
def in_set():
    found = weakref.WeakSet([p])
    return p in found
def program(x):
    calls = [lambda: r(q=1), lambda: r(1), lambda: r() is k, lambda: weakref.ref(k)(1), lambda: weakref.ref(k)() is k]
    return [caught(call) for call in calls], caught(in_table), caught(in_set), x + 1
""",
    "operators of a tensor class": """
class T(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs or {})
CALLS = [lambda: (torch.Tensor._make_subclass(T, torch.ones(3, 3)),)] * 2
def program(t):
    made = t ** 2, 2 ** t, t.__pow__(2)
    t[0] += 1
    t **= 2
    return made
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
