"""The formulas for older versions of torch compute what its own composite functions do, with the same operators."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch

from aot_autograd.graphs import live_values
from aot_autograd.joint import trace_program
from aot_autograd.symbolic_composites import SymbolicComposites, linear, matmul
from fx_interface.signature import InputDecl, InputKind
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize(
    ("one", "two"),
    [
        ((3,), (3,)),
        ((2, 3), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((5, 2, 3), (3,)),
        ((3,), (5, 3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 1, 2, 3), (6, 3, 4)),
        ((5, 2, 3), (5, 3, 4)),
    ],
)
def test_matmul(one: tuple[int, ...], two: tuple[int, ...], grad: bool) -> None:
    a, b = (torch.randn(s, dtype=torch.float64).requires_grad_(grad) for s in (one, two))
    torch.testing.assert_close(matmul(a, b), torch.matmul(a, b))
    assert matmul(a, b).shape == torch.matmul(a, b).shape


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize("sizes", [(3,), (2, 3), (4, 2, 3), (5, 4, 2, 3)])
def test_linear(sizes: tuple[int, ...], with_bias: bool) -> None:
    x, w = torch.randn(sizes), torch.randn(6, 3)
    bias = torch.randn(6) if with_bias else None
    torch.testing.assert_close(linear(x, w, bias), torch.nn.functional.linear(x, w, bias))


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b: torch.nn.functional.linear(x, w, b),
        lambda x, w, b: torch.nn.functional.linear(x, w),
        lambda x, w, b: x @ w.t(),
        lambda x, w, b: x.matmul(x.transpose(1, 2)),
    ],
)
def test_the_same_operators_are_recorded(function: Any, library: Any) -> None:
    recorded = []
    for mode in (nullcontext(), SymbolicComposites()):
        env = ShapeEnv()
        sizes = [(env.create_symbol(17), env.create_symbol(23), 4), (5, 4), (5,)]
        inputs = [torch.zeros(17, 23, 4), torch.zeros(5, 4), torch.zeros(5)]
        specs = [TensorSpec(s, contiguous_strides(s), torch.float32, torch.device("cpu")) for s in sizes]
        declared = [InputDecl(n, InputKind.USER, spec) for n, spec in zip("xwb", specs, strict=True)]

        def program(recorder: Any, values: Any, mode: Any = mode) -> list[Any]:
            with mode:
                return [function(*values)]

        joint = trace_program(program, declared, inputs, library, env, training=False)
        live = live_values([joint.results.graph[0].value], {})
        recorded.append([(value.op, value.spec) for value in live if not value.is_input])
    assert recorded[0] == recorded[1]
