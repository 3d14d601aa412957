"""What the frame hook does with wrong answers and errors of callbacks: the program runs as written."""

from __future__ import annotations

import gc
import logging
import sys
import traceback
from types import CodeType
from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import Entry, FrameCallback, FrameView


def plus_one(x: int) -> int:
    return x + 1


def times_hundred(x: int) -> int:
    a = b = c = d = e = f = x  # more locals than the original
    return [a, b, c, d, e, f].count(x) * 0 + sum((a, b, c, d, e, f, x * 94))


def test_exceptions_of_callbacks(caplog: pytest.LogCaptureFixture, answering: Any, fresh: Any) -> None:
    f, g = fresh(plus_one), fresh(times_hundred)  # equal code objects are one key

    def fail(frame: FrameView) -> Any:
        raise RuntimeError("a bug in the compiler")

    def refuse(frame: FrameView) -> Any:
        raise frame_hook.propagate(ValueError("fullgraph"))

    answers: dict[CodeType, Any] = {f.__code__: fail, g.__code__: refuse}
    seen: list[str] = []
    wrapped = frame_hook.optimize(f, answering(answers, seen))
    with caplog.at_level(logging.ERROR, "dynamo_capture"):
        assert wrapped(1) == 2
    assert "a bug in the compiler" in caplog.text
    assert "plus_one" in caplog.text
    assert wrapped(1) == 2
    assert len(seen) == 1
    for _ in range(2):
        with pytest.raises(ValueError, match="fullgraph") as caught:
            frame_hook.optimize(g, answering(answers))(1)
        assert "refuse" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]


@pytest.mark.parametrize("answer", [42, "text"])
def test_wrong_answers_leave_the_program_alone(
    answer: object, caplog: pytest.LogCaptureFixture, fresh: Any
) -> None:
    f = fresh(plus_one)
    assert frame_hook.optimize(f, lambda frame, count: answer)(1) == 2
    assert "plus_one" in caplog.text
    g = fresh(plus_one)
    with frame_hook.region(None):
        previous = frame_hook.set_callback(lambda frame, count: answer if frame.code is g.__code__ else None)
        try:
            with pytest.raises(TypeError, match="frame callback answers"):
                g(1)
        finally:
            frame_hook.set_callback(previous)


def test_a_limit_that_cannot_be_told(caplog: pytest.LogCaptureFixture, fresh: Any) -> None:
    def broken() -> int:
        raise NameError("a builtin that the program took away")

    f = fresh(plus_one)
    wrapped = frame_hook.optimize(
        f, FrameCallback(lambda frame, entries: None, frame_hook.CodeCache(stated=broken))
    )
    with caplog.at_level(logging.ERROR, "dynamo_capture"):
        assert wrapped(1) == 2
    assert "runs uncompiled" in caplog.text


def _with_free_variable() -> Any:
    free = 1
    return lambda x: free


@pytest.mark.parametrize(
    "other",
    [
        lambda: 1,
        lambda x, y: 1,
        lambda *x: 1,
        lambda *, x: 1,
        lambda x, /: 1,
        lambda x: (yield),
        _with_free_variable(),
    ],
)
def test_replacements_that_do_not_fit_are_refused(
    other: Any, caplog: pytest.LogCaptureFixture, answering: Any, fresh: Any
) -> None:
    f = fresh(plus_one)
    assert frame_hook.optimize(f, answering({f.__code__: lambda _: Entry(other.__code__)}))(1) == 2
    assert "cannot be replaced" in caplog.text
    with pytest.raises(ValueError, match="cannot be replaced"):
        frame_hook.add_entry(f.__code__, Entry(other.__code__))


def test_guards_may_change_the_cache_under_the_search(answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)
    cache: list[FrameCallback] = []

    def guard(locals_: tuple[int, ...], function: Any) -> bool:
        cache[0].cache.reset()
        gc.collect()
        return False

    callback = FrameCallback(answering({f.__code__: lambda _: Entry(times_hundred.__code__, guard)}))
    cache.append(callback)
    wrapped = frame_hook.optimize(f, callback)
    assert [wrapped(i) for i in range(4)] == [0, 100, 200, 300]


def test_raising_guards_do_not_hold(capfd: pytest.CaptureFixture[str], answering: Any, fresh: Any) -> None:
    f = fresh(plus_one)

    def guard(locals_: tuple[int, ...], function: Any) -> bool:
        raise OSError("guard trouble")

    unraisable: list[Any] = []
    before, sys.unraisablehook = sys.unraisablehook, unraisable.append
    try:
        wrapped = frame_hook.optimize(
            f, answering({f.__code__: lambda _: Entry(times_hundred.__code__, guard)})
        )
        assert (wrapped(1), wrapped(2)) == (100, 200)
    finally:
        sys.unraisablehook = before
    assert [type(trouble.exc_value) for trouble in unraisable] == [OSError]
