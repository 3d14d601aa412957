from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

import fxstack
from fx_interface.errors import StackError, UnsupportedProgramError
from fxstack.internal_errors import default_policy, refused


def test_a_mistake_becomes_a_refusal_that_says_where() -> None:
    with (
        pytest.raises(UnsupportedProgramError, match=r"FXS301.*ZeroDivisionError.*test_internal_errors.py"),
        refused("eager"),
    ):
        _ = 1 // 0
    with pytest.raises(ZeroDivisionError), refused("raise"):
        _ = 1 // 0


def test_errors_raised_on_purpose_stay_what_they_are() -> None:
    with pytest.raises(StackError, match="XYZ1"), refused("eager"):
        raise StackError("XYZ1", "on purpose")


def test_the_environment_sets_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FXSTACK_ON_INTERNAL_ERROR", "raise")
    assert default_policy() == "raise"
    monkeypatch.delenv("FXSTACK_ON_INTERNAL_ERROR")
    assert default_policy() == "eager"


@pytest.mark.parametrize("backend", ["inductor", "aot_eager"])
def test_a_defect_of_the_compiler_leaves_the_program_running(
    backend: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def defective(*args: Any, **kwargs: Any) -> Any:
        raise AssertionError("a defect")

    monkeypatch.setattr("aot_autograd.trace_joint", defective)
    monkeypatch.setattr("aot_autograd.compile_joint", defective)
    monkeypatch.setenv("FXSTACK_ON_INTERNAL_ERROR", "eager")
    x = torch.ones(3, requires_grad=True)
    compiled = fxstack.compile(lambda x: x * 2, backend=backend)
    with caplog.at_level(logging.WARNING):
        y = compiled(x)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0, 2.0]
    assert "FXS301" in caplog.text
    assert "a defect" in caplog.text


def test_a_backend_of_the_users_may_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Any:
        raise AssertionError("mine")

    monkeypatch.setenv("FXSTACK_ON_INTERNAL_ERROR", "eager")
    with pytest.raises(StackError, match=r"CAP301.*mine"):
        fxstack.compile(lambda x: x * 2, backend=backend)(torch.ones(3))
