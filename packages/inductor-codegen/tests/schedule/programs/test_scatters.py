"""Calls that add by index as kernels: to the bit what torch's give, and torch's own where they do as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import Node

from fx_interface.dialects import prims as p
from inductor_codegen.ir.program import CallExtern, Program, Reuse, RunKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.testing import ExampleGraph, Stepper

aten: Any = torch.ops.aten
FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def rows(count: int, *sizes: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.randint(0, count, sizes, generator=torch.Generator().manual_seed(count)).to(dtype)


def numbers(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    made = torch.randn(sizes, generator=torch.Generator().manual_seed(sum(sizes)))
    return (made if dtype.is_floating_point else made * 1e9).to(dtype)


def run(
    op: Any, *args: Any, read: bool = False, **kwargs: Any
) -> tuple[Program, list[torch.Tensor], torch.Tensor]:
    """The program of a call whose tensors are inputs, its results and torch's. ``read``: the first is computed."""
    graph = ExampleGraph()

    def given(argument: Any) -> Any:
        if isinstance(argument, torch.Tensor):
            return graph.input(argument, f"x{len(graph.examples)}")
        return [given(item) for item in argument] if isinstance(argument, list) else argument

    first, *rest = (given(argument) for argument in args)
    if read:
        first = graph.call(p.neg, first)
        args = (-args[0], *args[1:])
    result = graph.call(op, first, *rest, **kwargs)
    program = plan(graph.build(result))
    return program, list(Stepper(program)(*graph.examples)), op(*args, **kwargs)


def kernels(program: Program) -> list[str]:
    """What runs, without digests."""
    found = [step for step in program.steps if isinstance(step, RunKernel | CallExtern)]
    return [s.kernel.rpartition("_")[0] if isinstance(s, RunKernel) else s.op.__name__ for s in found]


CASES: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (aten.index_add.default, (numbers(5, 16), 0, rows(5, 20), numbers(20, 16))),
    (aten.index_add.default, (numbers(5, 16), 0, rows(5, 20, dtype=torch.int32), numbers(20, 16))),
    (aten.index_add.default, (numbers(3, 5, 16), -2, rows(5, 20), numbers(3, 20, 16))),
    (aten.index_add.default, (numbers(16, 5).t(), 0, rows(5, 20), numbers(16, 20).t())),
    (aten.index_put.default, (numbers(5, 16), [rows(5, 20)], numbers(20, 16), True)),
    (aten.index_put.default, (numbers(5, 16), [rows(5, 4, 5) - 5], numbers(4, 5, 16), True)),
    (aten.index_put.default, (numbers(5, 16), [rows(5, 20)], numbers(16), True)),
    (aten.index_put.default, (numbers(5, 16), [rows(5, 20)], numbers(20, 1), True)),
    (aten.index_put.default, (numbers(3, 5, 2, 9), [None, rows(5, 20)], numbers(3, 20, 2, 9), True)),
    (aten._unsafe_index_put.default, (numbers(5, 16), [rows(5, 20)], numbers(20, 16), True)),
    (aten.scatter_add.default, (numbers(5, 16), 0, rows(5, 20, 1).expand(20, 16), numbers(20, 16))),
    (aten.scatter_add.default, (numbers(5, 16), 0, rows(5, 20, 1).expand(20, 12), numbers(30, 16))),
    (aten.scatter_add.default, (numbers(5, 16), 1, rows(16, 5, 20), numbers(5, 20))),
    (aten.scatter_add.default, (numbers(5, 16), 0, rows(5, 20, 16), numbers(20, 16))),
    (aten.scatter_add.default, (numbers(5, 16), 1, rows(16, 3, 20), numbers(4, 30))),
    (aten.scatter_add.default, (numbers(16, 5).t(), 1, rows(16, 5, 20), numbers(20, 5).t())),
    (aten.scatter_add.default, (numbers(40, 4, 3), 1, rows(4, 40, 9, 3), numbers(40, 9, 3))),
    (aten.scatter_add.default, (numbers(5, 9000), 1, rows(9000, 5, 20), numbers(5, 20))),
    (aten.scatter_add.default, (numbers(40), 0, rows(40, 200), numbers(200))),
    (aten.index_add.default, (numbers(5), 0, rows(5, 20), numbers(20))),
    (aten.index_add.default, (numbers(5, 2), 0, rows(5, 20), numbers(20, 2))),
    (aten.index_put.default, (numbers(9), [rows(9, 200) - 9], numbers(200), True)),
    (aten.embedding_dense_backward.default, (numbers(4, 6, 16), rows(9, 4, 6), 9, 3, False)),
    (aten.embedding_dense_backward.default, (numbers(4, 6, 16), rows(9, 4, 6), 9, -1, False)),
    (aten.embedding_dense_backward.default, (numbers(16), rows(9), 9, -1, False)),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_as_torch_adds(number: int) -> None:
    op, args = CASES[number]
    program, (made,), expected = run(op, *args)
    assert not any(isinstance(step, CallExtern) for step in program.steps)
    assert torch.equal(made, expected)
    assert made.stride() == expected.stride()


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32])
def test_each_sum_is_rounded_as_torch_rounds_it(dtype: torch.dtype) -> None:
    base, source = numbers(5, 16, dtype=dtype), numbers(200, 16, dtype=dtype)
    program, (made,), expected = run(aten.index_put.default, base, [rows(5, 200)], source, True)
    assert kernels(program) == ["copy", "scatter"]
    assert torch.equal(made, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_gradients_of_embeddings_of_16_bits(dtype: torch.dtype) -> None:
    args = (numbers(400, 16, dtype=dtype), rows(9, 400), 9, -1, False)
    program, (made,), expected = run(aten.embedding_dense_backward.default, *args)
    assert kernels(program) == ["zeros", "scatter"]
    assert torch.equal(made, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("op", [aten.index_add.default, aten.scatter_add.default])
def test_what_torch_adds_up_in_float32_is_torchs_own(op: Any, dtype: torch.dtype) -> None:
    base, source, index = numbers(5, 16, dtype=dtype), numbers(200, 16, dtype=dtype), rows(5, 200)
    spread = index if op is aten.index_add.default else index[:, None].expand(200, 16)
    program, (made,), expected = run(op, base, 0, spread, source)
    assert any(isinstance(step, CallExtern) for step in program.steps)
    assert torch.equal(made, expected)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64, torch.int32])
@pytest.mark.parametrize("op", [aten.scatter_add.default, aten.index_put.default])
def test_single_elements_are_summed_as_torch_sums_them(op: Any, dtype: torch.dtype) -> None:
    """``scatter_add`` rounds a sum of 16 bits once, ``index_put`` each addition."""
    if op is aten.scatter_add.default:
        base, source = numbers(3, 16, dtype=dtype), numbers(3, 200, dtype=dtype)
        program, (made,), expected = run(op, base, 1, rows(16, 3, 200), source)
    else:
        base, source = numbers(16, dtype=dtype), numbers(200, dtype=dtype)
        program, (made,), expected = run(op, base, [rows(16, 200)], source, True)
    assert kernels(program) == ["copy", "scatter"]
    assert torch.equal(made, expected)


def test_a_base_that_nobody_reads_any_more_is_added_to() -> None:
    args = (numbers(5, 16), 0, rows(5, 20), numbers(20, 16))
    program, (made,), expected = run(aten.index_add.default, *args, read=True)
    assert kernels(program) == ["kernel", "scatter"]
    assert any(isinstance(step, Reuse) for step in program.steps)
    assert torch.equal(made, expected)


@pytest.mark.parametrize(
    ("op", "args"),
    [
        (aten.index_put.default, (numbers(5, 16), [rows(5, 20)], numbers(20, 16))),
        (aten.index_add.default, (numbers(0, 16), 0, rows(1, 3), numbers(3, 16))),
        (aten.scatter_add.default, (numbers(5, 16), 1, rows(16, 5, 0), numbers(5, 0))),
        (aten.index_put.default, (numbers(5, 9, 16), [rows(5, 20), rows(9, 20)], numbers(20, 16), True)),
        (aten.embedding_dense_backward.default, (numbers(4, 6, 16), rows(9, 4, 6), 9, 3, True)),
    ],
)
def test_torchs_own(op: Any, args: tuple[Any, ...]) -> None:
    program, (made,), expected = run(op, *args)
    assert any(isinstance(step, CallExtern) for step in program.steps)
    assert torch.equal(made, expected)


def test_other_factors_than_1_are_torchs_own() -> None:
    args = (numbers(5, 16), 0, rows(5, 20), numbers(20, 16))
    program, (made,), expected = run(aten.index_add.default, *args, alpha=2)
    assert any(isinstance(step, CallExtern) for step in program.steps)
    assert torch.equal(made, expected)


@pytest.mark.parametrize(
    ("op", "row", "raises"),
    [
        (aten.index_add.default, 5, True),
        (aten.index_add.default, -1, True),
        (aten.index_put.default, -5, False),
        (aten.index_put.default, -6, True),
        (aten.index_put.default, 5, True),
    ],
)
def test_rows_that_there_are_not(op: Any, row: int, raises: bool) -> None:
    index, source = torch.tensor([0, row, 1]), numbers(3, 16)
    first = numbers(5, 16)
    given = (first, 0, index, source) if op is aten.index_add.default else (first, [index], source, True)
    if not raises:
        assert torch.equal(run(op, *given)[1][0], op(*given))
        return
    with pytest.raises((IndexError, RuntimeError)):
        op(*given)
    graph = ExampleGraph()
    x, i, s = graph.input(first), graph.input(torch.tensor([0, 1, 1]), "i"), graph.input(source, "s")
    result = graph.call(op, x, 0, i, s) if op is aten.index_add.default else graph.call(op, x, [i], s, True)
    with pytest.raises(IndexError):
        Stepper(plan(graph.build(result)))(first, index, source)


def test_sizes_that_vary() -> None:
    graph = ExampleGraph()
    count, width = graph.symbol(), graph.symbol()
    x, i, s = numbers(5, 13), rows(5, 11), numbers(11, 13)
    result = graph.call(aten.index_add.default, graph.input(x), 0, graph.input(i, "i"), graph.input(s, "s"))
    program = plan(graph.build(result))
    assert kernels(program) == ["copy", "scatter"]
    (made,) = Stepper(program)(*graph.examples)
    assert torch.equal(made, x.index_add(0, i, s))
    assert count != width


def chained(graph: ExampleGraph, x: Node, i: Node, s: Node) -> Node:
    return graph.call(aten.index_add.default, graph.call(aten.index_add.default, x, 0, i, s), 0, i, s)


def test_one_sum_after_the_other() -> None:
    graph = ExampleGraph()
    x, i, s = numbers(5, 16), rows(5, 20), numbers(20, 16)
    program = plan(graph.build(chained(graph, graph.input(x), graph.input(i, "i"), graph.input(s, "s"))))
    assert kernels(program) == ["copy", "scatter", "scatter"]
    (made,) = Stepper(program)(*graph.examples)
    assert torch.equal(made, x.index_add(0, i, s).index_add(0, i, s))
