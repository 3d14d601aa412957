"""Memory that is read across comes through transposed blocks, whatever its dtype and however the blocks end."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel, emit_source
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper
from inductor_codegen.toolchain.cpp_compiler import KERNEL_FLAGS, Unit, find_compiler

DTYPES = (
    torch.uint8,
    torch.bool,
    torch.float16,
    torch.bfloat16,
    torch.float32,
    torch.int32,
    torch.float64,
    torch.int64,
)


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Whole numbers that every dtype holds."""
    made = torch.arange(torch.Size(sizes).numel()) * 7 % 101
    return made.reshape(sizes).to(dtype)


def check(graph: ExampleGraph, *results: Node, across: bool = True) -> None:
    """The kernels give what the graph does, on one thread and on two."""
    module = graph.build(*results)
    program = plan(module)
    assert ("transpose_block" in "".join(map(emit_kernel, program.kernels))) is across
    for threads in (1, 2):
        for got, want in zip(
            Stepper(program, threads)(*graph.examples), module(*graph.examples), strict=True
        ):
            assert got.stride() == want.stride()
            assert torch.equal(got, want)


def turned(graph: ExampleGraph, x: torch.Tensor, order: tuple[int, ...] = (1, 0)) -> Node:
    """``x`` with its dimensions in another order, in row-major memory: added to zeros, which decide the layout."""
    sizes = [x.shape[axis] for axis in order]
    zeros = graph.input(torch.zeros(sizes, dtype=x.dtype), "zeros")
    return graph.call(p.add, zeros, graph.call(p.permute, graph.input(x), order))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sizes", [(64, 64), (8, 9), (63, 130), (65, 200), (300, 17)])
def test_copies(dtype: torch.dtype, sizes: tuple[int, int]) -> None:
    graph = ExampleGraph()
    check(graph, turned(graph, numbers(*sizes, dtype=dtype)))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.int64])
def test_operands(dtype: torch.dtype) -> None:
    """Two that are read across, one along and one number of a row."""
    graph = ExampleGraph()
    x, y = (graph.input(numbers(200, 75, dtype=dtype)) for _ in "xy")
    along = graph.input(numbers(75, 200, dtype=dtype))
    row = graph.call(p.broadcast_in_dim, graph.input(numbers(75, dtype=dtype)), (75, 200), (0,))
    across = [graph.call(p.permute, each, (1, 0)) for each in (x, y)]
    check(graph, graph.call(p.add, graph.call(p.maximum, along, row), graph.call(p.add, *across)))


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 2, 1), (1, 2, 0), (2, 1, 0)])
def test_more_dimensions(order: tuple[int, ...]) -> None:
    graph = ExampleGraph()
    check(graph, turned(graph, numbers(9, 70, 33), order))


def test_sizes_that_are_symbols() -> None:
    graph = ExampleGraph()
    graph.symbol(), graph.symbol()
    check(graph, turned(graph, numbers(11 * 8, 13 * 7)))


def _sum_of_squares(graph: ExampleGraph) -> Node:
    x = graph.call(p.permute, graph.input(numbers(40, 50)), (1, 0))
    return graph.call(p.sum, graph.call(p.mul, x, x), [1])


def _of_few_columns(graph: ExampleGraph) -> Node:
    return turned(graph, numbers(5, 300))


@pytest.mark.parametrize("make", [_sum_of_squares, _of_few_columns])
def test_where_blocks_gain_nothing(make: Callable[[ExampleGraph], Node]) -> None:
    graph = ExampleGraph()
    check(graph, make(graph), across=False)


def test_an_element_that_is_needed_somewhere_is_not_read_elsewhere() -> None:
    """A block would read what lies beyond the border."""
    graph = ExampleGraph()
    x = graph.call(p.permute, graph.input(numbers(100, 90)), (1, 0))
    zeros = graph.input(torch.zeros(95, 105))
    check(graph, graph.call(p.add, zeros, graph.call(p.pad, x, [3, 2], [2, 3], 0.5)), across=False)


def test_squares_stay_in_registers() -> None:
    """gcc has to take the loops over a square's vectors apart: in memory they take four times as long."""
    compiler = find_compiler()
    if not compiler.version.startswith("g++"):
        pytest.skip("other compilers have squares of one element")
    graph = ExampleGraph()
    (kernel,) = plan(graph.build(turned(graph, numbers(640, 640)))).kernels
    source = emit_source([kernel])
    text = subprocess.run(
        [*compiler.command, *compiler.flags(Unit("one", source, KERNEL_FLAGS)), "-S", "-o", "-", "-"],
        input=source, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    (body,) = re.findall(r"\n\w*transpose_block\w*:\n(.*?)\n\t\.size", text, re.DOTALL)
    assert not re.search(r"\(%rsp\), %[xyz]mm|%[xyz]mm\d+, \S*\(%rsp\)", body)
