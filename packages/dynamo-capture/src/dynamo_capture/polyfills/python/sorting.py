"""``sorted`` with CPython's own comparisons in CPython's own order, which a program's ``__lt__`` may see.

That holds for up to 63 items: the run at the start, then each of the rest put in by halving. CPython merges longer
lists from parts; here they are put in one by one as well. What is a run at the start depends on the version.
"""

from __future__ import annotations

import sys
from typing import Any


def sorted_by(items: list[Any], ranks: list[Any], reverse: bool) -> list[Any]:
    """``items`` in the order of ``ranks``, which are as many."""
    if reverse:
        items, ranks = items[::-1], ranks[::-1]
    order = list(range(len(ranks))) if len(ranks) < 2 else first_run(ranks)
    for position in range(len(order), len(ranks)):
        low, high = 0, position
        while low < high:
            middle = (low + high) // 2
            if ranks[position] < ranks[order[middle]]:
                high = middle
            else:
                low = middle + 1
        order.insert(low, position)
    ordered = [items[position] for position in order]
    return ordered[::-1] if reverse else ordered


def rising_or_falling(ranks: list[Any]) -> list[int]:
    """Up to 3.12: positions of the items that rise from the first on or, where the second is smaller, that fall."""
    falls = bool(ranks[1] < ranks[0])
    end = 2
    while end < len(ranks) and bool(ranks[end] < ranks[end - 1]) is falls:
        end += 1
    return list(range(end))[::-1] if falls else list(range(end))


def with_equals(ranks: list[Any]) -> list[int]:
    """From 3.13 on: a run that falls may hold equal items, which keep their order, and rise again at its end.

    3 3 2 2 1 4 5  ->  1 2 2 3 3 4 5
    """
    end = 1
    while end < len(ranks) and not ranks[end] < ranks[end - 1]:
        end += 1
    order = list(range(end))
    if end == len(ranks) or (end > 1 and ranks[0] < ranks[end - 1]):
        return order
    order.insert(0, end)
    equals = 1
    end += 1
    while end < len(ranks):
        if ranks[end] < ranks[end - 1]:
            equals = 0
        elif ranks[end - 1] < ranks[end]:
            break
        order.insert(equals, end)
        equals += 1
        end += 1
    while end < len(ranks) and not ranks[end] < ranks[order[-1]]:
        order.append(end)
        end += 1
    return order


first_run = with_equals if sys.version_info >= (3, 13) else rising_or_falling
"""Positions of the items of the run at the start, smallest first; at least two ranks are given."""
