"""Kernels that differ in sizes alone are merged. What they give is tested in ``codegen/triton/test_split.py``."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.wrapper import kernels_source
from inductor_codegen.ir.kernel import SizeParameter
from inductor_codegen.ir.program import Program, RunKernel
from inductor_codegen.native.shared_kernels import with_shared_kernels
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small reductions are split too."""
    launch = pytest.importorskip("inductor_codegen.codegen.triton.launch.sizes")
    monkeypatch.setattr(launch, "has_many_points", lambda points, programs: True)
    monkeypatch.setattr(launch, "SPLIT_POINTS", 16)


def sums_of(*shapes: tuple[int, int]) -> Program:
    """Sums of squares of the columns of matrices."""
    graph = ExampleGraph()
    results = []
    for number, (rows, columns) in enumerate(shapes):
        x = graph.input(torch.zeros(rows, columns), f"x{number}")
        results.append(graph.call(p.sum, graph.call(p.mul, x, x), [0]))
    return plan(graph.build(*results))


def merged(program: Program) -> Program:
    return with_shared_kernels(program, program.kernels)


@pytest.mark.usefixtures("always")
def test_kernels_of_other_sizes_are_one() -> None:
    program = sums_of((640, 24), (320, 40), (1280, 16))
    assert len(program.kernels) == 3
    (kernel,) = merged(program).kernels
    assert kernel.narrow
    assert [one.name for one in kernel.parameters if isinstance(one, SizeParameter)] == ["s0", "s1"]
    steps = [step for step in merged(program).steps if isinstance(step, RunKernel)]
    assert [step.sizes for step in steps] == [(3, 80), (5, 40), (2, 160)]
    text = kernels_source(merged(program))
    assert "tl.int64) * XBLOCK" not in text
    assert "8 * s0" in text


@pytest.mark.usefixtures("always")
def test_what_differs_otherwise_stays_apart() -> None:
    graph = ExampleGraph()
    x, y = graph.input(torch.zeros(640, 24)), graph.input(torch.zeros(320, 40), "y")
    program = plan(graph.build(graph.call(p.sum, x, [0]), graph.call(p.amax, y, [0])))
    assert merged(program) is program
    alone = sums_of((640, 24))
    assert merged(alone) is alone
    # 8 divides the columns of one, and 4 those of the other: loads are not as wide
    assert len(merged(sums_of((640, 24), (640, 36))).kernels) == 2


def test_kernels_that_are_not_split_stay_as_they_are() -> None:
    program = sums_of((64, 24), (32, 40))
    assert merged(program) is program
