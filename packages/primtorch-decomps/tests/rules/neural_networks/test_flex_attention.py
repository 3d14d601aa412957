"""Specs of attention with programs, and the programs in primitives."""

from __future__ import annotations

import operator
from typing import Any

import pytest
import torch

from fx_interface import GraphBuilder
from fx_interface.attention.operators import ATTENTION, ATTENTION_BACKWARD
from fx_interface.attention.programs import program_of, text_of
from fx_interface.dialects.prims import PrimOp
from fx_interface.regions.attention import BLOCK_TENSORS, POINT_DTYPE
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, spec_of
from primtorch_decomps import LIBRARY, decompose

aten = torch.ops.aten
CPU = torch.device("cpu")


def program(kind: str, working: torch.dtype = torch.float32) -> str:
    """silu(s), its derivative, or kv < q."""
    builder = GraphBuilder("aten")
    number, truth = (TensorSpec((), (), dtype, CPU) for dtype in (working, torch.bool))
    score = None if kind == "mask" else builder.input(number)
    points = [builder.input(TensorSpec((), (), POINT_DTYPE, CPU)) for _ in range(4)]
    if score is None:
        return text_of(builder.build(builder.call(aten.lt.Tensor, points[3], points[2], spec=truth)))
    if kind == "joint":
        arriving = builder.input(number)
        return text_of(builder.build(builder.call(aten.silu_backward.default, arriving, score, spec=number)))
    return text_of(builder.build(builder.call(aten.silu.default, score, spec=number)))


def arguments(working: torch.dtype = torch.float32) -> tuple[Any, ...]:
    score, mask = program("score", working), program("mask")
    return ([None] * BLOCK_TENSORS, [], [], score, mask, [], [], 0.5, [])


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_specs_are_what_the_operators_return(dtype: torch.dtype, order: tuple[int, ...]) -> None:
    given = [
        torch.randn([size[dim] for dim in order], dtype=dtype).permute(order)
        for size in [(2, 4, 5, 3), (2, 2, 7, 3), (2, 2, 7, 6)]
    ]
    working = torch.float64 if dtype is torch.float64 else torch.float32
    rest = (*arguments(working), True)
    results = ATTENTION(*given, *rest)
    assert LIBRARY.infer(ATTENTION, (*map(spec_of, given), *rest), {}, ShapeEnv()) == tuple(
        map(spec_of, results)
    )
    arriving = (results[1], torch.ones_like(results[0]), torch.zeros_like(results[1]))
    rest = (*arguments(working), program("joint", working), [], [])
    grads = ATTENTION_BACKWARD(*given, *arriving, *rest)
    inferred = LIBRARY.infer(
        ATTENTION_BACKWARD, (*map(spec_of, given), *map(spec_of, arriving), *rest), {}, ShapeEnv()
    )
    assert list(inferred) == [spec_of(grad) for grad in grads]  # type: ignore[arg-type]


def test_programs_are_decomposed_with_the_graph() -> None:
    given = [torch.randn(2, 4, 5, 3) for _ in range(3)]
    builder = GraphBuilder("aten")
    places = [builder.input(spec_of(tensor)) for tensor in given]
    rest = (*arguments(), False)
    specs = LIBRARY.infer(ATTENTION, (*map(spec_of, given), *rest), {}, ShapeEnv())
    called = builder.call(ATTENTION, *places, *rest, spec=specs)
    out = builder.call(operator.getitem, called, 0, spec=specs[0])  # type: ignore[index]
    made = decompose(builder.build(out))
    (node,) = made.graph.find_nodes(op="call_function", target=ATTENTION)
    score = program_of(node.args[6])
    calls = [one for one in score.graph.nodes if one.op == "call_function"]
    assert calls
    assert all(isinstance(one.target, PrimOp) for one in calls)
    torch.testing.assert_close(made(*given)[0], ATTENTION(*given, *rest)[0])
