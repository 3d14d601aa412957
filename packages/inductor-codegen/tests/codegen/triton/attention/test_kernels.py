"""Kernels of attention in Triton's interpreter, forward and backward, against the operators."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.fx import GraphModule

from fx_interface import GraphBuilder
from fx_interface.attention.operators import ATTENTION, ATTENTION_BACKWARD
from fx_interface.attention.programs import text_of
from fx_interface.dialects import prims as p
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE, result_specs
from fx_interface.tensor_spec import TensorSpec, spec_of
from inductor_codegen.ir.attention.form import AttentionKernel
from inductor_codegen.pipeline import plan
from inductor_codegen.schedule.attention import build

Interpret = Callable[..., Callable[..., Any]]
CPU = torch.device("cpu")
NUMBER = TensorSpec((), (), torch.float32, CPU)
POINT = TensorSpec((), (), POINT_DTYPE, CPU)
BIAS = torch.randn(4, 50)
NO_BLOCKS: list[torch.Tensor | None] = [None] * BLOCK_TENSORS


@pytest.fixture(autouse=True)
def _as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "is_cpu", lambda device: False)


def program(kind: str) -> str:
    """tanh(s) + bias[h, kv]; its derivative with what bias gets; kv <= q."""
    builder = GraphBuilder("prims")
    s = None if kind == "mask" else builder.input(NUMBER)
    _, h, q, kv = (builder.input(POINT) for _ in range(4))
    if s is None:
        truth = TensorSpec((), (), torch.bool, CPU)
        return text_of(builder.build(builder.call(p.le, kv, q, spec=truth)))
    bias = builder.input(spec_of(BIAS))
    bent = builder.call(p.tanh, s, spec=NUMBER)
    if kind == "score":
        read = builder.call(p.index, bias, [h, kv], spec=NUMBER)
        return text_of(builder.build(builder.call(p.add, bent, read, spec=NUMBER)))
    arriving = builder.input(NUMBER)
    square = builder.call(p.mul, bent, bent, spec=NUMBER)
    rest = builder.call(p.sub, 1.0, square, spec=NUMBER)
    return text_of(builder.build(builder.call(p.mul, arriving, rest, spec=NUMBER), arriving, h, kv))


def lists() -> list[torch.Tensor | None]:
    """Blocks of 32 of 50 queries and keys: each queries' block sees its own in part, those before as a whole."""
    partial = torch.tensor([[[1, 1]]], dtype=torch.int32)
    own = torch.tensor([[[[0, 1], [1, 0]]]], dtype=torch.int32)
    before = torch.tensor([[[0, 1]]], dtype=torch.int32)
    after = torch.tensor([[[1, 0]]], dtype=torch.int32)
    first = torch.tensor([[[[0, 1], [0, 1]]]], dtype=torch.int32)
    last = torch.tensor([[[[1, 0], [1, 0]]]], dtype=torch.int32)
    return [partial, own, before, first, partial, own, after, last]


def graph_of(
    op: Any, given: list[torch.Tensor], blocks: list[Any], rest: tuple[Any, ...], specs: Any
) -> GraphModule:
    builder = GraphBuilder("prims")
    places = [builder.input(spec_of(tensor)) for tensor in given]
    listed = [None if block is None else builder.input(spec_of(block)) for block in blocks]
    called = builder.call(op, *places, listed, [builder.input(spec_of(BIAS))], [], *rest, spec=specs)
    return builder.build(
        *[builder.call(operator.getitem, called, place, spec=spec) for place, spec in enumerate(specs)]
    )


@pytest.mark.parametrize("heads", [4, 2])
@pytest.mark.parametrize("listed", [False, True])
def test_values_and_gradients(heads: int, listed: bool, interpret: Interpret) -> None:
    numpy = pytest.importorskip("numpy")
    if listed and tuple(map(int, numpy.__version__.split(".")[:2])) >= (2, 4):
        pytest.skip("this numpy makes no integer of an array of one, as the interpreter's loops ask it to")
    sizes = [(1, 4, 50, 20), (1, heads, 50, 20), (1, heads, 50, 16)]
    given = [torch.randn(size) for size in sizes]
    blocks = lists() if listed else NO_BLOCKS
    texts = [program(kind) for kind in ("score", "mask", "joint")]
    common = (*texts[:2], [0], [], 0.25, [32, 32] if listed else [])
    specs = result_specs(spec_of(given[0]), spec_of(given[2]), True)
    given_blocks = [block for block in blocks if block is not None]

    expected = ATTENTION(*given, blocks, [BIAS], [], *common, True)
    forward = plan(graph_of(ATTENTION, given, blocks, (*common, True), specs))
    assert [isinstance(kernel, AttentionKernel) for kernel in forward.kernels] == [True]
    found = interpret(forward)(*given, *given_blocks, BIAS)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)

    arriving = [expected[1], torch.randn_like(expected[0]), torch.randn_like(expected[1])]
    rest = (*common, texts[2], [0], [2])
    grads = ATTENTION_BACKWARD(*given, *arriving, blocks, [BIAS], [], *rest)
    backward = plan(
        graph_of(ATTENTION_BACKWARD, [*given, *arriving], blocks, rest, [spec_of(grad) for grad in grads])
    )
    assert sum(isinstance(kernel, AttentionKernel) for kernel in backward.kernels) == 2
    found = interpret(backward)(*given, *arriving, *given_blocks, BIAS)
    for one, other in zip(found, grads, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
