"""Operators, comparisons, identity and membership on symbolic values."""

import pytest


class Odd:
    def __init__(self, answer):
        self.answer = answer

    def __eq__(self, other):
        return self.answer

    def __bool__(self):
        return self.answer

    def __contains__(self, item):
        return item

    def __add__(self, other):
        return NotImplemented

    def __radd__(self, other):
        return "radd", other


def arithmetic(a=7, b=-2):
    return a + b, a // b, a % b, a**2, a / b, a << 2, a >> 1, a & 3, a | 8, a ^ 5, -a, +b, ~a, not b


def chains():
    return 1 < 2 < 3, 1 < 2 > 5, 1 in [1] in [[1]], 1 != None, None is None, "b" not in "abc"


def answers_of_the_program():
    one, two = Odd(True), Odd(False)
    return one == two, two == one, (one != two), 5 in one, 0 in one, not two, 3 + one


def in_place():
    items = other = [1]
    items += (2,)
    number = 3
    number **= 2
    return tuple(other), items is other, number


def subscripts():
    table = {"a": [1, 2, 3]}
    table["a"][0] = 9
    del table["a"][1]
    table["a"][5:] = (7, 8)
    return tuple(table["a"])


@pytest.mark.parametrize("program", [arithmetic, chains, answers_of_the_program, in_place, subscripts])
def test_results(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: 1 + "a",
        lambda: "a" + 1,
        lambda: [1] + (2,),
        lambda: 1 < "a",
        lambda: 1 in 5,
        lambda: -"a",
        lambda: ~1.5,
        lambda: 1 // 0,
        lambda: 1.5 % 0,
        lambda: 0**-1,
        lambda: 1 << -1,
        lambda: (1, 2)[5],
        lambda a=(1, 2): a["a"],
        lambda: {}[1],
        lambda: {}[[]],
        lambda a=5: a[0],
        lambda: Odd(True) + 1,
    ],
)
def test_what_python_refuses(agrees, program):
    agrees(program)
