"""The pause ends as it began, also after an exception and inside of another."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fx_interface.python_runtime.gc_pause import collector_paused


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
