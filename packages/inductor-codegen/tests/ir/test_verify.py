"""Kernels that break a rule are told apart from those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fx_interface.dialects import prims as p
from fx_interface.errors import InvalidGraphError
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Kernel, Pass
from inductor_codegen.ir.verify import verify_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph


@pytest.fixture
def kernel() -> Kernel:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 16))
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, x, [1]), [8, 16], [0])
    (found,) = plan(graph.build(graph.call(p.div, x, total))).kernels
    return found


def test_planned_kernel_is_valid(kernel: Kernel) -> None:
    verify_kernel(kernel)


def test_total_may_not_be_used_in_its_own_pass(kernel: Kernel) -> None:
    first, second = kernel.passes
    with pytest.raises(InvalidGraphError, match="IND120"):
        verify_kernel(replace(kernel, passes=(Pass((*first.points, *second.points), ()),)))


def test_loop_must_be_around_its_use(kernel: Kernel) -> None:
    with pytest.raises(InvalidGraphError, match="IND120"):
        verify_kernel(replace(kernel, inner=(LoopVar("i9", 16),)))


def test_row_may_not_use_inner_loops(kernel: Kernel) -> None:
    first, second = kernel.passes
    (store,) = second.points
    with pytest.raises(InvalidGraphError, match="IND120"):
        verify_kernel(replace(kernel, passes=(first, Pass((), (store,)))))  # type: ignore[arg-type]


def test_buffer_must_be_a_parameter(kernel: Kernel) -> None:
    with pytest.raises(InvalidGraphError, match="IND120"):
        verify_kernel(replace(kernel, parameters=kernel.parameters[1:]))
