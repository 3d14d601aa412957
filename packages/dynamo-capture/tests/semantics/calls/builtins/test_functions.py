"""Builtin functions on arguments that are seldom given."""

import pytest


def numbers():
    return (
        (round(2.5), round(2.567, 2), round(1234, -2), pow(2, 3, 5), pow(2, -1, 5)),
        (divmod(-7, 2), divmod(7.5, -2), abs(True), sum([1, 2], start=3), hash(1.0) == hash(1)),
        (min([3, 1], key=lambda v: -v), max([], default=None)),
    )


def from_other_forms():
    return int.from_bytes(b"ab", "big"), int.from_bytes([1, 2], byteorder="little"), float.fromhex("0x1.8p3")


def questions():
    return (
        (all([]), any([]), all(iter([1, 0])), any({}), callable(len), callable(5)),
        (isinstance(1, int | str), isinstance(1, (int, (str,))), issubclass(bool, int | str)),
        (bool(""), hasattr(3, "real"), getattr(3, "no", 7)),
    )


def iterators():
    items = [1, 2, 3]
    return (
        (tuple(iter(items.pop, 1)), next(iter([]), "end"), tuple(enumerate("ab", -1))),
        (tuple(map(max, [1, 5], [3, 2])), tuple(filter(None, [0, 1])), tuple(reversed(range(3)))),
        (tuple(zip((1,), (2,), strict=True)), tuple(zip()), tuple(reversed({1: 2, 3: 4}))),
        tuple(sorted("ba", key=str.upper, reverse=True)),
    )


def texts():
    return (
        chr(97),
        ord("a"),
        hex(-5),
        bin(3),
        oct(8),
        format(10, "#x"),
        ascii("\xe9"),
        repr("a'b"),
        str(b"a", "utf8"),
    )


def classes():
    return int.__name__, int("ff", 16), float("-0"), complex(real=1), bytes(2)


@pytest.mark.parametrize(
    "program", [numbers, from_other_forms, questions, iterators, texts, classes], ids=lambda f: f.__name__
)
def test_results(agrees, program):
    agrees(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda: min([]),
        lambda: min(1, default=2),
        lambda: pow(2, -1, 4),
        lambda: divmod(1, 0),
        lambda: chr(-1),
        lambda: ord("ab"),
        lambda: int("z"),
        lambda: len(5),
        lambda: iter(5),
        lambda: next([1]),
        lambda: hash([]),
        lambda: isinstance(1, 5),
        lambda: sorted([1, "a"]),
        lambda: reversed({1}),
        lambda: list(range(0, 5, 0)),
        lambda: list(range(2.0)),
        lambda: list(zip([1], [1, 2], strict=True)),
        lambda: list(map(None, [1])),
        lambda: list(enumerate("ab", 1.5)),
    ],
)
def test_what_python_refuses(agrees, program):
    agrees(program)
