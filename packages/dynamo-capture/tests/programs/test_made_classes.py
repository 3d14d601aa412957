"""Classes of named tuples that captured code makes: each call has its own."""

from __future__ import annotations

import collections

import pytest
import torch

from dynamo_capture import optimize

START = """\
import collections, copy
import torch
import torch.utils._pytree as pytree
CALLS = [lambda: (torch.ones(2),), lambda: (torch.ones(2),), lambda: (torch.ones(3),)]
def caught(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error)
KEPT = []
"""

PROGRAMS = {
    "used inside": """
def program(x):
    Pair = collections.namedtuple("Pair", ["a", "b", "ab"])
    p = Pair(x, x + 1, x * 2)
    a, *rest = p
    return p.a + p[1], p.ab, rest, Pair._fields, len(p), isinstance(p, Pair), type(p) is Pair, isinstance(p, tuple)
""",
    "instances that outlive the graph": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b", defaults=(5,))
    first, second = Pair(x + 1, 2), Pair(x)
    return first, second, first._replace(b=x), type(first) is type(second), repr(second), first._asdict(), str(Pair)
""",
    "the class outlives the graph": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    return Pair, Pair(x, 1), {Pair: x + 1}, (Pair, 2), [Pair], {Pair}, Pair.__module__, Pair.__name__, Pair.__doc__
""",
    "methods of the class": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    made = Pair._make([x, x * 2])
    return made, callable(getattr(Pair, "_make", None)), caught(Pair, 1), caught(Pair, 1, 2, 3), Pair._field_defaults
""",
    "values that are equal": """
def program(x):
    Pair, Other = collections.namedtuple("Pair", "a b"), collections.namedtuple("Pair", "a b")
    p, q = Pair(1, 2), Other(1, 2)
    return p == q, p == (1, 2), hash(p) == hash(q), Pair is Other, Pair == Other, {p: 1}[q], x * p.a, sorted([q, p])
""",
    "names that are refused": """
def program(x):
    return (caught(collections.namedtuple, "Pair", "a a"), caught(collections.namedtuple, "1", "a"),
        collections.namedtuple("P", ["def", "b"], rename=True)._fields, x + 1)
""",
    "in a loop and a function": """
def make(n):
    return collections.namedtuple("P", [f"f{i}" for i in range(n)])
def program(x):
    total = x
    for n in (1, 2, 2):
        made = make(n)(*[x] * n)
        total = total + made[-1] + len(made)
    return total, made, made.f1
""",
    "across a graph break": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    p = Pair(x, x + 1)
    print(x.sum().item())
    q = Pair(p.b, 2)
    return p, q, type(p) is Pair, type(p) is type(q)
""",
    "kept by the program": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    KEPT.append(Pair(x, 3))
    KEPT.append(Pair)
    return x * 2, len(KEPT)
WATCHED = {"kept": KEPT}
""",
    "given to torch": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    p = Pair(x, x * 2)
    return torch.stack(p), torch.cat(tuple(p)), pytree.tree_map(lambda leaf: leaf + 1, p)
""",
    "its place in memory": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    return x + 1, id(Pair) == id(Pair), hash(Pair) == hash(Pair), copy.copy(Pair) is Pair
""",
    "attributes of the class": """
def program(x):
    Pair = collections.namedtuple("Pair", "a b")
    Pair.__doc__ = "A pair."
    return Pair(x, 1), Pair.__doc__, x + 1
""",
    "names that only the call knows": """
def program(x):
    n = int(x.sum().item())
    Pair = collections.namedtuple("Pair", ["a"] * (n > 1) + ["b"])
    return Pair._fields, x + n
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])


def test_each_call_makes_its_class(forward):

    def program(x):
        made = collections.namedtuple("Pair", "a b")
        return made(x + 1, x), made

    fast = optimize(forward, fullgraph=True)(program)
    first, again = fast(torch.ones(2)), fast(torch.ones(2))
    assert type(first[0]) is first[1]
    assert type(again[0]) is again[1]
    assert first[1] is not again[1]
    assert len(fast.__fxstack_capture__.report.replacements) == 1
    assert first[1].__module__ == __name__
