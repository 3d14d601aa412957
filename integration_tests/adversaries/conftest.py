"""Runs the chosen adversaries one after another in a process beside the other tests, from the end of collection on."""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

_STARTED = pytest.StashKey[dict[tuple[str, int, str], Future[tuple[frozenset[int], str]]]]()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that wait for an adversary come last."""
    items.sort(key=lambda item: item.path.parent == FOLDER)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what was chosen; its tests wait for it."""
    from driver import run_in_test

    pool = ThreadPoolExecutor(1)
    session.stash[_STARTED] = {}
    if session.config.option.collectonly:
        return
    for item in session.items:
        if (
            item.path.parent == FOLDER
            and isinstance(item, pytest.Function)
            and "wait_for" in item.fixturenames
        ):
            given = item.callspec.params
            name, count, backend = run = given["name"], given["count"], given["backend"]
            session.stash[_STARTED][run] = pool.submit(run_in_test, FOLDER / f"{name}.py", count, backend)
    pool.shutdown(wait=False)


@pytest.fixture
def wait_for(request: pytest.FixtureRequest) -> Callable[[str, int, str], tuple[frozenset[int], str]]:
    """Waits for the run of an adversary: the numbers of programs that differed, and what it printed."""
    started = request.session.stash[_STARTED]

    def wait(name: str, count: int, backend: str) -> tuple[frozenset[int], str]:
        return started[name, count, backend].result()

    return wait
