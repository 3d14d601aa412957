"""Substitutes for ``itertools``: generators."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from dynamo_capture.polyfills.registry import substitutes

_MISSING: Any = object()


@substitutes(itertools.chain)
def chain(*iterables: Iterable[Any]) -> Iterator[Any]:
    """Items of each iterable in turn."""
    for iterable in iterables:
        yield from iterable


@substitutes(itertools.chain.from_iterable)
def chain_from_iterable(iterables: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """Items of each iterable in turn."""
    for iterable in iterables:
        yield from iterable


@substitutes(itertools.islice)
def islice(iterable: Iterable[Any], *bounds: int | None) -> Iterator[Any]:
    """A slice of an iterable; consumes no more of it than the original does."""
    window = slice(*bounds)
    start = 0 if window.start is None else window.start
    step = 1 if window.step is None else window.step
    if len(bounds) == 1 and window.stop is not None and window.stop < 0:
        raise ValueError("Stop argument for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    if start < 0 or step < 1 or (window.stop is not None and window.stop < 0):
        raise ValueError("Indices for islice() must be None or an integer: 0 <= x <= sys.maxsize.")
    position, wanted = 0, start
    iterator = iter(iterable)
    while window.stop is None or position < window.stop:
        item = next(iterator, _MISSING)
        if item is _MISSING:
            return
        if position == wanted:
            yield item
            wanted += step
        position += 1


@substitutes(itertools.count)
def count(start: Any = 0, step: Any = 1) -> Iterator[Any]:
    """``start``, ``start + step``, ... without end."""
    value = start
    while True:
        yield value
        value = value + step


@substitutes(itertools.repeat)
def repeat(object: Any, times: int | None = None) -> Iterator[Any]:
    """``object`` again and again, ``times`` times if given."""
    if times is None:
        while True:
            yield object
    for _ in range(times):
        yield object


@substitutes(itertools.cycle)
def cycle(iterable: Iterable[Any]) -> Iterator[Any]:
    """The items, then the same again without end."""
    saved = []
    for item in iterable:
        yield item
        saved.append(item)
    while saved:
        yield from saved


@substitutes(itertools.accumulate)
def accumulate(
    iterable: Iterable[Any], func: Callable[[Any, Any], Any] | None = None, *, initial: Any = None
) -> Iterator[Any]:
    """Running totals."""
    combine = operator.add if func is None else func
    iterator = iter(iterable)
    total = initial
    if initial is None:
        total = next(iterator, _MISSING)
        if total is _MISSING:
            return
    yield total
    for item in iterator:
        total = combine(total, item)
        yield total


@substitutes(itertools.takewhile)
def takewhile(predicate: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    """Items up to the first that fails."""
    for item in iterable:
        if not predicate(item):
            return
        yield item


@substitutes(itertools.dropwhile)
def dropwhile(predicate: Callable[[Any], Any], iterable: Iterable[Any]) -> Iterator[Any]:
    """Items from the first that fails on."""
    dropping = True
    for item in iterable:
        if dropping and predicate(item):
            continue
        dropping = False
        yield item


@substitutes(itertools.filterfalse)
def filterfalse(predicate: Callable[[Any], Any] | None, iterable: Iterable[Any]) -> Iterator[Any]:
    """Items that fail."""
    for item in iterable:
        if not (item if predicate is None else predicate(item)):
            yield item


@substitutes(itertools.starmap)
def starmap(function: Callable[..., Any], iterable: Iterable[Iterable[Any]]) -> Iterator[Any]:
    """``function(*item)`` of each item."""
    for arguments in iterable:
        yield function(*arguments)


@substitutes(itertools.compress)
def compress(data: Iterable[Any], selectors: Iterable[Any]) -> Iterator[Any]:
    """Items whose selector is true."""
    for item, selected in zip(data, selectors, strict=False):
        if selected:
            yield item


@substitutes(itertools.pairwise)
def pairwise(iterable: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    """Overlapping pairs."""
    iterator = iter(iterable)
    previous = next(iterator, _MISSING)
    if previous is _MISSING:
        return
    for item in iterator:
        yield previous, item
        previous = item


@substitutes(itertools.product)
def product(*iterables: Iterable[Any], repeat: int = 1) -> Iterator[tuple[Any, ...]]:
    """The Cartesian product, the last position running fastest."""
    results: list[tuple[Any, ...]] = [()]
    pools = [tuple(iterable) for iterable in iterables]
    for _ in range(repeat):
        for pool in pools:
            longer = []
            for prefix in results:
                for item in pool:
                    longer.append((*prefix, item))
            results = longer
    yield from results


@substitutes(itertools.combinations)
def combinations(iterable: Iterable[Any], r: int) -> Iterator[tuple[Any, ...]]:
    """Subsets of ``r`` items in order."""
    pool = tuple(iterable)
    for positions in permutations(range(len(pool)), r):
        if list(positions) == sorted(positions):
            yield tuple(pool[position] for position in positions)


@substitutes(itertools.permutations)
def permutations(iterable: Iterable[Any], r: int | None = None) -> Iterator[tuple[Any, ...]]:
    """Arrangements of ``r`` items (all by default), in lexicographic order of positions."""
    pool = tuple(iterable)
    length = len(pool) if r is None else r
    results: list[tuple[int, ...]] = [()]
    for _ in range(length):
        longer = []
        for prefix in results:
            for position in range(len(pool)):
                if position not in prefix:
                    longer.append((*prefix, position))
        results = longer
    for positions in results:
        yield tuple(pool[position] for position in positions)


@substitutes(itertools.zip_longest)
def zip_longest(*iterables: Iterable[Any], fillvalue: Any = None) -> Iterator[tuple[Any, ...]]:
    """``zip`` to the end of the longest."""
    iterators = [iter(iterable) for iterable in iterables]
    while True:
        items = [next(iterator, _MISSING) for iterator in iterators]
        if all(item is _MISSING for item in items):
            return
        yield tuple(fillvalue if item is _MISSING else item for item in items)


@substitutes(itertools.groupby)
def groupby(
    iterable: Iterable[Any], key: Callable[[Any], Any] | None = None
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Runs of items with equal keys. Each group is read whole before it is given out."""
    group: list[Any] = []
    current: Any = _MISSING
    for item in iterable:
        rank = item if key is None else key(item)
        if current is not _MISSING and not (rank == current):  # noqa: SIM201
            yield current, iter(group)
            group = []
        current = rank
        group.append(item)
    if current is not _MISSING:
        yield current, iter(group)


@substitutes(itertools.combinations_with_replacement)
def combinations_with_replacement(iterable: Iterable[Any], r: int) -> Iterator[tuple[Any, ...]]:
    """Subsets of ``r`` items in order, in which an item may occur again."""
    pool = tuple(iterable)
    if r < 0:
        raise ValueError("r must be non-negative")
    results: list[tuple[int, ...]] = [()]
    for _ in range(r):
        longer = []
        for prefix in results:
            for position in range(prefix[-1] if prefix else 0, len(pool)):
                longer.append((*prefix, position))
        results = longer
    for positions in results:
        yield tuple([pool[position] for position in positions])


@substitutes(itertools.tee)
def tee(iterable: Iterable[Any], n: int = 2) -> tuple[Iterator[Any], ...]:
    """Iterators that share what has been read so far."""
    source = iter(iterable)
    seen: list[Any] = []

    def branch() -> Iterator[Any]:
        position = 0
        while True:
            if position == len(seen):
                item = next(source, _MISSING)
                if item is _MISSING:
                    return
                seen.append(item)
            yield seen[position]
            position += 1

    return tuple([branch() for _ in range(n)])
