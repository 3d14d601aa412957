"""Limits on cached entries, and what makes them go."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.code_cache import CodeCache
from dynamo_capture.hook.frame_hook import Entry, FrameCallback, FrameView


def plus_one(x: int) -> int:
    return x + 1


def times_hundred(x: int) -> int:
    return x * 100


def test_another_total_may_be_stated_at_any_time() -> None:
    stated: list[int | None] = [None]
    cache = CodeCache(limit=2, total=3, stated=lambda: stated[0])
    code = plus_one.__code__
    cache.count(code)
    assert cache.may_compile(code)
    stated[0] = 1
    assert not cache.may_compile(code)
    stated[0] = 9
    assert cache.total == 9
    stated[0] = None
    assert cache.total == 3


def test_limits_of_the_cache(caplog: pytest.LogCaptureFixture, answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    cache = CodeCache(limit=3, total=5)

    def exactly(frame: FrameView) -> Entry:
        wanted = frame.locals["x"]
        return Entry(f.__code__.replace(co_consts=(None, 100)), lambda given, _: given[0] == wanted, wanted)

    wrapped = frame_hook.optimize(f, FrameCallback(answering({f.__code__: exactly}), cache))
    assert [wrapped(i) for i in range(4)] == [100, 101, 102, 103]
    assert [entry.extra for entry in frame_hook.entries(f.__code__)] == [3, 2, 1]
    assert wrapped(4) == 104
    assert cache.compilations(f.__code__) == 5
    assert wrapped(9) == 10
    assert "compiled 5 times" in caplog.text
    assert wrapped(4) == 104, "what is compiled is still used"
    cache.reset()
    assert frame_hook.entries(f.__code__) == []
    assert wrapped(9) == 109


class _Tied:
    """What an entry was made for."""

    def __init__(self) -> None:
        self.dead = False

    def is_dead(self) -> bool:
        return self.dead


def test_entries_that_died_count_only_in_all(
    caplog: pytest.LogCaptureFixture, answering: Any, fresh: Any
) -> None:
    f = fresh(plus_one)
    made: list[_Tied] = []

    def exactly(frame: FrameView) -> Entry:
        wanted = frame.locals["x"]
        made.append(_Tied())
        return Entry(times_hundred.__code__, lambda given, _: given[0] == wanted, made[-1])

    cache = CodeCache(limit=2, total=2, in_all=5)
    wrapped = frame_hook.optimize(f, FrameCallback(answering({f.__code__: exactly}), cache))
    assert (wrapped(1), wrapped(2)) == (100, 200)
    made[0].dead = True
    assert wrapped(3) == 300
    assert [entry.extra for entry in frame_hook.entries(f.__code__)] == [made[2], made[1]]
    made[1].dead = made[2].dead = True
    assert (wrapped(4), wrapped(5)) == (400, 500)
    made[3].dead = True
    assert wrapped(6) == 7, "five compilations in all"
    assert wrapped(5) == 500
    assert "uncompiled" in caplog.text


def test_callbacks_neither_count_nor_drop_each_others_entries(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    counts: list[int] = []

    def once(frame: FrameView, count: int) -> Any:
        counts.append(count)
        return Entry(times_hundred.__code__)

    callbacks = [FrameCallback(once, CodeCache(limit=1, total=1)) for _ in range(3)]
    wrapped = [frame_hook.optimize(f, callback) for callback in callbacks]
    assert [one(1) for one in wrapped * 2] == [100] * 6
    assert counts == [0, 0, 0]
    assert [len(frame_hook.entries(f.__code__, id(callback))) for callback in callbacks] == [1, 1, 1]
    callbacks[0].cache.reset()
    assert [one(1) for one in wrapped] == [100] * 3
    assert counts == [0] * 4
    gone = id(callbacks[1])
    del callbacks[1], wrapped[1]
    gc.collect()
    assert frame_hook.entries(f.__code__, gone) == []
    assert [one(1) for one in wrapped] == [100] * 2
    assert counts == [0] * 4


def test_what_is_skipped_under_every_callback_outlives_them(fresh: Any) -> None:
    f = fresh(plus_one)
    frame_hook.skip(f.__code__)
    cache = CodeCache()
    callback = FrameCallback(lambda frame, count: None, cache)
    cache.skip(f.__code__)
    cache.reset()
    assert frame_hook.is_skipped(f.__code__)
    del callback
    gc.collect()
    assert frame_hook.is_skipped(f.__code__)


def test_entries_go_with_their_owners(answering: Any, fresh: Any) -> None:
    class Owner:
        pass

    f = fresh(plus_one)
    owner: Any = Owner()

    def compile_tied(frame: FrameView) -> Entry:
        entry = Entry(times_hundred.__code__)
        frame_hook.tie(entry, (owner, 5))
        return entry

    wrapped = frame_hook.optimize(f, answering({f.__code__: compile_tied}))
    assert wrapped(1) == 100
    (entry,) = frame_hook.entries(f.__code__)
    assert entry.cached
    owner = None
    gc.collect()
    assert frame_hook.entries(f.__code__) == []
    assert not entry.cached


def test_skips_last_until_reset(fresh: Any) -> None:
    cache = CodeCache()
    f = fresh(plus_one)
    asked: list[FrameView] = []
    wrapped = frame_hook.optimize(f, FrameCallback(lambda frame, count: asked.append(frame), cache))
    cache.skip(f.__code__)
    assert wrapped(1) == 2
    assert asked == []
    assert cache.codes() == [f.__code__]
    cache.reset()
    assert wrapped(1) == 2
    assert [frame.function for frame in asked] == [f]


def test_code_that_dies_is_forgotten(fresh: Any) -> None:
    cache = CodeCache()
    f = fresh(plus_one)
    cache.skip(f.__code__)
    cache.admitting(f.__code__)
    del f
    gc.collect()
    assert cache.codes() == []


def test_equal_code_objects_are_apart(fresh: Any) -> None:
    cache = CodeCache()
    f, g = fresh(plus_one), fresh(plus_one)
    assert f.__code__ == g.__code__
    cache.admitting(f.__code__)
    assert (cache.compilations(f.__code__), cache.compilations(g.__code__)) == (1, 0)


@pytest.mark.parametrize(("limit", "total"), [(0, 5), (4, 3)])
def test_limits_that_make_no_sense(limit: int, total: int) -> None:
    with pytest.raises(ValueError, match="at least one entry"):
        CodeCache(limit, total)
