"""Reductions into few rows stand apart on a GPU, and what is stored once a row where a reduction ends does not."""

from __future__ import annotations

import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import RunKernel
from inductor_codegen.lower.lowering import lower
from inductor_codegen.lower.values import Reduction
from inductor_codegen.pipeline import plan
from inductor_codegen.schedule.fusion.gpu_groups import is_split
from inductor_codegen.testing import GpuGraph, Stepper, on_device


def test_a_row_that_is_a_result_stays_with_its_reduction() -> None:
    """As a layer norm in training, whose statistics are kept: one kernel."""
    graph = GpuGraph()
    x = graph.input(torch.randn(512, 256))
    mean = graph.call(p.div, graph.call(p.sum, x, [1]), 256.0)
    shifted = graph.call(p.sub, x, graph.call(p.broadcast_in_dim, mean, [512, 256], [0]))
    program = plan(graph.build(mean, graph.call(p.neg, shifted)))
    assert sum(isinstance(step, RunKernel) for step in program.steps) == 1
    results = Stepper(on_device(program, torch.device("cpu")))(*graph.examples)
    torch.testing.assert_close(results[0], graph.examples[0].mean(1))
    torch.testing.assert_close(results[1], graph.examples[0].mean(1, keepdim=True) - graph.examples[0])


def test_sums_of_parts_run_along_rows() -> None:
    """Statistics of channels-last images that are averaged in pairs: the parts lie as the images do."""
    graph = GpuGraph()
    image = torch.empty(8, 256, 64, 64, dtype=torch.bfloat16).to(memory_format=torch.channels_last)
    x = graph.input(image)
    parts = [graph.call(p.slice_, x, [0, 0, 0, i], [8, 256, 64, 64], [1, 1, 1, 2]) for i in (0, 1)]
    wide = [graph.call(p.convert_dtype, part, torch.float32) for part in parts]
    total = graph.call(p.sum, graph.call(p.add, *wide), [0, 2, 3])
    lowered, _ = lower(graph.build(total))
    (reduction,) = [value for value in lowered.values if isinstance(value.formula, Reduction)]
    assert is_split(reduction, lowered)
