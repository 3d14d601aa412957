"""Where taps stand, and what of them is outside."""

from __future__ import annotations

import itertools

import pytest

from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import Index, LoopVar, Quotient, Remainder, as_index
from inductor_codegen.lower.values import Window
from inductor_codegen.schedule.kernels.windows import taps

ENV = ShapeEnv()


def value(index: Index, at: int) -> int:
    total = index.const
    for atom, coefficient in index.terms:
        match atom:
            case LoopVar():
                found = at
            case Quotient(numerator, denominator):
                found = value(numerator, at) // denominator
            case Remainder(numerator, denominator):
                assert value(numerator, at) >= 0
                found = value(numerator, at) % denominator
            case _:
                raise AssertionError(atom)
        total = total + found * coefficient
    assert isinstance(total, int)
    return total


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(
    ("factor", "at"), [(1, 0), (2, 0), (2, 1), (4, 3)], ids=["plain", "even", "odd", "third"]
)
def test_taps(factor: int, at: int, transposed: bool) -> None:
    for length, step, pad, gap in itertools.product((1, 3, 4), (1, 2, 3), (0, 2), (1, 2)):
        window, size, count = Window(length, step, pad, gap), 9, 4
        position = as_index(LoopVar("i", count)) * factor + at
        found = taps(position, window, size, ENV, transposed=transposed)
        for turn in range(count):
            point = factor * turn + at
            read = {}
            for number, index, guards in found:
                places = [value(guard.index, turn) for guard in guards]
                inside = [
                    (guard.low is None or guard.low <= place) and (guard.high is None or place < guard.high)
                    for guard, place in zip(guards, places, strict=True)
                ]
                if all(inside):
                    read[number.const] = value(index, turn)
            expected = {}
            for tap in range(length):
                offset = tap * gap - pad
                places = [place for place in range(size) if place * step + offset == point]
                if not transposed:
                    places = [point * step + offset]
                expected.update((tap, place) for place in places if 0 <= place < size)
            assert read == expected


def test_what_is_inside_everywhere_is_not_asked() -> None:
    (one,) = taps(as_index(LoopVar("i", 8)), Window(1, 1, 0, 1), 8, ENV)
    assert one[2] == ()
    assert taps(as_index(LoopVar("i", 8)), Window(1, 1, 9, 1), 8, ENV) == []
