"""Short rows with functions are computed side by side on a CPU, and others one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.kernel import Vector
from inductor_codegen.ir.program import Program
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, GpuGraph, Stepper


@dataclass
class Rows:
    """A graph with one input, whose last dimension are rows."""

    sizes: tuple[int, ...]
    dtype: torch.dtype = torch.float32
    graph: ExampleGraph = field(default_factory=ExampleGraph)

    def __post_init__(self) -> None:
        values = torch.randn(self.sizes, generator=torch.Generator().manual_seed(0))
        self.x = self.graph.input(values.to(self.dtype))
        self.over, self.rows = [len(self.sizes) - 1], list(range(len(self.sizes) - 1))

    def softmax(self) -> Program:
        call, sizes, rows = self.graph.call, list(self.sizes), self.rows
        wide = call(p.convert_dtype, self.x, torch.float32) if self.dtype != torch.float32 else self.x
        most = call(p.broadcast_in_dim, call(p.amax, wide, self.over), sizes, rows)
        powers = call(p.exp, call(p.sub, wide, most))
        total = call(p.broadcast_in_dim, call(p.sum, powers, self.over), sizes, rows)
        return plan(self.graph.build(call(p.div, powers, total)))

    def logarithm(self) -> Program:
        call = self.graph.call
        return plan(self.graph.build(call(p.log, call(p.sum, call(p.abs, self.x), self.over))))

    def total(self) -> Program:
        return plan(self.graph.build(self.graph.call(p.sum, self.x, self.over)))

    def run(self, program: Program) -> tuple[torch.Tensor, torch.Tensor]:
        """The input, and what the program makes of it."""
        (found,) = Stepper(program)(*self.graph.examples)
        return self.graph.examples[0], found


def vector_of(program: Program) -> Vector:
    (kernel,) = program.kernels
    return kernel.vector


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sizes", [(3000, 10), (30, 100, 7), (5000, 31)])
def test_they_are_side_by_side_and_as_torchs(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    rows = Rows(sizes, dtype)
    program = rows.softmax()
    assert vector_of(program) is Vector.OUTER
    x, found = rows.run(program)
    torch.testing.assert_close(found, x.float().softmax(-1), rtol=1e-6, atol=1e-7)


def test_functions_of_totals() -> None:
    rows = Rows((5000, 8))
    program = rows.logarithm()
    assert vector_of(program) is Vector.OUTER
    x, found = rows.run(program)
    torch.testing.assert_close(found, x.abs().sum(-1).log(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda: Rows((3000, 16)).softmax(), id="whole vectors"),
        pytest.param(lambda: Rows((3000, 33)).softmax(), id="long rows"),
        pytest.param(lambda: Rows((200, 10)).softmax(), id="few rows"),
        pytest.param(lambda: Rows((3000, 16)).logarithm(), id="whole lines"),
        pytest.param(lambda: Rows((3000, 10)).total(), id="no function"),
        pytest.param(lambda: Rows((3000, 10), graph=GpuGraph()).softmax(), id="a GPU"),
    ],
)
def test_others_are_not(program: Callable[[], Program]) -> None:
    assert vector_of(program()) is Vector.INNER
