"""Trace, profile and audit functions beside the frame hook, and the lines that they see."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dynamo_capture.bytecode import assemble, decode
from dynamo_capture.hook import frame_hook
from dynamo_capture.hook.frame_hook import Entry, FrameView


def test_trace_and_profile_functions_are_not_seen(answering: Any) -> None:
    seen: list[str] = []
    called: list[str] = []

    def watched(frame: Any, event: str, argument: Any) -> None:
        called.append(event)

    def body() -> int:
        return sum([1, 2])

    wrapped = frame_hook.optimize(body, answering({}, seen))
    for install in (sys.setprofile, sys.settrace):
        install(watched)
        try:
            assert wrapped() == 3
        finally:
            install(None)
    assert "call" in called
    assert "body" in seen
    assert "watched" not in seen


def test_audit_functions_are_not_seen() -> None:
    """In a process of its own: an audit function stays for good."""
    program = """
import subprocess
import sys
from dynamo_capture.hook import frame_hook
seen, events = [], []
sys.addaudithook(lambda event, arguments: events.append(event))
def callback(frame, count):
    seen.append(frame.code.co_name)
def body():
    return compile("1", "<text>", "eval")
frame_hook.optimize(body, callback)()
assert "compile" in events and seen == ["body"], (events, seen)
"""
    source = str(Path(frame_hook.__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", program], check=True, timeout=60, env={**os.environ, "PYTHONPATH": source}
    )


def test_exceptions_of_replacements_have_the_users_line(answering: Any, fresh: Any) -> None:
    def original(x: int) -> float:
        y = x + 1
        return 1 / y

    f = fresh(original)
    replaced = assemble(decode(f.__code__))
    wrapped = frame_hook.optimize(f, answering({f.__code__: lambda _: Entry(replaced)}))
    for _ in range(3):
        with pytest.raises(ZeroDivisionError) as caught:
            wrapped(-1)
        last = traceback.extract_tb(caught.value.__traceback__)[-1]
        assert (last.name, last.line) == ("original", "return 1 / y")


def traced(kind: str, run: Callable[[], Any], code_name: str) -> list[Any]:
    """Lines or events of the functions so named while ``run`` runs."""
    events: list[Any] = []

    def tracer(frame: Any, event: str, arg: Any) -> Any:
        if frame.f_code.co_name == code_name:
            events.append((event, frame.f_lineno, frame.f_code.co_filename))
        return tracer

    if kind == "settrace":
        outer = sys.gettrace()
        sys.settrace(tracer)
        try:
            run()
        finally:
            sys.settrace(outer)
    elif kind == "setprofile":
        sys.setprofile(tracer)
        try:
            run()
        finally:
            sys.setprofile(None)
    else:
        monitoring = sys.monitoring  # type: ignore[attr-defined]
        chosen = monitoring.events.LINE | monitoring.events.PY_START | monitoring.events.PY_RETURN
        monitoring.use_tool_id(3, "test")
        for event in (monitoring.events.LINE, monitoring.events.PY_START, monitoring.events.PY_RETURN):
            monitoring.register_callback(
                3,
                event,
                lambda code, *rest, e=event: (
                    events.append((e, rest[0])) if code.co_name == code_name else None
                ),
            )
        monitoring.set_events(3, chosen)
        try:
            run()
        finally:
            monitoring.set_events(3, 0)
            monitoring.free_tool_id(3)
    return events


@pytest.mark.parametrize("kind", ["settrace", "setprofile", "monitoring"])
def test_tracers_see_the_users_lines(kind: str, answering: Any, fresh: Any) -> None:
    if kind == "monitoring" and sys.version_info < (3, 12):
        pytest.skip("sys.monitoring is new in 3.12")

    def original(x: int) -> int:
        total = 0
        for i in range(x):
            total += i
        return total

    f = fresh(original)
    wrapped = frame_hook.optimize(f, answering({f.__code__: lambda _: Entry(assemble(decode(f.__code__)))}))
    expected = traced(kind, lambda: f(3), "original")
    assert expected
    for _ in range(3):
        assert traced(kind, lambda: wrapped(3), "original") == expected
    if kind == "settrace":

        def refuse(frame: FrameView) -> Any:
            raise frame_hook.propagate(ValueError("refused"))

        g = fresh(original)

        def run() -> None:
            with pytest.raises(ValueError, match="refused"):
                frame_hook.optimize(g, answering({g.__code__: refuse}))(1)

        traced(kind, run, "original")
