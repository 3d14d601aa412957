"""Padded products that a graph gives away, in blocks of rows.

    mm(x[4096, 768], w[768, 50264])[:, :50257]    ->    for 8 blocks of 512 rows: mm(x[512, 768], w)[:, :50257]

A result has no gaps in eager, so that it is copied out of the padded product. Beside a large one (a model's logits) the
whole product would take as much memory again: a block is copied before the next one is computed, into a part of the
result's memory. A block's product may also be in a cache still when it is copied.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fx_interface.dialects.prims import PrimKind, PrimOp
from fx_interface.errors import UserLocation
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.lower.products import FACTORS, PaddedResult
from inductor_codegen.lower.storage import Values, operand_of, seen_through
from inductor_codegen.lower.values import ExternalCall, Operand, Placed, Pointwise, Value
from inductor_codegen.lower.views import Layout, Slice

aten = torch.ops.aten

_WORTH = 32 << 20
"""Bytes of a result from which its product is computed in blocks."""
_BLOCKS, _ROWS = 8, 256
"""How many blocks there are at most, and the fewest rows of one: as many as keep a GPU's matrix units busy where there
are so many columns, and so few that launches count little."""


def is_given_away(node: Node) -> bool:
    """Whether nothing but the caller reads what a node gives, through views or not."""
    for user in node.users:
        is_view = isinstance(user.target, PrimOp) and user.target.kind is PrimKind.VIEW
        if user.op != "output" and not (is_view and is_given_away(user)):
            return False
    return bool(node.users)


def blocks_of_rows(spec: TensorSpec) -> list[tuple[int, int]]:
    """The first row and the number of rows of each block of a matrix; none where it is better computed whole."""
    rows, columns = spec.sizes if len(spec.sizes) == 2 else (0, 0)
    if not isinstance(rows, int) or not isinstance(columns, int):
        return []
    count = min(_BLOCKS, rows // _ROWS)
    if count < 2 or rows * columns * spec.dtype.itemsize < _WORTH:
        return []
    length = -(-rows // count // 8) * 8
    return [(start, min(length, rows - start)) for start in range(0, rows, length)]


def product_by_rows(
    op: OpOverload,
    args: Sequence[object],
    padded: PaddedResult,
    spec: TensorSpec,
    name: str,
    values: Values,
    where: UserLocation | None,
) -> Operand | None:
    """The result of a padded product without its padding, computed in blocks; None where it is better computed whole.

    ``args`` are the padded ones, ``spec`` is that of the result.
    """
    first = FACTORS[op]
    left, right, added = args[first], args[first + 1], args[0]
    blocks = blocks_of_rows(spec)
    if not blocks or len(args) != first + 2 or padded.operand_sizes[0] != spec.sizes[0]:
        return None
    if not isinstance(left, Operand) or not isinstance(right, Operand):
        return None
    if first and not (isinstance(added, Operand) and len(added.sizes) == 1):
        return None
    columns, width = spec.sizes[1], padded.operand_sizes[1]
    beside = [values.place(added, where)] if first and isinstance(added, Operand) else []
    parts: list[Value] = []
    for start, rows in blocks:
        of_rows = seen_through(left, Slice((start, 0), (1, 1), (rows, left.sizes[1])))
        given = (*beside, values.place(of_rows, where), values.place(right, where))
        laid = TensorSpec((rows, width), contiguous_strides((rows, width)), spec.dtype, spec.device)
        product = values.add_value(f"{name}_rows{start}", laid, None, where)
        product.call = ExternalCall(op, given, (), (product.number,), False, where)
        values.result.calls.append(product.call)
        whole = seen_through(operand_of(product), Slice((0, 0), (1, 1), (rows, columns)))
        copied = TensorSpec((rows, columns), contiguous_strides((rows, columns)), spec.dtype, spec.device)
        formula = Pointwise("clone", (whole,), spec.dtype)
        parts.append(values.add_value(f"{name}_part{start}", copied, formula, where))
    return _joined(parts, blocks, spec, name, values, where)


def _joined(
    parts: Sequence[Value],
    blocks: Sequence[tuple[int, int]],
    spec: TensorSpec,
    name: str,
    values: Values,
    where: UserLocation | None,
) -> Operand:
    """What is computed part by part in its memory, as what a call gives that waits for the parts."""
    made = values.add_value(name, spec, None, where)
    placed = []
    for part, (start, rows) in zip(parts, blocks, strict=True):
        values.result.within[part.number] = (made.number, start * spec.strides[0])
        placed.append(Placed(part.number, Layout((rows, spec.sizes[1]), spec.strides, 0)))
    joined = tuple(placed)
    made.call = ExternalCall(aten.cat.default, (joined, 0), (), (made.number,), False, where)
    values.result.calls.append(made.call)
    return operand_of(made)
