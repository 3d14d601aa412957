"""Substitutes for ``heapq``: the same comparisons in the same order, so that equal items end up in the same places."""

from __future__ import annotations

import heapq
from typing import Any

from dynamo_capture.polyfills.registry import substitutes


def _check(name: str, heap: Any) -> None:
    if not isinstance(heap, list):
        raise TypeError(f"{name}() argument 1 must be list, not {type(heap).__name__}")


def _before(one: Any, other: Any, largest: bool) -> bool:
    return bool(other < one) if largest else bool(one < other)


def _rise(heap: list[Any], top: int, place: int, largest: bool) -> None:
    """Move the item at ``place`` towards ``top`` until its parent comes first."""
    item = heap[place]
    while place > top:
        parent = (place - 1) >> 1
        if not _before(item, heap[parent], largest):
            break
        heap[place] = heap[parent]
        place = parent
    heap[place] = item


def _sink(heap: list[Any], top: int, largest: bool) -> None:
    """Move the item at ``top`` down to a leaf, always along the child that comes first, and let it rise from there."""
    place, count, item = top, len(heap), heap[top]
    while 2 * place + 1 < count:
        child = 2 * place + 1
        if child + 1 < count and not _before(heap[child], heap[child + 1], largest):
            child += 1
        heap[place] = heap[child]
        place = child
    heap[place] = item
    _rise(heap, top, place, largest)


def _make(heap: list[Any], largest: bool) -> None:
    for place in range(len(heap) // 2 - 1, -1, -1):
        _sink(heap, place, largest)


def _pop(heap: list[Any], largest: bool) -> Any:
    last = heap.pop()
    if not heap:
        return last
    first = heap[0]
    heap[0] = last
    _sink(heap, 0, largest)
    return first


def _replace(heap: list[Any], item: Any, largest: bool) -> Any:
    first = heap[0]
    heap[0] = item
    _sink(heap, 0, largest)
    return first


@substitutes(heapq.heappush)
def heappush(heap: list[Any], item: Any, /) -> None:
    """Add an item."""
    _check("heappush", heap)
    heap.append(item)
    _rise(heap, 0, len(heap) - 1, False)


@substitutes(heapq.heappop)
def heappop(heap: list[Any], /) -> Any:
    """Take the smallest item."""
    _check("heappop", heap)
    return _pop(heap, False)


@substitutes(heapq.heapify)
def heapify(heap: list[Any], /) -> None:
    """Order a list as a heap."""
    _check("heapify", heap)
    _make(heap, False)


@substitutes(heapq.heapreplace)
def heapreplace(heap: list[Any], item: Any, /) -> Any:
    """Take the smallest item, then add one."""
    _check("heapreplace", heap)
    return _replace(heap, item, False)


@substitutes(heapq.heappushpop)
def heappushpop(heap: list[Any], item: Any, /) -> Any:
    """Add an item, then take the smallest."""
    _check("heappushpop", heap)
    if heap and heap[0] < item:
        return _replace(heap, item, False)
    return item


def _make_largest(heap: list[Any]) -> None:
    _make(heap, True)


def _pop_largest(heap: list[Any]) -> Any:
    return _pop(heap, True)


def _replace_largest(heap: list[Any], item: Any) -> Any:
    return _replace(heap, item, True)


for _name, _function in (
    ("_heapify_max", _make_largest),
    ("_heappop_max", _pop_largest),
    ("_heapreplace_max", _replace_largest),
):  # what ``nsmallest`` and ``merge`` use
    if hasattr(heapq, _name):
        substitutes(getattr(heapq, _name))(_function)
