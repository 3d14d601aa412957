"""Code whose versions are for one call each is left alone for some calls, and then for ever more."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest

from dynamo_capture.hook import unused_versions
from dynamo_capture.hook.frame_hook import Entry
from dynamo_capture.hook.unused_versions import FEW, FIRST_PAUSE, Misfit, UnusedVersions

CODE = (lambda: None).__code__


class _Tied:
    """What an entry was made for."""

    def __init__(self) -> None:
        self.dead = False

    def is_dead(self) -> bool:
        return self.dead


class _Program:
    """Calls that no version fits; ``run`` says whether the next one is compiled."""

    def __init__(self) -> None:
        self.unused = UnusedVersions()
        self.entries: list[Entry] = []

    def run(self, misfit: Misfit | None = None, *, dies: bool = False, part: float = 1.0) -> bool:
        said = self.unused.paused(CODE, lambda _: misfit)
        if said is not None:
            return False
        begun = time.perf_counter()
        time.sleep(0.002)
        took = time.perf_counter() - begun
        self.unused.took(took * part)
        self.entries.append(Entry(CODE, None, _Tied()))
        self.unused.made(CODE, self.entries[-1], time.perf_counter() - took * part)
        self.entries[-1].extra.dead = dies
        return True

    def compiled(self, calls: int, **given: Any) -> list[int]:
        return [number for number in range(calls) if self.run(**given)]


def test_versions_whose_objects_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unused_versions, "PROBING", float("inf"))
    program = _Program()
    first, second = FEW + FIRST_PAUSE, FEW + 3 * FIRST_PAUSE + 1
    assert program.compiled(second + 2, dies=True) == [*range(FEW), first, second]


def test_a_pause_goes_on_until_compiling_has_taken_little_of_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = _Program()
    first = FEW + FIRST_PAUSE
    assert program.compiled(first + 1, dies=True) == [*range(FEW), first]
    monkeypatch.setattr(unused_versions, "PROBING", 1e-6)
    assert program.compiled(4 * FIRST_PAUSE, dies=True) == []
    monkeypatch.setattr(unused_versions, "PROBING", 1.0)
    time.sleep(0.01)
    assert len(program.compiled(FIRST_PAUSE, dies=True)) == 1, "soon after that much time has gone by"


def test_calls_of_a_pause_are_handed_over() -> None:
    program = _Program()
    assert program.compiled(FEW + 1, dies=True) == list(range(FEW))
    taken = program.unused.at_once(CODE)
    assert 0 < taken < FIRST_PAUSE
    assert program.compiled(FIRST_PAUSE + 1 - taken, dies=True) == [FIRST_PAUSE - 1 - taken]
    assert program.unused.at_once((lambda: 1).__code__) == 0


def test_versions_that_may_fit_again_are_made_as_ever() -> None:
    assert len(_Program().compiled(20)) == 20


def test_versions_for_an_object_that_each_call_makes() -> None:
    def calls(program: _Program, make: Any) -> list[bool]:
        return [program.run(Misfit("other", make())) for _ in range(FEW + 2)]

    class Kept:
        pass

    held = [Kept() for _ in range(FEW + 2)]
    assert calls(_Program(), iter(held).__next__) == [True] * (FEW + 2), "objects that were there before"
    assert calls(_Program(), lambda: type("Made", (), {})) == [*[True] * FEW, False, False]
    gc.disable()
    try:
        assert calls(_Program(), lambda: type("Made", (), {})) == [True] * (FEW + 2), "nobody can tell"
    finally:
        gc.enable()


def test_compiling_has_to_take_most_of_the_time() -> None:
    assert len(_Program().compiled(20, dies=True, part=0.1)) == 20


def test_a_version_that_runs_after_all_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    class Used(Entry):
        hits = 0

    monkeypatch.setattr(unused_versions, "Entry", Used)
    program = _Program()
    unused = program.unused
    for _ in range(FEW):
        assert unused.paused(CODE, lambda _: None) is None
        program.entries.append(Used(CODE, None, _Tied()))
        unused.took(1.0)
        unused.made(CODE, program.entries[-1], time.perf_counter() - 1)
        program.entries[-1].extra.dead = True
    assert unused.paused(CODE, lambda _: None)
    assert unused.paused(CODE, lambda _: None) == ""
    Used.hits = 1
    assert unused.paused(CODE, lambda _: None) is None
    assert unused.paused(CODE, lambda _: None) is None


def test_what_is_forgotten_begins_anew() -> None:
    program = _Program()
    assert len(program.compiled(FEW + 3, dies=True)) == FEW
    program.unused.forget(CODE)
    assert len(program.compiled(FEW + 3, dies=True)) == FEW
