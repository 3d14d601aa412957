"""Each rule of the primitives accepts what the reference computes and refuses what it does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from fx_interface import GraphBuilder, InvalidGraphError, TensorSpec, spec_of, verify
from fx_interface.dialects import prims
from fx_interface.dialects.prims import PRIMS, PrimKind, PrimOp

CPU = torch.device("cpu")
X = torch.linspace(0.1, 0.9, 6).reshape(2, 3)
INTS = torch.tensor([[3, 1, 2], [7, 5, 4]])
BOOLS = INTS > 3

CALLS: dict[str, tuple[Any, ...]] = {
    "where": (BOOLS, X, 0.0),
    "convert_dtype": (X, torch.int64),
    "broadcast_in_dim": (torch.ones(1, 3), [4, 2, 3], [1, 2]),
    "reshape": (X, [3, 2]),
    "permute": (X, [1, 0]),
    "slice": (X, [0, 1], [2, 3], [1, 2]),
    "flip": (X, [0]),
    "pad": (X, [1, 0], [0, 2], 0.5),
    "cat": ([X, X], 1),
    "index": (X, [torch.tensor([1, 0]), None]),
    "gather": (X, 1, torch.tensor([[0], [2]])),
    "argmax": (X, 1),
    "argmin": (X, 0),
    "full": ([2, 3], 1.5, torch.float32, CPU),
    "iota": (5, 2, 3, torch.int64, CPU),
    "any": (BOOLS, [1]),
    "all": (BOOLS, [0]),
    "logical_not": (BOOLS,),
    "bitwise_not": (INTS,),
    "acosh": (X + 1,),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor", "shift_left", "shift_right"), (INTS, INTS)),
}


def arguments(op: PrimOp) -> tuple[Any, ...]:
    if op.name in CALLS:
        return CALLS[op.name]
    if op.kind is PrimKind.REDUCTION:
        return (X, [0, 1])
    return (X, X + 1) if op.schema.count("Tensor|Number") == 2 else (X,)


def graph_of(
    op: PrimOp, args: tuple[Any, ...], result: TensorSpec | None = None
) -> tuple[GraphModule, list[Tensor]]:
    builder, tensors = GraphBuilder("prims"), []

    def place(value: Any) -> Any:
        if isinstance(value, Tensor):
            tensors.append(value)
            return builder.input(spec_of(value))
        return [place(item) for item in value] if isinstance(value, list) else value

    placed = [place(arg) for arg in args]
    spec = spec_of(op(*args)) if result is None else result
    return builder.build(builder.call(op, *placed, spec=spec)), tensors


@pytest.mark.parametrize("op", PRIMS.values(), ids=str)
def test_accepts_what_the_reference_computes(op: PrimOp) -> None:
    graph, tensors = graph_of(op, arguments(op))
    verify(graph)
    (result,) = graph(*tensors)
    assert torch.equal(result, op(*arguments(op)))


@pytest.mark.parametrize("op", [op for op in PRIMS.values() if op.name != "index"], ids=str)
def test_refuses_another_shape(op: PrimOp) -> None:
    wrong = TensorSpec((9, 9, 9), (81, 9, 1), op(*arguments(op)).dtype, CPU)
    with pytest.raises(InvalidGraphError, match="FXI112"):
        verify(graph_of(op, arguments(op), wrong)[0])


@pytest.mark.parametrize("op", PRIMS.values(), ids=str)
def test_refuses_another_dtype(op: PrimOp) -> None:
    wrong = replace(spec_of(op(*arguments(op))), dtype=torch.complex128)
    with pytest.raises(InvalidGraphError, match="FXI112"):
        verify(graph_of(op, arguments(op), wrong)[0])


@pytest.mark.parametrize(
    "op, args",
    [
        (prims.add, (X, torch.ones(3))),
        (prims.add, (X, X.double())),
        (prims.add, (INTS, 2.5)),
        (prims.mul, (BOOLS, 2)),
        (prims.where, (BOOLS, X, X.double())),
        (prims.eq, (INTS, INTS.int())),
    ],
    ids=str,
)
def test_refuses_operands_that_would_broadcast_or_promote(op: PrimOp, args: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidGraphError, match="FXI112"):
        verify(graph_of(op, args)[0])


@pytest.mark.parametrize(
    "op, args, result",
    [
        (prims.add, (1, 2), X),
        (prims.reshape, (X, [4, 2]), torch.ones(4, 2)),
        (prims.permute, (X, [0, 0]), torch.ones(2, 2)),
        (prims.broadcast_in_dim, (torch.ones(2), [4, 3], [0]), torch.ones(4, 3)),
        (prims.broadcast_in_dim, (X, [3, 2], [1, 0]), torch.ones(3, 2)),
        (prims.sum, (X, [2]), torch.ones(2)),
        (prims.sum, (X, [0, 0]), torch.ones(3)),
        (prims.cat, ([X, torch.ones(3, 3)], 1), torch.ones(2, 6)),
        (prims.slice_, (X, [0], [2], [1]), torch.ones(2, 3)),
    ],
    ids=str,
)
def test_refuses_wrong_arguments(op: PrimOp, args: tuple[Any, ...], result: Tensor) -> None:
    with pytest.raises(InvalidGraphError, match="FXI112"):
        verify(graph_of(op, args, spec_of(result))[0])


def test_refuses_keywords() -> None:
    graph, _ = graph_of(prims.flip, (X, [0]))
    (call,) = graph.graph.find_nodes(op="call_function", target=prims.flip)
    call.args, call.kwargs = call.args[:1], {"dims": [0]}
    with pytest.raises(InvalidGraphError, match="positional"):
        verify(graph)
