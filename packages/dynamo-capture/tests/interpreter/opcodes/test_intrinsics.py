"""Intrinsic functions of instructions: unary plus, lists that become tuples, and the ends of generators."""

import pytest


class Plus:
    def __pos__(self):
        return "plus"


@pytest.mark.parametrize(
    "program",
    [
        lambda number=-3: +number,
        lambda flag=True: +flag,
        lambda: +Plus(),
        lambda text="a": +text,
        lambda: (*[1], *(2,)),
        lambda: tuple((lambda *a: a)(*[1, 2], *iter([3]))),
        lambda: next(i for i in iter([StopIteration])) is StopIteration,
    ],
)
def test_results(agrees, program):
    agrees(program)
