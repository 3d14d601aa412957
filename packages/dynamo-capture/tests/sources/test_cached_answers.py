"""What functions with a cache hold is read from the cache, which nothing keeps alive."""

from __future__ import annotations

import functools
import gc
import weakref
from typing import Any

import pytest

from dynamo_capture.sources.cached_answers import caches_of, is_answered


@pytest.mark.parametrize("size", [None, 2, 128])
def test_answers_are_those_that_the_cache_holds(size: int | None) -> None:
    @functools.lru_cache(size)
    def twice(x: Any) -> Any:
        return 2 * x

    assert not is_answered(twice, (3,))
    twice(3)
    twice("a")
    assert is_answered(twice, (3,))
    assert is_answered(twice, ("a",))
    assert not is_answered(twice, (4,))
    twice.cache_clear()
    assert not is_answered(twice, (3,))
    twice(3)
    assert is_answered(twice, (3,))


def test_attributes_of_the_function_are_no_table() -> None:
    @functools.cache
    def named(x: Any) -> Any:
        return x

    named.note = {}  # type: ignore[attr-defined]
    assert vars(named) not in caches_of(named)
    assert len(caches_of(named)) == 1


@pytest.mark.parametrize("size", [None, 2])
def test_a_function_whose_results_lead_to_it_is_freed(size: int | None) -> None:
    class Owner:
        def __init__(self) -> None:
            self.found = functools.lru_cache(size)(lambda x: self)

    owner = Owner()
    owner.found(1)
    assert is_answered(owner.found, (1,))
    assert is_answered(owner.found, (1,))
    freed = weakref.ref(owner)
    del owner
    gc.collect()
    assert freed() is None
