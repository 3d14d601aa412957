"""When a thread is taken to be the only one that uses torch."""

from __future__ import annotations

import threading

import pytest
import torch

from inductor_codegen.runtime.cuda_graphs import threads
from inductor_codegen.runtime.cuda_graphs.threads import is_alone


@pytest.fixture
def alone() -> None:
    """Of a process in which there is nothing but the test."""
    if not is_alone():
        pytest.skip("what runs the tests has threads of its own")


@pytest.mark.usefixtures("alone")
def test_any_other_thread_counts_until_it_has_ended() -> None:
    begun, end = threading.Event(), threading.Event()
    found: list[bool] = []

    def work() -> None:
        found.append(is_alone())
        begun.set()
        end.wait()

    thread = threading.Thread(target=work)
    thread.start()
    begun.wait()
    assert not is_alone()
    end.set()
    thread.join()
    assert found == [False]
    assert is_alone()


class Asks(torch.autograd.Function):
    """Asks in its backward whether the thread is alone."""

    answers: list[bool] = []

    @staticmethod
    def forward(ctx: object, x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: object, *gradients: torch.Tensor) -> torch.Tensor:
        Asks.answers.append(is_alone())
        return gradients[0]


@pytest.mark.usefixtures("alone")
def test_a_backward_in_the_callers_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.ones(2, requires_grad=True)
    Asks.answers.clear()
    Asks.apply(x).sum().backward()  # type: ignore[no-untyped-call]
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    Asks.apply(x).sum().backward()  # type: ignore[no-untyped-call]
    # as in a thread of autograd's own, whose caller is the other one
    monkeypatch.setattr(threads, "_is_pythons_own", lambda ident: False)
    Asks.apply(x).sum().backward()  # type: ignore[no-untyped-call]
    assert not is_alone()
    end.set()
    thread.join()
    assert Asks.answers == [True, False, True]
