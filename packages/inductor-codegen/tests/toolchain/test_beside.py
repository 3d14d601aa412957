from __future__ import annotations

import threading

import pytest

from inductor_codegen.toolchain.beside import Beside, Done


def test_work_runs_beside_its_caller() -> None:
    told = threading.Event()
    begun = Beside(lambda: (told.wait(20), threading.current_thread().name))
    told.set()
    assert begun.result() == (True, "fxstack-compiler")
    assert begun.result()[0]
    assert Done(3).result() == 3


def test_what_it_raises_is_raised_where_its_result_is_asked_for() -> None:
    begun: Beside[int] = Beside(lambda: 1 // 0)
    begun.wait()
    with pytest.raises(ZeroDivisionError):
        begun.result()


def test_no_thread_outlives_the_wait() -> None:
    before = threading.active_count()
    begun = Beside(lambda: 1)
    begun.wait()
    assert threading.active_count() == before


def test_without_threads_it_runs_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert Beside(threading.current_thread).result() is threading.current_thread()
