"""Each substitute gives what its original gives: results, how much it consumes, and exceptions."""

from __future__ import annotations

import bisect
import builtins
import collections
import functools
import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dynamo_capture.polyfills import SUBSTITUTES
from dynamo_capture.polyfills.registry import substitutes

Call = tuple[Any, tuple[Any, ...], dict[str, Any]]
items = [3, 1, 2, 1]
words = ["b", "A", "c", "a"]


class _Hinting:
    def __init__(self, hint: Any) -> None:
        self.hint = hint

    def __length_hint__(self) -> Any:
        if isinstance(self.hint, Exception):
            raise self.hint
        return self.hint


def _hints() -> Iterator[Call]:
    for one in (
        items,
        5,
        iter(items),
        *map(_Hinting, (3, True, NotImplemented, -1, "a", TypeError("no"), ValueError("no"))),
    ):
        yield operator.length_hint, (one,), {}
        for default in (7, True, 1.5, 2**70, {}, None):
            yield operator.length_hint, (one, default), {}


def _builtins() -> Iterator[Call]:
    yield builtins.sum, (items,), {}
    yield math.prod, (items,), {}
    yield math.prod, ([2, 0.5],), {"start": 3}
    yield builtins.sum, (items, 5), {}
    yield builtins.sum, ([[1], [2]], []), {}
    yield builtins.sum, (words, ""), {}
    yield builtins.divmod, (7, -2), {}
    yield builtins.divmod, (7, 0), {}
    yield dict.fromkeys, (words, 0), {}
    for original, kind in ((list.index, list), (tuple.index, tuple)):
        yield original, (kind(items), 1, 2), {}
        yield original, (kind(items), 9), {}
        yield original, (kind(items), 1, None), {}
        yield original, (kind(items), 1, -1, 4), {}
    for original, kind in ((list.count, list), (tuple.count, tuple)):
        yield original, (kind(items), 1), {}


def _functions() -> Iterator[Call]:
    yield functools.reduce, (operator.sub, items), {}
    yield functools.reduce, (operator.sub, items, 10), {}
    yield functools.reduce, (operator.sub, []), {}
    yield operator.countOf, (items, 1), {}
    yield operator.indexOf, (items, 2), {}
    yield operator.indexOf, (items, 9), {}


class _Index:
    def __index__(self) -> int:
        return 1


_SIZES = (1, True, _Index(), 2**70, 1.5, "a")


def _sizes() -> Iterator[Call]:
    """What functions in C convert to a size before they do anything."""
    for size in _SIZES:
        for original in (bisect.bisect_left, bisect.bisect_right):
            yield original, (sorted(items), 1, size), {}
            yield original, (sorted(items), 1, 0, size), {}
        for original in (bisect.insort_left, bisect.insort_right):
            yield original, ((), 1, size), {}
            yield original, ((1,), "a", 0, size), {}


def _outcome(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    try:
        result = function(*args, **kwargs)
        if isinstance(result, Iterator):
            result = list(result)
    except Exception as error:
        return type(error), str(error)
    return result


@pytest.mark.parametrize(("original", "args", "kwargs"), [*_builtins(), *_functions(), *_hints(), *_sizes()])
def test_outcome_is_the_originals(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    assert _outcome(SUBSTITUTES[original], args, kwargs) == _outcome(original, args, kwargs)


@pytest.mark.parametrize("limit", [3, None])
@pytest.mark.parametrize("size", _SIZES)
@pytest.mark.parametrize("method", [collections.deque.rotate, collections.deque.insert])
def test_methods_of_deques_convert_places_first(method: Any, size: Any, limit: int | None) -> None:
    def outcome(function: Callable[..., Any]) -> Any:
        changed = collections.deque([1, 2, 3], limit)
        given = (size, 9) if method is collections.deque.insert else (size,)
        return _outcome(function, (changed, *given), {}), changed

    assert outcome(SUBSTITUTES[method]) == outcome(method)


def test_getters_agree() -> None:
    value = {"a": [1, 2], "b": 3}
    assert SUBSTITUTES[operator.itemgetter]("a", "b")(value) == operator.itemgetter("a", "b")(value)
    assert SUBSTITUTES[operator.attrgetter]("real.imag")(4) == operator.attrgetter("real.imag")(4)
    assert SUBSTITUTES[operator.attrgetter]("real", "imag")(4) == (4, 0)
    assert SUBSTITUTES[operator.methodcaller]("get", "c", 5)(value) == 5


def test_list_methods_change_the_list() -> None:
    mine, theirs = [3, 1, 2, 1], [3, 1, 2, 1]
    SUBSTITUTES[list.remove](mine, 1)
    theirs.remove(1)
    assert mine == theirs
    SUBSTITUTES[list.sort](mine, key=operator.neg)
    assert mine == [3, 2, 1]


def test_declaring_twice_names_both_places() -> None:
    with pytest.raises(ValueError, match=r"polyfills\.python\.builtins\.sum_ and .*<lambda>"):
        substitutes(builtins.sum)(lambda iterable: 0)
