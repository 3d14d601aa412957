"""What the frame hook keeps alive: entries, arguments, results, memory."""

from __future__ import annotations

import gc
import itertools
import sys
import tracemalloc
import weakref
from typing import Any

import pytest

from dynamo_capture.bytecode import assemble, decode
from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import Entry


def plus_one(x: int) -> int:
    return x + 1


def times_hundred(x: int) -> int:
    a = b = c = d = e = f = x  # more locals than the original
    return [a, b, c, d, e, f].count(x) * 0 + sum((a, b, c, d, e, f, x * 94))


def test_entries_die_with_the_code(fresh: Any) -> None:
    class Watched:
        def __call__(self, locals_: Any, function: Any) -> bool:
            return True

    guard = Watched()
    reference = weakref.ref(guard)
    f = fresh(plus_one)
    wrapped = frame_hook.optimize(f, lambda frame, count, guard=guard: Entry(times_hundred.__code__, guard))
    assert (wrapped(1), wrapped(2)) == (100, 200)
    del f, wrapped, guard
    gc.collect()
    assert reference() is None


def test_arguments_and_results_are_not_leaked(answering: Any, fresh: Any) -> None:
    class Value:
        pass

    f = fresh(lambda x: [x])
    replaced = assemble(decode(f.__code__))
    wrapped = frame_hook.optimize(
        f, answering({f.__code__: lambda _: Entry(replaced, lambda given, _: True)})
    )
    value = Value()
    wrapped(value)
    count = sys.getrefcount(value)
    codes = sys.getrefcount(replaced), sys.getrefcount(f.__code__), sys.getrefcount(f)
    for _ in range(100):
        wrapped(value)
    assert sys.getrefcount(value) == count
    assert (sys.getrefcount(replaced), sys.getrefcount(f.__code__), sys.getrefcount(f)) == codes
    reference = weakref.ref(value)
    del value
    gc.collect()
    assert reference() is None


def test_memory_does_not_grow(answering: Any, fresh: Any) -> None:
    def once() -> None:
        f = fresh(plus_one)
        wrapped = frame_hook.optimize(
            f, answering({f.__code__: lambda _: Entry(times_hundred.__code__, lambda given, _: True)})
        )
        for i in range(3):
            wrapped(i)
        failing = frame_hook.optimize(fresh(plus_one), answering({}))
        with pytest.raises(TypeError):
            failing(None)

    for _ in range(5):
        once()
    gc.collect()
    tracemalloc.start()
    try:
        for _ in range(20):
            once()
        gc.collect()
        held = [tracemalloc.get_traced_memory()[0]]
        for _ in range(3):
            for _ in range(200):
                once()
            gc.collect()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    grown = min(after - before for before, after in itertools.pairwise(held))
    assert grown < 200 * 48, "less than an object a round; a table of finalizers may grow now and then"
