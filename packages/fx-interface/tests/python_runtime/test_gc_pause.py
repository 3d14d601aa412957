"""The pause ends as it began, also after an exception and inside of another."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fx_interface.python_runtime.gc_pause import collector_paused, loading_modules


@pytest.fixture(autouse=True)
def _collecting() -> Iterator[None]:
    before = gc.isenabled()
    yield
    (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_is_left_as_it_was(collecting: bool) -> None:
    (gc.enable if collecting else gc.disable)()
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled() is collecting


def test_pauses_nest_and_end_with_an_exception() -> None:
    gc.enable()
    seen = []

    def work() -> None:
        with collector_paused():
            with collector_paused():
                pass
            seen.append(gc.isenabled())
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert seen == [False]
    assert gc.isenabled()


def _generation_of(wanted: object) -> int:
    return next(n for n in range(3) if any(found is wanted for found in gc.get_objects(generation=n)))


def test_what_loading_modules_makes_is_old_at_once() -> None:
    gc.enable()
    gc.unfreeze()
    with loading_modules():
        made = [object()]
    assert gc.isenabled()
    assert _generation_of(made) == 2


def test_what_the_program_has_frozen_stays_frozen() -> None:
    gc.enable()
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with loading_modules():
            made = [object()]
        assert 0 < gc.get_freeze_count() <= count
        assert _generation_of(made) == 0
    finally:
        gc.unfreeze()
