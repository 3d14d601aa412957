"""A table of decompositions: applied where operators are recorded, forward and backward, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from aot_autograd import aot_function

aten = torch.ops.aten


@pytest.fixture
def graphs(library: Any, interpreter: Any) -> Any:
    """Compile with a table; gives the callable and the operators of its graphs."""

    def make(function: Any, table: Any) -> tuple[Any, list[str]]:
        seen: list[str] = []

        def compiler(graph: Any) -> Any:
            seen.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
            return interpreter(graph)

        run = aot_function(function, operators=library, forward_compiler=compiler, decompositions=table)
        return run, seen

    return make


def test_operators_are_taken_apart_in_forward_and_backward(graphs: Any) -> None:
    def silu(x: Tensor) -> Tensor:
        return x / (1 + (-x).exp())

    def silu_backward(grad: Tensor, x: Tensor) -> Tensor:
        gate = 1 / (1 + (-x).exp())
        return grad * gate * (1 + x * (1 - gate))

    table = {aten.silu.default: silu, aten.silu_backward.default: silu_backward}
    run, seen = graphs(torch.nn.functional.silu, table)
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    expected = torch.nn.functional.silu(x)
    result = run(x)
    torch.testing.assert_close(result, expected, rtol=0, atol=0)
    torch.testing.assert_close(
        *(torch.autograd.grad(r, x, torch.ones(5, dtype=torch.float64)) for r in (result, expected))
    )
    assert not [name for name in seen if "silu" in name]
    assert "aten.exp.default" in seen


def test_a_call_may_be_left_as_it_is(graphs: Any) -> None:
    run, seen = graphs(lambda x: x.sin().cos(), {aten.sin.default: lambda x: NotImplemented})
    x = torch.randn(3)
    assert torch.equal(run(x), x.sin().cos())
    assert seen == ["aten.sin.default", "aten.cos.default"]


def test_an_operator_is_itself_in_its_own_program(graphs: Any) -> None:
    run, seen = graphs(lambda x: x.sin(), {aten.sin.default: lambda x: x.sin() * 2})
    x = torch.randn(3)
    assert torch.equal(run(x), x.sin() * 2)
    assert seen == ["aten.sin.default", "aten.mul.Tensor"]


def test_a_writing_operator_writes(graphs: Any) -> None:
    def fill(x: Tensor, value: float) -> Tensor:
        return x.copy_(torch.zeros_like(x) + value)

    def function(x: Tensor) -> Tensor:
        x.fill_(3.0)
        return x * 2

    run, _ = graphs(function, {aten.fill_.Scalar: fill})
    x = torch.randn(4)
    assert torch.equal(run(x), torch.full((4,), 6.0))
    assert torch.equal(x, torch.full((4,), 3.0))
