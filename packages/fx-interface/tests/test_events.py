from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import pytest

from fx_interface.events import Event, emit, is_heard, listening, span


def _heard(run: Callable[[], None]) -> list[Event]:
    found: list[Event] = []
    with listening(found.append):
        run()
    return found


def test_inner_events_come_first_and_know_what_they_are_part_of() -> None:
    def run() -> None:
        with span("frame", code=1) as outer:
            with span("trace"):
                emit("break", at=3)
            outer.note(made=True)

    stop, trace, frame = _heard(run)
    assert [stop.kind, trace.kind, frame.kind] == ["break", "trace", "frame"]
    assert (stop.parent, trace.parent, frame.parent) == (trace, frame, None)
    assert stop.within("frame") is frame
    assert frame.within("frame") is None
    assert frame.facts == {"code": 1, "made": True}
    assert frame.start <= trace.start <= stop.start == stop.end <= trace.end <= frame.end
    assert len({event.number for event in (stop, trace, frame)}) == 3


def test_an_exception_passes_and_is_named() -> None:
    def run() -> None:
        with pytest.raises(KeyError), span("frame"), span("trace"):
            raise KeyError("x")
        emit("after")

    trace, frame, after = _heard(run)
    assert (trace.raised, frame.raised, after.raised) == (KeyError, KeyError, None)
    assert after.parent is None


def test_nothing_is_made_while_nobody_listens() -> None:
    assert not is_heard()
    assert span("frame") is span("trace", code=1)
    with span("frame") as event:
        event.note(x=1)
    emit("break")


def test_a_stretch_that_began_unheard_is_no_parent() -> None:
    found: list[Event] = []
    with span("frame"), listening(found.append), span("trace"):
        pass
    assert [(event.kind, event.parent) for event in found] == [("trace", None)]


def test_one_who_stops_listening_inside_of_a_stretch_leaves_nothing_open() -> None:
    with listening(lambda event: None):
        outer = span("frame")
        outer.__enter__()
    outer.__exit__(None, None, None)
    (later,) = _heard(lambda: emit("later"))
    assert later.parent is None


def test_threads_have_parents_of_their_own() -> None:
    found: list[Event] = []
    ready = threading.Barrier(2)

    def run(name: str) -> None:
        with span(name):
            ready.wait()
            emit("inner", of=name)
            ready.wait()

    with listening(found.append):
        threads = [threading.Thread(target=run, args=(name,)) for name in ("a", "b")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    inner = [event for event in found if event.kind == "inner"]
    assert len(inner) == 2
    assert all(event.parent is not None and event.parent.kind == event.facts["of"] for event in inner)
    assert len({event.thread for event in inner}) == 2


def test_a_listener_that_fails_is_logged_once_and_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    def fails(event: Event) -> None:
        raise ValueError("mine")

    found: list[Event] = []
    with caplog.at_level(logging.ERROR, "fx_interface"), listening(fails), listening(found.append):
        emit("a")
        emit("b")
    assert [event.kind for event in found] == ["a", "b"]
    (record,) = caplog.records
    assert "failed at 'a'" in record.getMessage()
    assert not is_heard()
