"""What a custom function gives as a view, or as its input is, refuses writes in place, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

import fxstack


class Same(Function):
    @staticmethod
    def forward(ctx: Any, *given: torch.Tensor) -> Any:
        return given if len(given) > 1 else given[0]

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        return gradients


class Flat(Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient.view(ctx.shape)


PROGRAMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "the input": lambda x: Same.apply(x * 2).relu_(),
    "a view": lambda x: Flat.apply(x * 2).add_(1),
    "the second of two": lambda x: torch.nn.functional.relu(Same.apply(x * 2, x * 3)[1], inplace=True),
    "a view of a view": lambda x: Flat.apply(x * 2).view(3, 2).relu_(),
    "a row of a view": lambda x: Same.apply(x * 2).t()[0].mul_(2),
    "behind a module with a hook": lambda x: torch.nn.ReLU(inplace=True)(_hooked()(x)),
    "in a module behind another with a hook": lambda x: torch.nn.Sequential(_hooked(), torch.nn.ReLU(True))(
        x
    ),
    "a part of what a module with a hook gives": lambda x: _hooked()(x)[0].mul_(2),
    "caught": lambda x: _caught(Same.apply(x * 2)),
    "an input of the program": lambda x: Same.apply(x).mul_(3),
}


def _hooked() -> torch.nn.Module:
    module = torch.nn.Identity()
    module.register_full_backward_hook(lambda *given: None)
    return module


def _caught(x: torch.Tensor) -> Any:
    try:
        x.add_(1)
    except RuntimeError as error:
        return x.detach() * 2, str(error)
    return x


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_writes_are_refused(program: Callable[[torch.Tensor], Any], backend: str) -> None:
    compiled = fxstack.compile(program, backend=backend)
    told = []
    for function in (program, compiled, compiled):
        try:
            told.append(str(function(torch.ones(2, 3, requires_grad=True))))
        except RuntimeError as error:
            told.append(str(error))
    assert "is being modified inplace" in told[0]
    assert told[1:] == [told[0], told[0]]


def test_writes_without_gradients_go_on() -> None:
    def program(x: torch.Tensor) -> Any:
        made = Same.apply(x * 2)
        with torch.no_grad():
            made.add_(1)
        return made.detach()

    x = torch.ones(2, 3)
    assert torch.equal(fxstack.compile(program, backend="aot_eager")(x), program(x))
