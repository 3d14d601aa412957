"""Builtin classes that are called."""

from __future__ import annotations

import pytest

from dynamo_capture.foundation.errors import GraphBreak


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
        lambda: (
            str(b"ab", "utf8"),
            str(object=b"ab", encoding="ascii"),
            str(b"a", errors="strict"),
        ),
        lambda: str("ab", "utf8"),
        lambda: str(1, errors="strict"),
        lambda: tuple(zip((1, 2), (3,), strict=True)),
    ],
)
def test_they_make_what_python_makes(agrees, program):
    agrees(program)


class Shown:
    def __repr__(self):
        return "shown"


def test_an_object_is_no_text_to_be_decoded(agrees):
    """Its text is not what ``str`` makes of it then."""
    with pytest.raises(GraphBreak, match="str"):
        agrees(lambda given: str(given, "utf8"), Shown())
