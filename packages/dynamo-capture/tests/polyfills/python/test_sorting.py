"""Sorting asks the items what CPython's own asks them, in the same order."""

from __future__ import annotations

import bisect
import random
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_capture.polyfills import SUBSTITUTES
from dynamo_capture.polyfills.python.sorting import sorted_by


class _Seen:
    """An item that writes down whom it is compared with."""

    def __init__(self, rank: int, position: int, log: list[tuple[int, int]]) -> None:
        self.rank, self.position, self.log = rank, position, log

    def __lt__(self, other: _Seen) -> bool:
        self.log.append((self.position, other.position))
        return self.rank < other.rank


def _asked(
    sort: Callable[..., Any], ranks: list[int], reverse: bool
) -> tuple[list[int], list[tuple[int, int]]]:
    log: list[tuple[int, int]] = []
    items = [_Seen(rank, position, log) for position, rank in enumerate(ranks)]
    return [item.position for item in sort(items, reverse=reverse)], log


def _sorted(items: list[Any], reverse: bool) -> list[Any]:
    return sorted_by(items, items, reverse)


def _draw(random_: random.Random) -> list[int]:
    ranks = [random_.randrange(random_.choice((1, 2, 3, 100))) for _ in range(random_.choice((3, 8, 63)))]
    if random_.random() < 0.4:  # runs that fall, with equal items in them
        end = random_.randrange(len(ranks) + 1)
        ranks[:end] = sorted(ranks[:end], reverse=True)
    return ranks


@pytest.mark.parametrize("reverse", [False, True])
def test_comparisons_are_those_of_the_original(reverse: bool) -> None:
    random_ = random.Random(0)
    for ranks in [[], [1], [2, 1], [1, 1], [3, 3, 2, 2, 1, 4, 5], *(_draw(random_) for _ in range(500))]:
        assert _asked(_sorted, ranks, reverse) == _asked(sorted, ranks, reverse)


def test_more_items_are_sorted_stably() -> None:
    ranks = [random.Random(1).randrange(20) for _ in range(200)]
    items = list(range(200))
    assert sorted_by(items, ranks, False) == sorted(items, key=ranks.__getitem__)
    assert sorted_by(items, ranks, True) == sorted(items, key=ranks.__getitem__, reverse=True)


@pytest.mark.parametrize("insert", [bisect.insort_left, bisect.insort_right])
def test_insertion_asks_what_the_original_asks(insert: Callable[..., Any]) -> None:
    def found(function: Callable[..., Any], ranks: list[int], rank: int) -> Any:
        log: list[tuple[int, int]] = []
        items = [_Seen(rank, position, log) for position, rank in enumerate(sorted(ranks))]
        function(items, _Seen(rank, -1, log))
        return [item.position for item in items], log

    random_ = random.Random(2)
    for _ in range(200):
        ranks = _draw(random_)
        assert found(SUBSTITUTES[insert], ranks, 1) == found(insert, ranks, 1)


def test_a_place_below_zero_is_refused() -> None:
    for function in (bisect.bisect_left, SUBSTITUTES[bisect.bisect_left]):
        with pytest.raises(ValueError, match="lo must be non-negative"):
            function([1], 1, -1)
