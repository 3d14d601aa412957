"""What is computed from ``arange`` is a position: it needs no check where it lies within, and keeps it elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from fx_interface.symbols import IntLike
from inductor_codegen.ir.printer import print_kernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

CPU = torch.device("cpu")
ROWS = torch.randn(11, 3, generator=torch.Generator().manual_seed(1))


def counted(graph: ExampleGraph, size: IntLike, start: IntLike = 0) -> Node:
    return graph.call(p.iota, size, start, 1, torch.int64, CPU)


def kernels_and_results(graph: ExampleGraph, result: Node, *inputs: Any) -> tuple[str, list[Any]]:
    program = plan(graph.build(result))
    return "\n".join(map(print_kernel, program.kernels)), Stepper(program)(*inputs)


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize(("start", "checked"), [(0, False), (-11, False), (-3, True)])
def test_rows_at_counted_places(symbolic: bool, start: int, checked: bool) -> None:
    graph = ExampleGraph()
    size: IntLike = graph.symbol() if symbolic else 11
    given = [11, ROWS] if symbolic else [ROWS]
    low: IntLike = -size if start == -11 else start
    places = graph.call(p.add, counted(graph, size, low), 0)
    result = graph.call(p.index, graph.input(ROWS), [places, None])
    text, (found,) = kernels_and_results(graph, result, *given)
    assert ("wrap_index" in text) is checked
    torch.testing.assert_close(found, ROWS[torch.arange(start, start + 11)])


def test_places_that_do_not_wrap() -> None:
    graph, within = ExampleGraph(), torch.tensor([10, 0])
    result = graph.call(p.index, graph.input(ROWS), [graph.input(within), None], False)
    text, (found,) = kernels_and_results(graph, result, ROWS, within)
    assert "check_index" in text
    torch.testing.assert_close(found, ROWS[within])
    program = plan(graph.build(result))
    for outside in (-1, 11):
        with pytest.raises(IndexError, match="out of range"):
            Stepper(program)(ROWS, torch.tensor([0, outside]))


def test_a_place_outside_is_still_reported() -> None:
    graph = ExampleGraph()
    places = graph.call(p.remainder, counted(graph, 11, 1), 11)
    text, (found,) = kernels_and_results(graph, graph.call(p.index, graph.input(ROWS), [places, None]), ROWS)
    assert "wrap_index" in text
    torch.testing.assert_close(found, ROWS[torch.arange(1, 12) % 11])


@pytest.mark.parametrize(
    ("compare", "number", "known"),
    [(p.ge, 0, True), (p.lt, 11, True), (p.gt, 10, True), (p.le, 4, False), (p.ge, 5, False)],
)
def test_truths_about_positions(compare: Any, number: int, known: bool) -> None:
    graph, given = ExampleGraph(), torch.arange(11) % 2 == 0
    mask = graph.call(p.bitwise_and, graph.call(compare, counted(graph, 11), number), graph.input(given))
    text, (found,) = kernels_and_results(graph, mask, given)
    assert (f"{compare.__name__}(" not in text) is known
    signs = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    expected = eval(f"torch.arange(11) {signs[compare.__name__]} {number}")
    assert torch.equal(found, expected & given)


def test_sums_that_leave_64_bits_wrap() -> None:
    graph, large = ExampleGraph(), 2**63 - 2
    total = graph.call(p.add, counted(graph, 11), large)
    _, (found,) = kernels_and_results(graph, total)
    assert torch.equal(found, torch.arange(11) + large)
