"""Which launches of a kernel are tried."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.pipeline import plan
from inductor_codegen.testing.programs import GpuGraph

pytest.importorskip("triton")
from inductor_codegen.codegen.triton.launch.kernels import KernelRecord
from inductor_codegen.ir.gpu.blocks import holds_rows, point_loops, row_loops
from inductor_codegen.ir.kernel import Kernel, extent_product
from inductor_codegen.native.launch_classes import bits
from inductor_codegen.native.tuning.launches import launches_to_try


def kernel_of(kind: str) -> Kernel:
    graph = GpuGraph()
    x = graph.input(torch.randn(96, 1000))
    made = graph.call(p.tanh, x)
    if kind == "rows":
        made = graph.call(p.sum, made, [1])
    if kind == "tiles":
        made = graph.call(p.add, made, graph.call(p.permute, graph.input(torch.randn(1000, 96), "y"), [1, 0]))
    (kernel,) = plan(graph.build(made)).kernels
    return kernel


@pytest.mark.parametrize("kind", ["points", "rows", "tiles"])
def test_the_rules_launch_comes_first_and_all_hold_the_kernel(kind: str) -> None:
    kernel = kernel_of(kind)
    record = KernelRecord.of(kernel)
    rows, points = (bits(int(extent_product(loops(kernel)))) for loops in (row_loops, point_loops))
    tried = launches_to_try(record, kernel, rows, points)
    assert tried[0] == record.launch(rows, points)
    assert len(set(tried)) == len(tried) > 3
    for launch in tried:
        assert launch.programs * launch.rows >= 1 << rows
        if record.tiled:
            assert launch.parts * launch.points >= 1 << points
        if record.reduces and holds_rows(kernel):
            assert launch.points >= 1 << points


def test_a_record_tells_of_its_launch() -> None:
    from dataclasses import replace

    kernel = kernel_of("points")
    record = KernelRecord.of(kernel)
    usual, other = launches_to_try(record, kernel, 17, 0)[:2]
    tuned = replace(record, tuned=(17, 0, other))
    assert KernelRecord.from_data(tuned.to_data()) == tuned
    assert (tuned.launch(17, 0), tuned.launch(16, 0)) == (other, record.launch(16, 0))
    assert usual != other
