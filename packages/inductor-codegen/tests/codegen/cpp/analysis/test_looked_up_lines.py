"""Lines that are fetched before their elements are looked up."""

from __future__ import annotations

import torch

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def text_of(sizes: tuple[int, int], dim: int, count: int, dtype: torch.dtype = torch.float32) -> str:
    """The kernel that gathers ``count`` elements along ``dim``; that it is right is checked."""
    graph = ExampleGraph()
    x, index = torch.randn(sizes).to(dtype), list(sizes)
    index[dim] = count
    places = torch.randint(0, sizes[dim], index)
    result = graph.call(p.gather, graph.input(x), dim, graph.input(places, "i"))
    program = plan(graph.build(result))
    assert torch.equal(Stepper(program)(*graph.examples)[0], x.gather(dim, places))
    (kernel,) = program.kernels
    return emit_kernel(kernel)


def test_a_line_for_each_row() -> None:
    assert "piece < 1024; piece += 16" in text_of((6, 1024), 1, 1024)
    assert "piece < 1024; piece += 32" in text_of((6, 1024), 1, 300, torch.bfloat16)


def test_what_is_short_long_hardly_read_or_no_line() -> None:
    assert "prefetch" not in text_of((6, 64), 1, 64)
    assert "prefetch" not in text_of((2, 20_000), 1, 20_000)
    assert "prefetch" not in text_of((6, 1024), 1, 100)
    assert "prefetch" not in text_of((600, 512), 0, 600)


def test_one_line_for_all_rows() -> None:
    graph = ExampleGraph()
    table, places = graph.input(torch.randn(1024)), graph.input(torch.randint(0, 1024, (6, 1024)), "i")
    (kernel,) = plan(graph.build(graph.call(p.index, table, [places]))).kernels
    assert "prefetch" not in emit_kernel(kernel)
