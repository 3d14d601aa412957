"""Reductions of many points into few rows give the same when they are split."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.triton.kernel import kernel_source
from inductor_codegen.codegen.triton.split import cells_of, split_source
from inductor_codegen.native.shared_kernels import with_shared_kernels
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph

Interpret = Callable[..., Callable[..., Any]]


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small reductions are split too."""
    launch = pytest.importorskip("inductor_codegen.codegen.triton.launch.sizes")
    monkeypatch.setattr(launch, "has_many_points", lambda points, programs: True)
    monkeypatch.setattr(launch, "SPLIT_POINTS", 16)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64])
def test_equals_the_reference(dim: int, dtype: torch.dtype, interpret: Interpret) -> None:
    shape = (7, 300) if dim else (300, 7)
    example = torch.randint(-9, 10, shape).to(dtype)
    graph = ExampleGraph()
    x = graph.call(p.mul, graph.input(example), graph.input(example, "y"))
    made = [graph.call(op, x, [dim]) for op in (p.sum, p.amax, p.amin)]
    made += [graph.call(op, x, dim) for op in (p.argmax, p.argmin)]
    program = plan(graph.build(graph.call(p.neg, made[0]), *made[1:], x))
    assert all(cells_of(kernel) for kernel in program.kernels)
    results = interpret(program)(example, example)
    square = example * example
    assert torch.equal(results[0], -square.sum(dim).to(results[0].dtype))
    for result, name in zip(results[1:], ("amax", "amin", "argmax", "argmin"), strict=False):
        assert torch.equal(result, getattr(square, name)(dim)), name
    assert torch.equal(results[-1], square)


@pytest.mark.usefixtures("always")
def test_everything_to_one_number(interpret: Interpret) -> None:
    graph = ExampleGraph()
    example = torch.randn(50, 70)
    total = graph.call(p.sum, graph.call(p.exp, graph.input(example)), [0, 1])
    run = interpret(plan(graph.build(total)))
    torch.testing.assert_close(run(example)[0], example.exp().sum())


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("joins", [False, True])
def test_kernels_of_several_sizes_equal_the_reference(joins: bool, interpret: Interpret) -> None:
    """``native/shared_kernels.py``."""
    graph, made, given, expected = ExampleGraph(), [], [], []
    for number, (rows, columns) in enumerate([(640, 24), (320, 40), (1280, 16)]):
        parts = [torch.randint(-9, 10, (rows, width)).float() for width in (columns, 8)[: 1 + joins]]
        inputs = [graph.input(part, f"x{number}_{place}") for place, part in enumerate(parts)]
        x, whole = graph.call(p.cat, inputs, 1) if joins else inputs[0], torch.cat(parts, 1)
        made.append(graph.call(p.sum, graph.call(p.mul, x, x), [0]))
        given += parts
        expected.append((whole * whole).sum(0))
    program = plan(graph.build(*made))
    together = with_shared_kernels(program, program.kernels)
    assert len(together.kernels) == 1 < len(program.kernels)
    for result, right in zip(interpret(together)(*given), expected, strict=True):
        assert torch.equal(result, right)


def test_kernels_of_several_passes_are_not_split() -> None:
    graph = ExampleGraph()
    x = graph.input(torch.randn(8, 11))
    shifted = graph.call(p.sub, x, graph.call(p.broadcast_in_dim, graph.call(p.amax, x, [1]), [8, 11], [0]))
    (kernel,) = plan(graph.build(graph.call(p.sum, graph.call(p.exp, shifted), [1]))).kernels
    assert split_source(kernel) == ""


@pytest.mark.parametrize(("points", "loops"), [(20000, 1), (20001, 2)])
def test_whole_blocks_of_rows_that_end_unaligned_have_no_mask(points: int, loops: int) -> None:
    """A mask that ends between two elements which a thread could load at once keeps it from that in every block."""
    graph = ExampleGraph()
    x = graph.input(torch.zeros(16, points))
    (kernel,) = plan(graph.build(graph.call(p.amax, x, [1]))).kernels
    text = kernel_source(kernel)
    assert text.count("for roffset in range(") == loops
    assert text.count("rline < rnumel") == 1
