"""Groups of few elements with a number each: rows that fill vectors, and the numbers laid out along them."""

from __future__ import annotations

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.codegen.cpp.emit import emit_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper


def scaled(graph: ExampleGraph, sizes: tuple[int, int, int, int], dtype: torch.dtype = torch.float32) -> Node:
    """Numbers of rows, groups and columns, times a scale for each of the first dimension and group, plus a column's."""
    images, rows, groups, columns = sizes
    x = graph.input((torch.arange(images * rows * groups * columns) % 37).reshape(sizes).to(dtype))
    scale = graph.input((torch.arange(images * groups) % 5).reshape(images, groups).to(dtype), "scale")
    column = graph.input(torch.arange(columns).to(dtype), "column")
    repeated = graph.call(p.broadcast_in_dim, scale, list(sizes), [0, 2])
    return graph.call(
        p.add, graph.call(p.mul, x, repeated), graph.call(p.broadcast_in_dim, column, list(sizes), [3])
    )


def text_of(graph: ExampleGraph, result: Node) -> str:
    """The kernels' text, after they gave what the graph gives, on one thread and on three."""
    module = graph.build(result)
    program = plan(module)
    (wanted,) = module(*graph.examples)
    for threads in (1, 3):
        (found,) = Stepper(program, threads)(*graph.examples)
        assert torch.equal(found, wanted)
    return "".join(map(emit_kernel, program.kernels))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64, torch.int64])
@pytest.mark.parametrize("sizes", [(3, 25, 8, 4), (2, 4000, 5, 8), (5, 7, 3, 2), (3, 25, 8, 3)])
def test_few_columns(sizes: tuple[int, int, int, int], dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    text = text_of(graph, scaled(graph, sizes, dtype))
    _, _, groups, columns = sizes
    assert f"< {groups * columns}; ++" in text
    assert text.count("_from = from;") == 2  # scales, and what each column adds


@pytest.mark.parametrize("sizes", [(3, 25, 8, 16), (3, 25, 500, 4)])
def test_columns_that_fill_vectors_and_rows_too_long_to_lay_out(sizes: tuple[int, int, int, int]) -> None:
    graph = ExampleGraph()
    text = text_of(graph, scaled(graph, sizes))
    assert "_from" not in text
    assert f"< {sizes[-1]}; ++" in text


def test_a_scale_for_every_row_is_not_laid_out() -> None:
    graph = ExampleGraph()
    x, scale = graph.input(torch.randn(50, 8, 4)), graph.input(torch.randn(50, 8), "scale")
    repeated = graph.call(p.broadcast_in_dim, scale, [50, 8, 4], [0, 1])
    assert "_from" not in text_of(graph, graph.call(p.mul, x, repeated))


def test_sizes_that_are_symbols() -> None:
    graph = ExampleGraph()
    graph.symbol()
    graph.symbol()
    text_of(graph, scaled(graph, (11, 13, 8, 4)))


def columns(graph: ExampleGraph, sizes: tuple[int, ...], places: torch.Tensor, wraps: bool = True) -> Node:
    """``x[..., places]``, times two."""
    x = graph.input(torch.randn(sizes))
    index = [None] * (len(sizes) - 1)
    chosen = graph.call(p.index, x, [*index, graph.input(places, "places")], wraps)
    return graph.call(p.add, chosen, chosen)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
@pytest.mark.parametrize("sizes", [(40, 300), (3, 20, 300), (2000, 33)])
def test_places_of_each_row_are_checked_once(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    graph = ExampleGraph()
    places = torch.randint(-sizes[-1], sizes[-1], (500,)).to(dtype)
    text = text_of(graph, columns(graph, sizes, places))
    assert text.count("_from = from;") == 1
    row = text[text.rindex("#pragma omp simd") :]
    assert "(int64_t)w" in row
    assert "wrap_index" not in row


def test_places_of_few_rows_or_of_long_ones_are_checked_in_each() -> None:
    for sizes, count in (((2, 300), 500), ((40, 300), 5000)):
        graph = ExampleGraph()
        assert "_from" not in text_of(graph, columns(graph, sizes, torch.randint(0, 300, (count,))))


@pytest.mark.parametrize("wrong", [300, -301, 1 << 32, -(1 << 32)])
@pytest.mark.parametrize("at", [0, 499])
def test_places_out_of_range_are_reported(wrong: int, at: int) -> None:
    graph = ExampleGraph()
    places = torch.randint(0, 300, (500,))
    result = columns(graph, (40, 300), places.clone())
    program = plan(graph.build(result))
    places[at] = wrong
    with pytest.raises(IndexError):
        Stepper(program)(graph.examples[0], places)
