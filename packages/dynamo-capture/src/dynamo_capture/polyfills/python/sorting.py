"""``sorted`` with CPython's own comparisons in CPython's own order, which a program's ``__lt__`` may see.

That holds for up to 63 items: the run at the start, then each of the rest put in by halving. CPython merges longer
lists from parts; here they are put in one by one as well. What is a run at the start depends on the version.
"""

from __future__ import annotations

import bisect
import sys
from collections.abc import Callable, Sequence
from typing import Any

from dynamo_capture.polyfills.python.c_sizes import c_size, c_size_or_none
from dynamo_capture.polyfills.registry import substitutes


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


@substitutes(bisect.bisect_left)
def bisect_left(
    a: Sequence[Any], x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> int:
    """The first place at which ``x`` keeps a sorted sequence sorted; ``key`` is asked of the items, not of ``x``."""
    return _place(a, c_size(lo), c_size_or_none(hi), key, lambda rank: rank < x)


@substitutes(bisect.bisect_right)
def bisect_right(
    a: Sequence[Any], x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> int:
    """The last place at which ``x`` keeps a sorted sequence sorted."""
    return _place(a, c_size(lo), c_size_or_none(hi), key, lambda rank: not x < rank)


def _place(
    a: Sequence[Any],
    low: int,
    high: int | None,
    key: Callable[[Any], Any] | None,
    goes_before: Callable[[Any], bool],
) -> int:
    """The first place of which the item does not go before what is looked for."""
    if low < 0:
        raise ValueError("lo must be non-negative")
    if isinstance(a, (dict, set, frozenset)) or hasattr(type(a), "__torch_function__"):
        raise TypeError(f"{type(a).__name__} is not a sequence")
    high = len(a) if high is None or high == -1 else high
    while low < high:
        middle = (low + high) // 2
        if goes_before(a[middle] if key is None else key(a[middle])):
            low = middle + 1
        else:
            high = middle
    return low


@substitutes(bisect.insort_left)
def insort_left(
    a: list[Any], x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> None:
    """Put ``x`` before its equals."""
    lo, hi = c_size(lo), c_size_or_none(hi)
    place = bisect_left(a, x if key is None else key(x), lo, hi, key=key)
    a.insert(place, x)


@substitutes(bisect.insort_right)
def insort_right(
    a: list[Any], x: Any, lo: int = 0, hi: int | None = None, *, key: Callable[[Any], Any] | None = None
) -> None:
    """Put ``x`` behind its equals."""
    lo, hi = c_size(lo), c_size_or_none(hi)
    place = bisect_right(a, x if key is None else key(x), lo, hi, key=key)
    a.insert(place, x)
