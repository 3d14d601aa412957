"""Runs the chosen adversaries one after another in a process beside the other tests, from the end of collection on.

Where pytest-xdist shares the tests among processes, one of them gets all adversaries, and starts them then: each would
start them all otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
sys.path.insert(0, str(FOLDER))

_STARTED = pytest.StashKey[dict[tuple[str, int, str], Future[tuple[frozenset[int], str]]]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests that wait for an adversary come last, or first where pytest-xdist gives all of them to one process."""
    items.sort(key=lambda item: (item.path.parent == FOLDER) != _is_worker(config))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start what was chosen; its tests wait for it."""
    if not session.config.option.collectonly and not _is_worker(session.config):
        _start(session)


def _is_worker(config: pytest.Config) -> bool:
    """Whether this is one of several processes that share the tests, and that all collect them."""
    return hasattr(config, "workerinput")


def _start(session: pytest.Session) -> None:
    from driver import run_in_test

    pool = ThreadPoolExecutor(1)
    session.stash[_STARTED] = {}
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
    if _STARTED not in request.session.stash:  # a worker starts them when it gets the first of their tests
        _start(request.session)
    started = request.session.stash[_STARTED]

    def wait(name: str, count: int, backend: str) -> tuple[frozenset[int], str]:
        return started[name, count, backend].result()

    return wait
