"""Operators and comparisons between objects of all kinds: which methods Python asks, with what, and how it refuses."""

from __future__ import annotations

import pytest

START = """\
import collections, copy, enum, operator
import torch
LOG = []
WATCHED = {"log": LOG}
CALLS = [lambda: (torch.arange(6.) + 1,), lambda: (torch.arange(4.) - 1,)]
def caught(function, *args):
    try:
        return function(*args)
    except TypeError as error:
        return str(error)
class Answers:
    answer = "own"
    def _noted(name):
        def method(self, other):
            LOG.append((name, type(other).__name__))
            return self.answer
        return method
    for name in ("radd", "rmul", "ror", "rmod", "lt", "gt", "eq"):
        locals()[f"__{name}__"] = _noted(name)
    __hash__ = object.__hash__
    def __iter__(self): return iter([1])
    def __index__(self): return 2
    def keys(self): return []
    def __getitem__(self, key): return key
    def __str__(self): return "text"
class Declines(Answers): answer = NotImplemented
class B(list): pass
class T(tuple): pass
class D(dict): pass
class S(set): pass
class X(ValueError): pass
class P: pass
class K:
    def __index__(self): return 2
class I(enum.IntEnum): a = 2
class F(enum.Flag): a = 1
class E(dict):
    def __eq__(self, other):
        LOG.append(type(other).__name__)
        return "own"
class G(list):
    def __gt__(self, other):
        LOG.append(type(other).__name__)
        return "own"
class N(float):
    def __eq__(self, other):
        LOG.append("eq")
        return True
"""

SYMBOLS = ("add", "mul", "or_", "sub", "mod", "iadd", "imul", "ior", "isub")
PAIRS = """
def program(x):
    for left in LEFT:
        for right in RIGHT:
            LOG.append(caught(operator.{symbol}, copy.copy(left), right))
    return x + 1
"""
PLAIN = "[1], (1,), {1}, {1: 1}, '%s', b'b', collections.deque([1]), 3, None, I.a, int, frozenset([2])"
OBJECTS = "B([1]), T((1,)), D(a=1), S([1]), X(), OSError(2, 'a', 'b'), P()"

PROGRAMS = {
    **{
        f"{symbol}: {name}": f"LEFT = [{left}]\nRIGHT = [{right}]\n" + PAIRS.format(symbol=symbol)
        for symbol in SYMBOLS
        for name, left, right in (
            ("an object that answers", PLAIN, "Answers()"),
            ("an object that declines", PLAIN, "Declines()"),
            ("objects on the right", "[1], (1,), {1}, {1: 1}, 'a', 3", OBJECTS),
            ("containers on the right", OBJECTS, "[1], (1,), {1}, {1: 1}"),
        )
    },
    **{
        symbol: """
LEFT = RIGHT = [B([1]), Declines(), E(), G([0]), 2, [1], {}, {3}, None, D(), X()]
"""
        + PAIRS.format(symbol=symbol)
        for symbol in ("lt", "gt", "eq", "ne", "ge")
    },
    "!= of what a class inherits in C": """
o = N(1)
CALLS = [lambda: (torch.ones(2), N(1)), lambda: (torch.ones(3), N(2))]
def program(x, given):
    return given != given, o != given, o != 2, x + 1
""",
    "*= does not ask the right operand of a class made at run time": """
def program(x):
    number, member, k = 2, I.a, K()
    number *= [1]
    try:
        member *= [1]
    except TypeError as error:
        LOG.append(str(error))
    try:
        k *= [1]
    except TypeError as error:
        LOG.append(str(error))
    return number, I.a * [1], K() * [1], x + 1
""",
    "augmented operators with a tensor": """
GIVEN = [F.a, None, (1,), "a", int, range(2), ..., slice(2), 2]
def program(x):
    found = []
    for given in GIVEN:
        for operation in (operator.iadd, operator.ipow, operator.imatmul, operator.ior):
            found.append(caught(operation, given, x))
    return found, x + 1
""",
    "comparisons with a tensor": """
GIVEN = [(1,), {1: 1}, "a", collections.deque([1]), collections.OrderedDict(a=1), torch.Size([1]), T((1,)), None]
def program(x):
    found = []
    for given in GIVEN:
        for operation in (operator.lt, operator.ge, operator.eq):
            found += [caught(operation, given, x), caught(operation, x, given)]
    return found, x + 1
""",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_as_in_eager(name, as_in_eager):
    as_in_eager(START + PROGRAMS[name])
