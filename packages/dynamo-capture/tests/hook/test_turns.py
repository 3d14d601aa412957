"""Entries that run in turns: the one that should come next is tried first."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import Entry, FrameView


def plus_one(x: int) -> int:
    return x + 1


def choosing(f: Any, answering: Any, asked: list[int]) -> Any:
    """``f`` with an entry for each argument; ``asked`` gets the arguments that checked guards are for."""

    def compile_for(frame: FrameView) -> Entry:
        wanted = frame.locals["x"]

        def guard(locals_: tuple[int, ...], function: Any) -> bool:
            asked.append(wanted)
            return locals_[0] == wanted

        return Entry(f.__code__.replace(co_consts=(None, 1000 * wanted)), guard, wanted)

    return frame_hook.optimize(f, answering({f.__code__: compile_for}))


LAYERS = [call for layer in range(5) for call in (layer, 6, 7)]
LONG = [call for layer in range(5) for call in (layer, *[6, 7] * 5)]


@pytest.mark.parametrize("calls", [[1, 2], [*range(7)], LAYERS, LONG], ids=["two", "seven", "shared", "long"])
def test_calls_that_come_in_turns_check_one_guard_each(answering: Any, fresh: Any, calls: list[int]) -> None:
    asked: list[int] = []
    wrapped = choosing(fresh(plus_one), answering, asked)
    for _ in range(4):
        asked.clear()
        assert [wrapped(x) for x in calls] == [1001 * x for x in calls]
    assert asked == calls


def test_turns_are_learned_again_when_an_entry_is_gone(answering: Any, fresh: Any) -> None:
    asked: list[int] = []
    f = fresh(plus_one)
    wrapped = choosing(f, answering, asked)
    for _ in range(3):
        assert [wrapped(x) for x in (1, 2, 3)] == [1001, 2002, 3003]
    next(entry for entry in frame_hook.entries(f.__code__) if entry.extra == 2).invalidate()
    for calls in ((1, 3), (1, 3, 4), (4, 1), (1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)):
        asked.clear()
        assert [wrapped(x) for x in calls] == [1001 * x for x in calls]
    assert asked == [1, 2, 3, 4]
