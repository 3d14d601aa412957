"""The table of primitives: complete, and what it says of shapes and dtypes is what the primitives do."""

from __future__ import annotations

import pytest
import torch

from fx_interface.dialects.prims import PRIMS, PrimKind, PrimOp
from fx_interface.symbols import ShapeEnv
from primtorch_decomps.prims import PrimTensor, Trace, ops, tracing
from primtorch_decomps.prims.page import dtype_rule, memory, reference, rows, shape_rule


def test_every_primitive_has_a_row() -> None:
    page = "\n".join(rows())
    assert len(rows()) == len(PRIMS) + 2
    for op in PRIMS.values():
        assert f"| `{op.schema.replace('|', chr(92) + '|')}` |" in page
        assert all((shape_rule(op), dtype_rule(op), memory(op), reference(op)))


def test_references() -> None:
    assert reference(PRIMS["neg"]) == "torch.neg"
    assert reference(PRIMS["add"]) == "operator.add"
    assert reference(PRIMS["permute"]) == "lambda x, dims: x.permute(list(dims))"
    assert reference(PRIMS["where"]) == "fx_interface.dialects.prims._where"


@pytest.mark.parametrize(
    "op", [op for op in PRIMS.values() if "Tensor x)" in op.schema], ids=lambda op: op.name
)
def test_dtypes_of_unary_primitives(op: PrimOp) -> None:
    dtype = torch.int64 if op.name == "bitwise_not" else torch.float32
    with tracing(Trace(ShapeEnv())):
        found = getattr(ops, op.name)(PrimTensor((3,), dtype, torch.device("cpu")))
    told = torch.bool if dtype_rule(op) == "bool" else dtype
    assert found.dtype is told
    assert op(torch.ones(3, dtype=dtype)).dtype is told


@pytest.mark.parametrize(
    "op", [op for op in PRIMS.values() if op.kind is PrimKind.REDUCTION], ids=lambda op: op.name
)
def test_dtypes_of_reductions(op: PrimOp) -> None:
    dims = 0 if op.name.startswith("arg") else [0]
    found = op(torch.ones(2, 3, dtype=torch.int32), dims)
    told = {"bool": torch.bool, "int64": torch.int64}.get(dtype_rule(op), torch.int32)
    assert found.dtype is told
    assert found.shape == (3,)
