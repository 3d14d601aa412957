"""Modules with backward hooks give their inputs and results on in the same memory, as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fxstack


class Writes(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            x.clamp_(min=0)
        return x + 2


class WritesDetached(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x.detach().add_(1)
        return x + 2


class Keeps(nn.Module):
    kept: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = x * 2
        self.kept = made.detach()
        return made


def writes_to_its_input(x: torch.Tensor) -> Any:
    made = x * 1
    hooked(Writes())(made)
    return made.detach() * 1


def writes_to_its_detached_input(x: torch.Tensor) -> Any:
    made = x * 1
    hooked(WritesDetached())(made)
    return made.detach() * 1


def result_is_written(x: torch.Tensor) -> Any:
    module = hooked(Keeps())
    result = module(x)
    with torch.no_grad():
        result.add_(1)
    return module.kept * 1


def input_is_written(x: torch.Tensor) -> Any:
    made = x * 1
    result = hooked(nn.Identity())(made)
    with torch.no_grad():
        made.add_(1)
    return result.detach() * 1


def input_is_written_before_the_backward(x: torch.Tensor) -> Any:
    made = x * 1
    result = hooked(nn.Tanh())(made * 1) * hooked(nn.Softplus())(made)
    with torch.no_grad():
        made.add_(1)
    return torch.autograd.grad(result.sum(), x)[0]


PROGRAMS: list[Callable[[torch.Tensor], Any]] = [
    writes_to_its_input,
    writes_to_its_detached_input,
    result_is_written,
    input_is_written,
    input_is_written_before_the_backward,
]


def hooked(module: nn.Module) -> Any:
    module.register_full_backward_hook(lambda *given: None)
    return module


def told(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_writes_are_seen(program: Callable[[torch.Tensor], Any], backend: str) -> None:
    compiled = fxstack.compile(program, backend=backend)
    expected, *found = (
        told(one, torch.tensor([-1.0, 2.0, 3.0], requires_grad=True)) for one in (program, compiled, compiled)
    )
    for actual in found:
        if isinstance(expected, str):
            assert actual == expected
        else:
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])
def test_what_a_module_keeps_shares_the_memory_of_its_result(backend: str) -> None:
    module = hooked(Keeps())
    result = fxstack.compile(module, backend=backend)(torch.ones(3, requires_grad=True))
    assert result.data_ptr() == module.kept.data_ptr()


def test_copies_stay_where_nobody_can_tell() -> None:
    """One graph, and no part of the program in Python."""
    graphs = []

    def backend(graph: Any, inputs: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    layers = nn.Sequential(*(hooked(nn.Linear(3, 3)) for _ in range(3)))
    compiled = fxstack.compile(layers, backend=backend, fullgraph=True)
    compiled(torch.ones(2, 3, requires_grad=True)).sum().backward()
    assert len(graphs) == 1
    assert sum(node.target == "clone" for node in graphs[0].graph.nodes) == 12
