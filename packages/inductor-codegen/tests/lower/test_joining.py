"""Many parts are joined by one library call, few in the loop that reads them.

A call is not used where its result's layout is open: parts with channels last, or that could be read as such.
"""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import CallExtern
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


@pytest.mark.parametrize(
    ("parts", "calls"),
    [
        ([torch.randn(2, 3)] * 3, 0),
        ([torch.randn(2, n) for n in (3, 1, 0, 4, 2)], 2),
        ([torch.randn(2, 3, 2, 2)] * 5, 2),
        ([torch.randn(2, 3, 2, 2).contiguous(memory_format=torch.channels_last)] * 5, 0),
        ([torch.randn(2, 1, 4, 1)] * 5, 1),
    ],
)
def test_who_joins(parts: list[torch.Tensor], calls: int) -> None:
    graph = ExampleGraph()
    inputs = [graph.input(part, f"x{n}") for n, part in enumerate(parts)]
    moved = [
        graph.call(p.pad, given, [0] * part.dim(), [1] * part.dim(), 0.5)
        for given, part in zip(inputs, parts, strict=True)
    ]
    program = plan(
        graph.build(graph.call(p.exp, graph.call(p.cat, [*inputs], 1)), graph.call(p.cat, moved, 1))
    )
    assert sum(isinstance(step, CallExtern) for step in program.steps) == calls
    run = Stepper(program, interpreted=True)
    joined, padded = run(*graph.examples)
    torch.testing.assert_close(joined, torch.cat(parts, 1).exp())
    assert joined.stride() == torch.cat(parts, 1).exp().stride()
    wide = [torch.nn.functional.pad(part, [0, 1] * part.dim(), value=0.5) for part in parts]
    torch.testing.assert_close(padded, torch.cat(wide, 1))
