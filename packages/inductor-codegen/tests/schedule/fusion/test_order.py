"""Dependencies: reachability and a deterministic order."""

from __future__ import annotations

import pytest

from inductor_codegen.schedule.fusion.order import Dependencies


def chain(*pairs: tuple[int, int]) -> Dependencies:
    made = Dependencies()
    for unit in sorted({unit for pair in pairs for unit in pair}):
        made.extend(unit, unit)
    for unit, needed in pairs:
        made.add(unit, needed)
    return made


def test_reaches_through_others() -> None:
    made = chain((3, 2), (2, 1), (1, 0))
    assert made.reaches(3, [0])
    assert not made.reaches(0, [3])
    assert not made.reaches(3, [])


def test_order_respects_needs_and_then_values() -> None:
    assert chain((5, 4), (3, 5), (1, 0)).sorted() == [0, 1, 4, 5, 3]


def test_circle_is_a_defect() -> None:
    with pytest.raises(AssertionError):
        chain((1, 2), (2, 1)).sorted()
