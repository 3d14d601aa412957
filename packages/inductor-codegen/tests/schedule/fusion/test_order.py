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


def test_needing_something_through_others() -> None:
    made = chain((3, 2), (2, 1), (3, 1), (5, 3))
    assert made.reaches_around(3, 1)
    assert not made.reaches_around(3, 2)
    assert made.reaches_around(5, 1)


def test_units_that_hold_values_from_far_apart() -> None:
    """7 needs 3 through 1, which numbers alone would leave unsearched: it holds values 1 and 9."""
    exact = Dependencies(exact=True)
    for unit in (1, 2, 3, 7):
        exact.extend(unit, unit)
    exact.extend(1, 9)
    exact.add(7, 2)
    exact.add(2, 1)
    exact.add(1, 3)
    assert exact.reaches(7, [3])
