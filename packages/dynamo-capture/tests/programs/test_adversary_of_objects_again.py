"""More programs about objects that the adversary ``objects`` found: the smallest that differed."""

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

SUBCLASS = """
class T(torch.Tensor):
    __torch_function__ = torch._C._disabled_torch_function_impl
    @property
    def shape(self):
        LOG.append("shape")
        return super().shape
class Mode(torch.overrides.TorchFunctionMode):
    answer = False
    def __torch_function__(self, func, types, args=(), kwargs=None):
        LOG.append(func.__name__)
        return 42 if self.answer and func.__name__ == "__get__" else func(*args, **(kwargs or {}))
CALLS = [lambda: (torch.Tensor._make_subclass(T, torch.arange(6.).reshape(2, 3)),)]
"""

PROGRAMS = {
    "attributes of tensors by name": """
P = torch.nn.Parameter(torch.ones(2))
WATCHED["p"] = P
STEPS = [
    lambda: object.__setattr__(P, "a", 1), lambda: P.__setattr__("b", 2), lambda: P.a, lambda: object.__getattribute__(P, "b"),
    lambda: P.__getattribute__("a"), lambda: object.__delattr__(P, "a"), lambda: P.__delattr__("b"),
    lambda: object.__setattr__(P, "requires_grad", False), lambda: P.requires_grad,
    lambda: object.__setattr__(P, "requires_grad", True), lambda: object.__setattr__(P, "kept", 3),
]
def program(x):
    y = x + 1
    object.__setattr__(y, "a", 3)
    return [caught(step) for step in STEPS], y.a, y
""",
    "methods of object on tensors": """
o = torch.ones(2)
def program(x):
    found = []
    for t in (o, x * 1):
        found += [t.__getstate__(), t.__reduce_ex__(2)[0].__name__, t.__str__(), t.__dir__(), t.__format__("")]
    o.c = 3
    return found, x + 1
""",
    "the text of what is made from str": """
class B(str):
    def __repr__(self): return 3
class C(int):
    def __repr__(self): return 3
class D(list):
    def __repr__(self): return "own"
MADE = [B("text"), C(3), D([1])]
def program(x):
    found = []
    for v in MADE:
        found += [caught(str, v), caught(repr, v), caught(lambda: "%s" % (v,)), caught(lambda: f"{v}"), caught(format, v)]
    return found, x + 1
""",
    "copies of a frozenset": """
S = frozenset([1])
def program(x):
    return copy.copy(S) is S, S.copy() is S, frozenset(S) is S, copy.copy(frozenset([2])), x + 1
""",
    "numbers out of memory": """
MADE = [array.array("i", [1, 2]), memoryview(b"12"), bytearray(b"12"), ...]
def program(x):
    return [(caught(int, v), caught(float, v)) for v in MADE], x + 1
""",
    "tensors of sequences that iterate in their own way": """
class B(list):
    def __iter__(self): return 3
class C(list): pass
def program(x):
    found = [caught(make, B([1, 2])) for make in (torch.tensor, torch.as_tensor, x.new_tensor)]
    return found, caught(torch.tensor, [B([1])]), torch.tensor(C([1, 2])), x + 1
""",
    "context managers called without a function": """
N = torch.no_grad()
def program(x):
    return caught(lambda: N()), caught(lambda: torch.no_grad()(1, 2)), caught(lambda: torch.autocast("cpu")()), x + 1
""",
    "== of methods and containers with others": """
fn = lambda *args: 1
M = types.MethodType(fn, 3)
def program(x):
    found = M.__eq__(1), M.__ne__(1), M.__eq__(M), fn.__eq__(1), [].__eq__(()), {}.__eq__([]), set().__eq__([])
    return found, range(2).__eq__(1), LOG.append.__eq__(2), functools.partial(max).__eq__(1), x + 1
""",
    "what is not unpacked": """
MADE = [int | str, 3, None, print, int, {}.get, ..., torch.float32]
def program(x):
    found = []
    for v in MADE:
        try:
            a, b = v
        except TypeError as error:
            found.append(str(error))
    return found, x + 1
""",
    "indices of tuples of other classes": """
P = collections.namedtuple("P", "a b")
class C(P): pass
MADE = [P(1, 2), C(1, 2), torch.Size([1])]
def program(x):
    return [(caught(lambda: v["a"]), caught(lambda: v.__getitem__("a")), caught(lambda: v[5])) for v in MADE], x + 1
""",
    "whose attribute a method lacks": """
M = types.MethodType(lambda self: 1, 2)
def program(x):
    try:
        M.absent
    except AttributeError as error:
        return error.obj is M, error.name, error.obj is M.__func__, x + 1
""",
    "the truth of NotImplemented": """
def program(x):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = bool(NotImplemented), not NotImplemented, 1 if NotImplemented else 0
    return found, [str(warning.message) for warning in told], x + 1
""",
    "annotations that asking makes": """
class C: pass
class B(C): pass
M = types.ModuleType("made")
def program(x):
    of_class = hasattr(B(), "__annotations__"), hasattr(B, "__annotations__"), hasattr(B(), "__annotations__")
    of_module = "__annotations__" in vars(M), M.__annotations__, "__annotations__" in vars(M)
    return of_class, "__annotations__" in vars(C), of_module, x + 1
""",
    "modules whose tables are not made yet": """
class C(torch.nn.Module):
    def __init__(self): pass
def program(x):
    made = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    o = C()
    found = [hasattr(o, name) for name in ("__index__", "absent")]
    with made:
        return found, x + 1
""",
    "iterators that sum() and max() leave where they raise": """
CALLS = [lambda: (torch.ones(2), zip("ab", [1, 2]), iter([1, "a", 3]), enumerate("ab"), iter([1, 2, "a", 3]))]
def program(x, z, i, e, m):
    return caught(sum, z), caught(sum, i), caught(sum, e), caught(max, m), x + 1
""",
    "max() asks for one key after the other": """
class K:
    def __init__(self, n): self.n = n
    def __gt__(self, other):
        LOG.append(("gt", self.n, other.n))
        return self.n > other.n
    __lt__ = lambda self, other: not self > other
def key(n):
    LOG.append(n)
    return K(n)
def program(x):
    made = [K(n) for n in (2, 3, 1)]
    of_sizes = max(x.shape[0], 3), max(n for n in x.shape), max([], default=3), max(1, 2.5, x.shape[0])
    return max(made).n, min(made).n, max([1, 3, 2], key=key), min((4, 1, 0), key=key), of_sizes, x + 1
""",
    "the dictionary of a new function": """
def outer(a):
    def inner(b=2):
        return a
    inner.a = a
    return inner
def program(x):
    o = outer(1)
    d = o.__dict__
    o.__dict__["c"], d["e"], vars(o)["f"] = 3, 4, 5
    del d["a"]
    found = o.c, o.e, o.f, hasattr(o, "a"), sorted(vars(o)), o.__dict__ is d
    print(end="")
    d["g"] = 6
    return found, o.g, o, x + 1
""",
    "tuples that operators give back": """
T = (1, 2)
def program(x):
    t = T
    t *= 1
    return T * 1 is T, T + () is T, () + T is T, T[:] is T, T[0:] is T, t is T, (x, 1) * 1, x + 1
""",
    "copies of what a metaclass watches": """
class Meta(type):
    def __setattr__(cls, name, value):
        LOG.append(name)
        super().__setattr__(name, value)
class B(metaclass=Meta): pass
o = B()
def program(x):
    return type(copy.copy(o)).__name__, type(copy.deepcopy(o)).__name__, x + 1
""",
    "a place in a list before what compares in its own way": """
class E(list):
    def __iter__(self): return 3
    def __eq__(self, other):
        LOG.append("eq")
        return type(other) is int and other == 1
o = E([1, 2])
def program(x):
    return [1, o, "a"].index(o), x + 1
""",
    "an item of __dict__ behind a property": """
class Thing:
    def __init__(self): self.value = 1.0
OBJ = Thing()
def change():
    Thing.value = property(lambda self: 13.0)
    return torch.ones(2)
CALLS = [lambda: (torch.ones(2),), lambda: (change(),), lambda: (torch.ones(3),)]
def program(x):
    h = x + OBJ.__dict__["value"]
    return h * OBJ.value, sorted(vars(OBJ).items()), "value" in OBJ.__dict__, OBJ.value
""",
    "an integer whose __index__ says otherwise": """
class B(int):
    def __index__(self): return 1
b = B(4)
def program(x):
    return operator.index(b), hex(b), [1, 2, 3, 4, 5][b], x + 1
""",
    "a module whose __init__ has not run is called": """
class M(torch.nn.Module):
    def __init__(self): pass
m = M()
def program(x):
    return caught(m, 1), x + 1
""",
    "a function is no operand": """
def program(x):
    return caught(lambda: (1,) + (lambda: 1)), caught(lambda: "a" + (lambda: 1)), caught(lambda: [1] + print), x + 1
""",
    "a mode is asked what super() of a tensor reads": SUBCLASS
    + """
def program(t):
    with Mode():
        mine = super(T, t)
        return mine.shape, mine.stride(), mine.dtype, mine.sin(), t.shape, t.sin(), t.dtype
""",
    "a mode answers what super() of a tensor reads": SUBCLASS
    + """
Mode.answer = True
def program(t):
    with Mode():
        return t.shape, t.mT
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
