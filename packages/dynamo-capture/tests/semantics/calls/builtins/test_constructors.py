"""Builtin classes that are called."""

from __future__ import annotations

import pytest


class Index:
    def __index__(self):
        return 3


class Float:
    def __float__(self):
        return 2.5


@pytest.mark.parametrize(
    "program",
    [
        lambda: (
            int(2.9),
            int("0x1f", 0),
            int(Index()),
            int(True),
            float(Float()),
            float(Index()),
            bool([]),
            bool(Index()),
        ),
        lambda: (
            tuple("ab"),
            list(range(2)) == [0, 1],
            tuple(sorted({3, 1})),
            dict([("a", 1)], b=2) == {"a": 1, "b": 2},
        ),
        lambda: (tuple(range(True)), tuple(range(1, 7, 3)), tuple(range(Index())), len(range(0, -4, -2))),
        lambda: (
            slice(1, 2),
            slice(None, Index(), None).stop.__class__ is Index,
            frozenset([1]),
            complex("1j"),
        ),
        lambda: range(0, 1, 0),
        lambda: range("a"),
        lambda: int("a"),
        lambda: float("a"),
        lambda: dict([1]),
        lambda: tuple(zip((1, 2), (3,), strict=True)),
    ],
)
def test_they_make_what_python_makes(agrees, program):
    agrees(program)
