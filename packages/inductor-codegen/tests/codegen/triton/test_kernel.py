"""Loops of a kernel over the blocks of a row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.kernel import kernel_source
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

Interpret = Callable[..., Callable[..., Any]]
POINTS = 90


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program holds fewer points at once than a row has."""
    monkeypatch.setattr("inductor_codegen.ir.gpu.blocks.LONGEST", 32)
    monkeypatch.setattr("inductor_codegen.codegen.triton.launch.sizes.LONGEST", 32)


@pytest.mark.parametrize("other", [0.0, 1.0])
def test_a_pass_that_adds_only_zeros_is_skipped(other: float, interpret: Interpret) -> None:
    """Of rows with a negative total the squares are added up; programs without such a row skip that pass."""
    x = torch.randn(4, POINTS, generator=torch.Generator().manual_seed(0))
    x[0], x[1:] = x[0].abs(), -x[1:].abs()
    graph = ExampleGraph()
    given = graph.input(x)
    total = graph.call(p.sum, given, [1])
    is_negative = graph.call(p.broadcast_in_dim, graph.call(p.lt, total, 0.0), [4, POINTS], [0])
    squares = graph.call(p.where, is_negative, graph.call(p.mul, given, given), other)
    program = plan(graph.build(graph.call(p.sum, squares, [1]), total))
    (kernel,) = program.kernels
    assert ("if tl.max(" in kernel_source(kernel)) == (other == 0)
    for given in (x, x[:1].expand(4, -1).contiguous(), x[1:2].expand(4, -1).contiguous()):
        chosen = torch.where(given.sum(1, keepdim=True) < 0, given * given, other)
        torch.testing.assert_close(interpret(program)(given)[0], chosen.sum(1), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
@pytest.mark.parametrize("points", [20, POINTS])
def test_the_first_of_equals_and_of_nans(dtype: torch.dtype, points: int, interpret: Interpret) -> None:
    x = torch.zeros(5, points, dtype=dtype)
    x[0, 7], x[0, 13], x[1, 5] = 3, 3, -2
    if dtype.is_floating_point:
        x[2, 9], x[2, 12], x[2, 3] = float("nan"), float("nan"), float("inf")
        x[3] = float("-inf")
        x[4, -1] = float("nan")
    graph = ExampleGraph()
    given = graph.input(x)
    program = plan(graph.build(graph.call(p.argmax, given, 1), graph.call(p.argmin, given, 1)))
    largest, smallest = interpret(program)(x)
    assert torch.equal(largest, x.argmax(1))
    assert torch.equal(smallest, x.argmin(1))
