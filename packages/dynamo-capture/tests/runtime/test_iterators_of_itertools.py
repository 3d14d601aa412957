"""Iterators that go on where others stood: the same class, and the same items."""

from __future__ import annotations

import itertools
import operator
import warnings
from typing import Any

import pytest

from dynamo_capture.runtime import iterators as made


def _begun(iterator: Any, steps: int) -> Any:
    for _ in range(steps):
        next(iterator)
    return iterator


PAIRS: dict[str, tuple[Any, Any]] = {
    "chain": (made.chain(iter([2]), iter([[3]])), _begun(itertools.chain([1, 2], [3]), 1)),
    "cycle": (made.cycle([1], iter([2, 3])), _begun(itertools.cycle([1, 2, 3]), 1)),
    "accumulate": (made.accumulate(iter([1, 2]), None, 3), itertools.accumulate([1, 2], initial=3)),
    "accumulate on": (made.accumulate_on(iter([3]), None, 3), _begun(itertools.accumulate([1, 2, 3]), 2)),
    "dropwhile": (made.drops_nothing(iter([1, 5])), _begun(itertools.dropwhile(bool, [1, 0, 1, 5]), 1)),
    "pairwise": (made.pairwise(2, iter([3, 4])), _begun(itertools.pairwise([1, 2, 3, 4]), 1)),
    "product": (made.product(itertools.product, 1, (2,), "ab"), _begun(itertools.product("ab", repeat=2), 1)),
    "permutations": (made.arranged(itertools.permutations, 1, (), "ab"), _begun(itertools.permutations("ab"), 1)),
    "zip_longest": (made.zip_longest(0, "b", ()), _begun(itertools.zip_longest("ab", [1], fillvalue=0), 1)),
    "tee": (made.tee_at(made.tee([1], iter([2])), 1), _begun(itertools.tee([1, 2])[0], 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_goes_on(name) -> None:
    mine, theirs = PAIRS[name]
    assert type(mine) is type(theirs)
    assert list(itertools.islice(mine, 6)) == list(itertools.islice(theirs, 6))


@pytest.mark.parametrize("kind", made._ENDED, ids=lambda kind: kind.__name__)
def test_ended(kind) -> None:
    assert type(made.ended(kind)) is kind
    assert list(made.ended(kind)) == []


def test_the_class_of_a_group() -> None:
    assert type(made.ended_group()) is made.GROUP
    assert list(made.ended_group()) == []


def test_no_warning_about_their_states() -> None:
    """As CPython gives from 3.12 on to whoever sets one. What a program filters stays as it is."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        made.accumulate_on(iter([3]), operator.add, 2)
        made.groupby(iter("b"), None, "a", "a", "a")
        assert list(warnings.filters) == before
    assert not heard
