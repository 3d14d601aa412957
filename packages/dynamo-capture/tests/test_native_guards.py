"""Entries guarded by the guards package's native evaluator, checked by the hook without building a Python object."""

from __future__ import annotations

from typing import Any

import pytest

from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import Entry

pytest.importorskip("torch")
fx_guards = pytest.importorskip("fx_guards")
pytest.importorskip("fx_guards._native", reason="the native evaluator is not built")
source = pytest.importorskip("fx_interface.source")


def test_native_evaluators_choose_the_entry() -> None:
    def f(kind: object, x: int = 0, *rest: int) -> Any:
        return "original"

    built: list[Any] = []

    def callback(frame: frame_hook.FrameView, count: int) -> Any:
        if frame.code is not f.__code__:
            return None
        wanted = type(frame.locals["kind"])
        built.append(wanted)
        evaluator = fx_guards.build(
            [fx_guards.TypeIs(source.LocalSource("kind"), wanted)],
            varnames=frame.code.co_varnames,
            freevars=frame.code.co_freevars,
        )
        return Entry(f.__code__.replace(co_consts=(None, wanted.__name__)), evaluator)

    wrapped = frame_hook.optimize(f, callback)
    assert [wrapped(value) for value in (1, 2, "a", 3, "b", 4.0, 5)] == [
        "int",
        "int",
        "str",
        "int",
        "str",
        "float",
        "int",
    ]
    assert built == [int, str, float]
    assert sorted(entry.hits for entry in frame_hook.entries(f.__code__)) == [0, 1, 3]


def test_one_fact_leads_to_the_entry_without_asking_the_others() -> None:
    def f(x: object, y: object = None) -> Any:
        return "original"

    def callback(frame: frame_hook.FrameView, count: int) -> Any:
        if frame.code is not f.__code__:
            return None
        wanted = frame.locals["x"]
        facts = [
            fx_guards.EqualsConstant(source.LocalSource("x"), wanted),
            fx_guards.TypeIs(source.LocalSource("y"), str),
        ]
        evaluator = fx_guards.build(facts, varnames=frame.code.co_varnames)
        return Entry(f.__code__.replace(co_consts=(None, f"for {wanted}")), evaluator)

    wrapped = frame_hook.optimize(f, callback)
    values = [1, 2, True, "a", None, 2.5]
    assert [wrapped(value, "y") for value in values] == [f"for {value}" for value in values]
    entries = frame_hook.entries(f.__code__)
    for entry, value in zip(reversed(entries), values, strict=True):
        assert entry.guard.check_call(f, value, "y")
    for value in values * 3:
        assert wrapped(value, "y") == f"for {value}"
    assert {entry.guard.failed for entry in entries} == {-1}, "another entry was asked and failed"
    entries[0].invalidate()  # the index is made anew without it
    assert [wrapped(value, "y") for value in values] == [f"for {value}" for value in values]
