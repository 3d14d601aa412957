"""Named tuples: subclasses whose instances have attributes of their own."""

from __future__ import annotations

import collections

import pytest
import torch

X = torch.ones(2)

START = """\
import collections, copy, typing
import torch

X = torch.ones(2)
import torch.utils._pytree as pytree
class Pair(typing.NamedTuple):
    a: torch.Tensor
    b: torch.Tensor
class Sub(Pair):
    kind = "class"
    def total(self):
        return self.a + self.b
    @property
    def double(self):
        return self.a * 2
T = typing.TypeVar("T")
class Generic(typing.NamedTuple, typing.Generic[T]):
    first: T
    second: T
class Named(Generic[T]):
    pass
def made(n=2):
    return Sub(torch.ones(n), torch.arange(float(n)))
CALLS = [lambda: (torch.ones(2), made()), lambda: (torch.ones(2), made()), lambda: (torch.ones(3), made(3))]
def caught(function, *args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__, str(error)
"""

PROGRAMS = {
    "attributes of a new one": """
def program(x, given):
    t = Sub(x, x + 1)
    t.extra = x * 3
    t.kind = "instance"
    return t, t.extra + t.total() + t.double, t.kind, hasattr(t, "nothing"), vars(t), Sub.kind
""",
    "fields cannot be set": """
def write(t, x):
    t.a = x
def program(x, given):
    return caught(write, Sub(x, x), x), caught(write, given, x), caught(write, Named(x, x), x), x + 1
""",
    "attributes of a given one": """
def program(x, given):
    given.extra = given.a + x
    given.count = getattr(given, "count", 0) + 1
    return given, given.extra * 2, given.total(), sorted(vars(given))
""",
    "attributes that go": """
def drop(t, name):
    delattr(t, name)
def program(x, given):
    given.extra = x
    drop(given, "extra")
    return caught(drop, given, "extra"), caught(drop, given, "b"), given.b + x
""",
    "generic": """
def program(x, given):
    t = Named(x, x + 1)
    t.x = x
    t.y = t.first + t.second
    return hasattr(t, "x"), t.x + t.y, t, t._fields, type(t) is Named
""",
    "as tuples": """
def program(x, given):
    t = Sub(x, x + 1)
    a, b = t
    first, *rest = given
    return (t[0] + t[-1], t[:1], t + (1,), t * 2, len(t), x is t.a, torch.cat(t), torch.stack(given), rest,
        [*t, *given], t._replace(b=a), given._asdict(), isinstance(t, tuple), t.index is not None, tuple(given))
""",
    "made of values": """
def program(x, given):
    a, b, c = Sub(1, 2), Sub(1, 2), Sub(2, 1)
    b.extra = 5
    table = {a: 3, (2, 1): 4}
    return a == b, hash(a) == hash((1, 2)), table[b], table[c], a < c, sorted([c, a]), a is b, x * a.a, repr(a), str(c)
""",
    "given to torch's trees": """
def program(x, given):
    t = Sub(x, {"k": x + 1})
    t.extra = 3
    found = pytree.tree_map(lambda leaf: leaf * 2, (t, given))
    return found, hasattr(found[0], "extra"), pytree.tree_leaves(given)
""",
    "across a graph break": """
def program(x, given):
    t = Sub(x, x + 1)
    t.extra = x * 3
    given.seen = t
    print(x.sum().item())
    t.extra = t.extra + t.a
    return t, t.extra, given.seen is t, given.seen.b
""",
    "in a loop": """
def program(x, given):
    state = Sub(x, x * 0)
    for i in range(3):
        state = Sub(state.a * 2, state.total())
        state.step = i
    return state, state.step
""",
    "copied": """
def program(x, given):
    t = copy.copy(given)
    t.extra = 1
    return t, hasattr(given, "extra"), t.a is given.a, x + t.b
""",
    "with a method of its own for a field": """
class Other(collections.namedtuple("Other", "a b")):
    def __getattr__(self, name):
        return (name, self.a)
def program(x, given):
    o = Other(x, 2)
    o.c = 3
    return o.c, o.d, o.a, o
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])


def test_attributes_are_in_the_graph(whole):
    class Sub(collections.namedtuple("Pair", "a b")):
        pass

    def program(x):
        t = Sub(x, x + 1)
        t.extra = t.a + t.b
        return t, t.extra

    whole(program, (torch.ones(2),), (torch.ones(3),))


def test_an_alias_of_a_class_that_is_made(same):
    def f(x):
        group = collections.namedtuple("group", "key member")
        alias = group[int, list[int]]
        made = alias(1, [2])
        return x + 1, type(made) is group, alias.__origin__ is group

    same(f, (X,))
