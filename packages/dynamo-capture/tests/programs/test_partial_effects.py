"""Containers that take in one item after the other: what they have taken before the next one raises, or looks at them,
they have; and what counts as a mapping."""

from __future__ import annotations

import pytest

START = """\
import collections
import torch
LOG = []
L, S, D, Q = [0], {0}, {0: 0}, collections.deque([0], 4)
WATCHED = {"log": LOG, "list": L, "set": S, "dict": D, "deque": Q}
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(4.) - 1,)]
def caught(function, *args, **kwargs):
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__, str(error), error.__context__, error.__cause__
class Items:
    def __iter__(self):
        yield 1
        LOG.append((len(L), len(S), len(Q)))
        yield 2
        raise KeyError("end")
def pairs():
    for item in Items():
        yield item, item
class Mapping:
    def keys(self):
        LOG.append("keys")
        return iter("abc")
    def __getitem__(self, key):
        if key == "c":
            raise self.error(key)
        return key
class Refuses(Mapping): error = IndexError
class Lacks(Mapping): error = AttributeError
class NotIterable(Mapping):
    def keys(self): return 3
class OnInstance:
    def __init__(self): self.keys = lambda: ["a"]
    def __getitem__(self, key): return key
class OwnKeys(dict):
    def keys(self): return ["own"]
    def __getitem__(self, key): return "item of " + key
class OwnIterator(OwnKeys):
    def __iter__(self): return iter(())
class Ordered(collections.OrderedDict):
    def keys(self): return ["own"]
    def __getitem__(self, key): return "item of " + key
class Delegates:
    def __init__(self, inner): self.inner = inner
    def __getattr__(self, name):
        LOG.append(name)
        return getattr(self.inner, name)
def named(**kwargs): return kwargs
"""

PROGRAMS = {
    "of an object that is iterated": """
def program(x):
    for take in (L.extend, S.update, Q.extend, Q.extendleft, S.difference_update):
        caught(take, Items())
    return x + 1
""",
    "of a generator": """
def program(x):
    for take in (L.extend, S.update, Q.extend, Q.extendleft, S.difference_update):
        caught(take, (item for item in Items()))
    return x + 1
""",
    "by an operator": """
def program(x):
    global L, D
    try:
        L += Items()
    except KeyError:
        pass
    try:
        D |= [(6, 4), 1]
    except TypeError as error:
        LOG.append(str(error))
    return x + 1
""",
    "of pairs": """
def program(x):
    return caught(D.update, pairs()), caught(D.update, [(3, 4), (1, 2, 3)]), caught(D.update, [(5, 4), 1]), x + 1
""",
    "a list that takes in itself": """
class B(list): pass
OWN = B([1, 2])
WATCHED["own"] = OWN
def program(x):
    OWN.extend(OWN)
    L.extend(L)
    return x + 1
""",
    "a set with an iterator of its own": """
class B(set):
    def __iter__(self): return iter([7])
OWN = B([1])
def program(x):
    S.update(OWN)
    return x + 1
""",
    "what a mapping is": """
MADE = [Refuses(), Lacks(), NotIterable(), OnInstance(), OwnKeys(a=1), OwnIterator(a=1), Ordered(a=1), Delegates(Delegates(3)), 1]
def program(x):
    found = []
    for given in MADE:
        found.append(caught(lambda: {**given}))
        found.append(caught(lambda: named(**given)))
        found.append(caught(dict, given))
        found.append(caught(D.update, given))
    return found, x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
