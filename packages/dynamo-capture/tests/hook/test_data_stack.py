"""Calls that get room for their frames in one piece behave as any others."""

from __future__ import annotations

import gc
import resource
import sys
import threading

import pytest

from dynamo_capture._eval_frame import call_with_room


def deep(depth: int, *held: object) -> int:
    """Frames of some size, so many of them that no room is enough."""
    return depth if depth == 0 else 1 + deep(depth - 1, *held) - 1


def numbers(count: int):
    yield from range(count)


def test_results_and_exceptions_pass() -> None:
    assert call_with_room(divmod, 7, 2) == (3, 1)
    assert call_with_room(lambda *given: list(given), 1, 2) == [1, 2]
    with pytest.raises(ZeroDivisionError) as raised:
        call_with_room(lambda x: x / 0, 1)
    frames = raised.traceback
    assert frames[-1].frame.f_locals["x"] == 1
    with pytest.raises(TypeError, match="call_with_room"):
        call_with_room()


def test_calls_nest_and_outgrow_their_room() -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(30_000)
    try:
        assert call_with_room(deep, 12_000, *range(20)) == 0
        assert call_with_room(call_with_room, call_with_room, deep, 500) == 0
    finally:
        sys.setrecursionlimit(limit)
    with pytest.raises(RecursionError):
        call_with_room(deep, 10 * limit)
    assert deep(200) == 0


def test_generators_and_frames_outlive_the_call() -> None:
    made = call_with_room(numbers, 3)
    assert next(made) == 0
    assert call_with_room(next, made) == 1
    frame = call_with_room(lambda kept: sys._getframe(), "kept")
    gc.collect()
    assert frame.f_locals == {"kept": "kept"}
    assert list(made) == [2]


def test_each_thread_has_its_own() -> None:
    found: list[int] = []
    threads = [
        threading.Thread(target=lambda: found.append(call_with_room(deep, 300, *range(50)))) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [0] * 8


def _at_every_place(call, steps: int) -> int:
    """Page faults of calls from every place in a chunk of the data stack."""

    def descend(left: int) -> None:
        for _ in range(20):
            leaf()
        if left:
            descend(left - 1)

    def leaf() -> None:
        pass

    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    call(descend, steps)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_no_call_maps_memory() -> None:
    def plain(function, *args):
        return function(*args)

    steps = 800  # several chunks
    assert (
        _at_every_place(call_with_room, steps) < _at_every_place(plain, steps) / 2
    )  # the pages of the room itself
