"""Attention becomes one kernel on a CPU, with the operator's values; what has no kernel stays the operator's call."""

from __future__ import annotations

import logging
import math
import operator
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import GraphBuilder
from fx_interface.attention.operators import ATTENTION, ATTENTION_BACKWARD
from fx_interface.attention.programs import text_of
from fx_interface.dialects import prims as p
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE, result_specs, working_dtype
from fx_interface.tensor_spec import TensorSpec, spec_of
from inductor_codegen import CodegenOptions, compile_graph
from inductor_codegen.ir.attention.form import AttentionKernel
from inductor_codegen.ir.program import CallExtern, Program, RunKernel
from inductor_codegen.pipeline import plan

CPU = torch.device("cpu")
NO_BLOCKS: list[torch.Tensor | None] = [None] * BLOCK_TENSORS


def number(dtype: torch.dtype) -> TensorSpec:
    return TensorSpec((), (), dtype, CPU)


def score(working: torch.dtype, bias: torch.Tensor) -> str:
    """s + bias[h, kv]"""
    builder = GraphBuilder("prims")
    s = builder.input(number(working))
    _, h, _, kv = (builder.input(number(POINT_DTYPE)) for _ in range(4))
    table = builder.input(spec_of(bias))
    read = builder.call(p.index, table, [h, kv], spec=number(bias.dtype))
    return text_of(builder.build(builder.call(p.add, s, read, spec=number(working))))


def mask() -> str:
    """kv <= q"""
    builder = GraphBuilder("prims")
    _, _, q, kv = (builder.input(number(POINT_DTYPE)) for _ in range(4))
    return text_of(builder.build(builder.call(p.le, kv, q, spec=number(torch.bool))))


def whole(
    given: list[torch.Tensor], bias: torch.Tensor, blocks: list[torch.Tensor | None], size: list[int]
) -> tuple[GraphModule, tuple[Any, ...]]:
    """A graph of one call, and what the operator is called with behind the lists of blocks."""
    builder = GraphBuilder("prims")
    places = [builder.input(spec_of(tensor)) for tensor in given]
    lists = [None if block is None else builder.input(spec_of(block)) for block in blocks]
    table = builder.input(spec_of(bias))
    programs = (score(working_dtype(given[0].dtype), bias), mask())
    rest = (*programs, [0], [], 0.5, size, True)
    specs = result_specs(spec_of(given[0]), spec_of(given[2]), True)
    assert specs is not None
    called = builder.call(ATTENTION, *places, lists, [table], [], *rest, spec=specs)
    results = [builder.call(operator.getitem, called, at, spec=spec) for at, spec in enumerate(specs)]
    return builder.build(*results), rest


def tensors(dtype: torch.dtype, width: int = 20, heads: int = 2) -> list[torch.Tensor]:
    sizes = [(2, 4, 100, width), (2, heads, 100, width), (2, heads, 100, 24)]
    return [torch.randn(size, dtype=torch.float64).to(dtype) for size in sizes]


def kernels(program: Program) -> list[AttentionKernel]:
    assert not any(isinstance(step, CallExtern) for step in program.steps)
    assert any(isinstance(step, RunKernel) for step in program.steps)
    return [kernel for kernel in program.kernels if isinstance(kernel, AttentionKernel)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("heads", [4, 2, 1])
def test_values(dtype: torch.dtype, heads: int) -> None:
    given, bias = tensors(dtype, heads=heads), torch.randn(4, 100)
    graph, rest = whole(given, bias, NO_BLOCKS, [])
    assert len(kernels(plan(graph))) == 1
    found = compile_graph(graph, CodegenOptions(cache=False))(*given, bias)
    doubled = [tensor.double() for tensor in given]
    exact = ATTENTION(*doubled, NO_BLOCKS, [bias], [], score(torch.float64, bias), *rest[1:])
    for one, other, allowed in zip(found, exact, (dtype, *[torch.float32] * 2), strict=True):
        error = (one.double() - other).norm() / other.norm()
        assert error < 8 * torch.finfo(allowed).eps


@pytest.mark.parametrize("size", [[32, 32], [40, 24], [128, 128]])
def test_only_listed_blocks_are_looked_at(size: list[int]) -> None:
    """Of every block of queries the first block of keys is seen, as a whole where it lies before them."""
    given, bias = tensors(torch.float32), torch.randn(4, 100)
    rows = -(-100 // size[0])
    columns = -(-100 // size[1])
    counts = torch.zeros(1, 1, rows, dtype=torch.int32)
    full = counts.clone()
    for row in range(rows):
        (full if row * size[0] >= size[1] - 1 else counts)[0, 0, row] = 1
    indices = torch.zeros(1, 1, rows, columns, dtype=torch.int32)
    lists: list[torch.Tensor | None] = [counts, indices, full, indices.clone(), None, None, None, None]
    graph, _ = whole(given, bias, lists, size)
    assert len(kernels(plan(graph))) == 1
    given_lists = [one for one in lists if one is not None]
    out, _, _ = compile_graph(graph, CodegenOptions(cache=False))(*given, *given_lists, bias)
    keys, values = (tensor.repeat_interleave(2, 1)[:, :, : size[1]] for tensor in given[1:])
    seen = keys.shape[2]
    scores = given[0] @ keys.transpose(-2, -1) * 0.5 + bias[:, None, :seen]
    q, kv = torch.arange(100).unsqueeze(1), torch.arange(seen)
    weights = scores.masked_fill(kv > q, -math.inf).softmax(-1)
    torch.testing.assert_close(out, weights @ values)


def test_wide_queries_are_left_to_the_operator(caplog: pytest.LogCaptureFixture) -> None:
    given, bias = tensors(torch.float32, width=300), torch.randn(4, 100)
    graph, rest = whole(given, bias, NO_BLOCKS, [])
    with caplog.at_level(logging.WARNING):
        program = plan(graph)
    assert "IND122" in caplog.text
    assert not program.kernels
    found = compile_graph(graph, CodegenOptions(cache=False))(*given, bias)
    torch.testing.assert_close(found[0], ATTENTION(*given, NO_BLOCKS, [bias], [], *rest)[0])


def test_an_index_out_of_range_is_an_index_error() -> None:
    given, bias = tensors(torch.float32), torch.randn(4, 50)
    graph, _ = whole(given, bias, NO_BLOCKS, [])
    with pytest.raises(IndexError):
        compile_graph(graph, CodegenOptions(cache=False))(*given, bias)


def derivative(working: torch.dtype, bias: torch.Tensor) -> str:
    """What arrives, and that bias gets it at [h, kv]."""
    builder = GraphBuilder("prims")
    builder.input(number(working))
    _, h, _, kv = (builder.input(number(POINT_DTYPE)) for _ in range(4))
    builder.input(spec_of(bias))
    arriving = builder.input(number(working))
    return text_of(builder.build(arriving, arriving, h, kv))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("heads", [4, 1])
@pytest.mark.parametrize("listed", [None, 40])
def test_gradients(dtype: torch.dtype, heads: int, listed: int | None) -> None:
    given, bias = tensors(dtype, heads=heads), torch.randn(4, 100)
    working = working_dtype(dtype)
    size = [] if listed is None else [listed, listed]
    blocks = NO_BLOCKS if listed is None else all_blocks(listed)
    programs = (score(working, bias), mask(), [0], [], 0.5, size)
    out, sums, _ = ATTENTION(*given, NO_BLOCKS, [bias], [], *programs, False)
    arriving = [sums, torch.randn_like(out), torch.randn_like(sums)]
    rest = (*programs, derivative(working, bias), [0], [2])
    expected = ATTENTION_BACKWARD(*given, *arriving, NO_BLOCKS, [bias], [], *rest)
    builder = GraphBuilder("prims")
    places = [builder.input(spec_of(tensor)) for tensor in (*given, *arriving)]
    lists = [None if block is None else builder.input(spec_of(block)) for block in blocks]
    specs = [spec_of(grad) for grad in expected]
    called = builder.call(
        ATTENTION_BACKWARD, *places, lists, [builder.input(spec_of(bias))], [], *rest, spec=specs
    )
    graph = builder.build(
        *[builder.call(operator.getitem, called, at, spec=spec) for at, spec in enumerate(specs)]
    )
    assert len(kernels(plan(graph))) == 2
    inputs = [*given, *arriving, *[block for block in blocks if block is not None], bias]
    for found, other in zip(
        compile_graph(graph, CodegenOptions(cache=False))(*inputs), expected, strict=True
    ):
        error = (found - other).norm() / other.norm()
        assert error < (2e-2 if dtype is torch.bfloat16 else 1e-5)


def all_blocks(size: int) -> list[torch.Tensor | None]:
    """Lists in which every block is seen in part: the mask alone decides."""
    count = -(-100 // size)
    counts = torch.full((1, 1, count), count, dtype=torch.int32)
    indices = torch.arange(count, dtype=torch.int32).expand(1, 1, count, count).contiguous()
    return [counts, indices, None, None, counts.clone(), indices.clone(), None, None]
