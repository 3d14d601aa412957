"""Errors with a code lead to the user's line: the frames of what compiles are not among those of the traceback."""

from __future__ import annotations

import logging
import traceback

import pytest
import torch

from dynamo_capture import optimize
from fx_interface.errors import StackError


def _eager(graph_module: torch.fx.GraphModule, example_inputs: object) -> object:
    return graph_module.forward


def _breaks(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    return x


def _calls(x: torch.Tensor) -> torch.Tensor:
    return optimize(_eager, fullgraph=True)(_breaks)(x)


def test_a_refusal_shows_the_users_frames_alone(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "dynamo_capture"), pytest.raises(StackError) as caught:
        _calls(torch.ones(3))
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[:2] == ["test_a_refusal_shows_the_users_frames_alone", "_calls"]
    assert len(names) <= 3
    assert any(record.exc_info for record in caplog.records)  # all of it, for who asks


def test_an_exception_of_a_backend_keeps_its_own_frames() -> None:
    def failing(graph_module: torch.fx.GraphModule, example_inputs: object) -> object:
        raise ZeroDivisionError("mine")

    with pytest.raises(StackError) as caught:
        optimize(failing)(_only_sin)(torch.ones(3))
    cause = caught.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "failing"


def _only_sin(x: torch.Tensor) -> torch.Tensor:
    return x.sin()
