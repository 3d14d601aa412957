"""Passes that only some rows need."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.analysis.skipped_passes import conditions_to_run, only_where_not_finite
from inductor_codegen.ir.kernel import Accumulate, Pass
from inductor_codegen.ir.scalar import Apply, Constant
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

INF = float("inf")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("length", [5, 700])
def test_rows_with_a_sum_that_is_not_finite_run_one_pass_more(dtype: torch.dtype, length: int) -> None:
    values = torch.ones(6, length)
    values[1, 2], values[2, 0], values[3, :2] = INF, -INF, torch.tensor([INF, -INF])
    graph = ExampleGraph()
    rows = graph.input(values.to(dtype), "rows")
    wide = graph.call(p.convert_dtype, rows, torch.float32)
    total = graph.call(p.broadcast_in_dim, graph.call(p.sum, wide, [1]), [6, length], [0])
    broken = graph.call(p.ne, graph.call(p.sub, total, total), 0.0)
    again = graph.call(p.sum, graph.call(p.where, broken, graph.call(p.mul, wide, 2.0), 0.0), [1])
    (found,) = Stepper(plan(graph.build(again)), threads=1)(*graph.examples)
    assert found[1:4].tolist()[:2] == [INF, -INF]
    assert found[3].isnan()
    assert found[[0, 4, 5]].tolist() == [0.0, 0.0, 0.0]


def test_what_counts_as_a_row_that_is_not_finite() -> None:
    value, zero = Constant(2.0, torch.float32), Constant(0.0, torch.float32)
    broken = Apply("ne", (Apply("sub", (value, value), torch.float32), zero), torch.bool)
    far = Apply("lt", (value, zero), torch.bool)
    for condition, expected in ((broken, True), (far, False)):
        term = Apply("where", (condition, value, zero), torch.float32)
        step = Pass((Accumulate(0, "sum", term, torch.float32),), ())
        assert conditions_to_run(step, set()) == [condition]
        assert only_where_not_finite([condition]) is expected
    assert not only_where_not_finite([])
