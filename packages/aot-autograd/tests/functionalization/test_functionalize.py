"""``torch.tensor(2.0)`` in a program: a number that kernels are written with, and a new tensor at each call."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from aot_autograd import aot_function

NUMBERS = [2.5, -0.0, 1e-45, 7, -(2**62), True]


def with_constants(
    library: Any, function: Callable[..., Any], *arguments: torch.Tensor
) -> tuple[Any, list[str]]:
    """What the compiled function gives, and the constants that its graph takes."""
    names: list[str] = []

    def keep(graph_module: GraphModule) -> Any:
        found = graph_module.graph.find_nodes(op="placeholder")
        names.extend(node.name for node in found if node.name.startswith("constant"))
        return graph_module.forward

    return aot_function(function, operators=library, forward_compiler=keep)(*arguments), names


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_no_constants(number: Any, library: Any) -> None:
    x = torch.ones(3)
    (made, product), names = with_constants(
        library, lambda x: (torch.tensor(number), x * torch.tensor(number)), x
    )
    assert not names
    assert torch.equal(made, torch.tensor(number))
    assert made.dtype is torch.tensor(number).dtype
    assert torch.equal(torch.signbit(made), torch.signbit(torch.tensor(number)))
    assert torch.equal(product, x * torch.tensor(number))


@pytest.mark.parametrize("content", [math.nan, math.inf, [1.0, 2.0], 1j], ids=str)
def test_others_are(content: Any, library: Any) -> None:
    made, names = with_constants(library, lambda x: x * torch.tensor(content), torch.ones(2))
    assert len(names) == 1
    torch.testing.assert_close(made, torch.ones(2) * torch.tensor(content), rtol=0, atol=0, equal_nan=True)


def test_they_are_new_at_each_call(compiled: Any) -> None:
    run = compiled(lambda x: torch.tensor(3.0).add_(x))
    one, other = run(torch.ones(())), run(torch.ones(()))
    assert one.item() == other.item() == 4
    assert one.data_ptr() != other.data_ptr()


def test_they_are_written_and_viewed(check: Any) -> None:
    def program(x: torch.Tensor) -> Any:
        total, seen = torch.tensor(1.0, dtype=torch.float64), torch.tensor(5)
        view = total.view(1)
        total += x.sum()
        return total, view, seen, total.detach()

    check(program, torch.ones(3, dtype=torch.float64))
