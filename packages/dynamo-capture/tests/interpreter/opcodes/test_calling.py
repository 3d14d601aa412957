# ruff: noqa: PIE804
"""Calls: positions, keywords, stars, and what Python says of wrong ones."""

import functools

import pytest

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const


def target(a, /, b, *c, d=1, **e):
    return a, b, c, d, tuple(e.items())


def plain():
    return target(1, 2), target(1, b=2), target(1, 2, 3, 4, d=5, f=6, a=7)


def stars():
    return target(*(1, 2), *[3]), target(*"ab", d=2, x=3), target(1, *(), b=2)


def bound():
    method = "a,b".split
    part = functools.partial(target, 1, d=9)
    return tuple(method(",")), part(2), part(2, d=3), (lambda: target(0, 0))()


@pytest.mark.parametrize("program", [plain, stars, bound])
def test_calls(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: target(),
        lambda: target(1),
        lambda: target(a=1, b=2),
        lambda: target(1, 2, b=3),
        lambda: target(1, 2, **{"d": 1}, **{"d": 2}),
        lambda: target(1, 2, **{1: 2}),
        lambda: target(*5),
        lambda: target(**5),
        lambda number=5: number(),
        lambda: (lambda a, *, b: a)(1),
        lambda: (lambda a, *, b: a)(1, c=2),
        lambda: (lambda: 0)(1),
    ],
)
def test_wrong_calls(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: len(),
        lambda: len(1, 2),
        lambda: len(obj=1),
        lambda: "a".join(),
        lambda: functools.partial(),
    ],
)
def test_wrong_calls_of_builtins_are_left_to_python(tx, program):
    with pytest.raises(GraphBreak, match="CAP230"):
        tx.inliner.call_function(Const(program), [], {})
