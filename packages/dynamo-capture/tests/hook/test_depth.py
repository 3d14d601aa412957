"""Recursion, large frames and small stacks under the frame hook."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from dynamo_capture.bytecode import Emitter, assemble, body_like, decode, function_prologue
from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import SKIP, SKIP_RECURSIVELY, Entry, FrameCallback, FrameView


def test_large_replacements_find_room_at_any_depth(answering: Any, fresh: Any) -> None:
    def grown(x: int) -> Any:
        return x

    body = decode(grown.__code__)
    emitter = Emitter()
    for i in range(300):
        emitter.load_const(i)
        emitter.store_fast(f"v{i}")
    for i in range(300):
        emitter.load_fast(f"v{i}")
    emitter.build_list(300)
    emitter.load_global_callable("sum")
    emitter.swap(3)
    emitter.swap(2) if sys.version_info >= (3, 13) else None
    emitter.instructions = emitter.instructions[: -(2 + (sys.version_info >= (3, 13)))]
    emitter.load_method("__len__")
    emitter.call(0)
    emitter.load_fast("x")
    emitter.binary_op("+")
    emitter.return_value()
    large = assemble(body_like(body, [*function_prologue((), ()), *emitter.instructions]))

    def dive(depth: int, f: Any) -> int:
        return f(depth) if depth == 0 else dive(depth - 1, f)

    for depth in range(120):
        f = fresh(grown)
        wrapped = frame_hook.optimize(dive, answering({f.__code__: lambda _: Entry(large)}))
        first = wrapped(depth, f)
        assert first in (0, 300), "the first call may run the original if there is no room"
        assert wrapped(depth, f) == 300
        assert wrapped(depth, f) == 300


def test_recursion_ends_in_recursion_error_and_keeps_its_depth(answering: Any) -> None:
    def depth_reached(start: Callable[..., int]) -> int:
        deepest = 0

        def down(n: int) -> int:
            nonlocal deepest
            deepest = n
            return down(n + 1)

        with pytest.raises(RecursionError):
            start(down)
        return deepest

    plain = depth_reached(lambda down: down(0))
    hooked = depth_reached(lambda down: frame_hook.optimize(down, answering({}))(0))
    assert hooked >= plain - 25


def test_too_deep_to_compile_is_not_too_deep_to_run() -> None:
    def leaf() -> int:
        return 1

    def down(n: int) -> int:
        return leaf() if n == 0 else down(n - 1)

    def deep_callback(frame: FrameView, count: int) -> Any:
        def deeper(k: int) -> int:
            return 0 if k == 0 else deeper(k - 1)

        deeper(50)
        return Entry(frame.code.replace())

    def deepest(start: Callable[[int], int]) -> int:
        depth = 1800
        while True:
            try:
                start(depth)
            except RecursionError:
                return depth
            depth += 1

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(2000)
    try:
        found = deepest(frame_hook.optimize(down, FrameCallback(deep_callback)))
        assert found >= deepest(down) - 3
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("answer", [None, SKIP, SKIP_RECURSIVELY, "replace"])
def test_recursion_far_beyond_the_c_stack(answer: Any, answering: Any) -> None:
    def down(n: int) -> int:
        return 0 if n == 0 else 1 + down(n - 1)

    replaced = assemble(decode(down.__code__))
    reply = (lambda _: Entry(replaced)) if answer == "replace" else answer
    wrapped = frame_hook.optimize(down, answering({down.__code__: reply}))
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(200_000)
    try:
        assert wrapped(60_000) == 60_000
    finally:
        sys.setrecursionlimit(limit)


def test_recursion_through_the_wrapper_ends_in_recursion_error(answering: Any) -> None:
    def down(n: int) -> int:
        return wrapped(n + 1)

    wrapped = frame_hook.optimize(down, answering({}))
    limit = sys.getrecursionlimit()
    for allowed in (limit, 1_000_000):
        sys.setrecursionlimit(allowed)
        try:
            with pytest.raises(RecursionError):
                wrapped(0)
        finally:
            sys.setrecursionlimit(limit)


def test_recursion_in_a_thread_with_a_small_stack(answering: Any) -> None:
    outcome: list[Any] = []

    def down(n: int) -> int:
        return down(n + 1)

    def run() -> None:
        try:
            frame_hook.optimize(down, answering({}))(0)
        except RecursionError as error:
            outcome.append(error)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(outcome) == 1
