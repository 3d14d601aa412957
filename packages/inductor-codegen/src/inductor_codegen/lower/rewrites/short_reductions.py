"""Sums of a few elements of memory on a GPU, as additions.

A kernel that reduces goes along its operand's rows; one that does not takes points in tiles, and so writes along the
result's memory too. The gradient of keys that heads share is such a sum, of two or four heads, which lie transposed.
"""

from __future__ import annotations

import itertools

import torch

from fx_interface.errors import UserLocation
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.storage import Values, operand_of, seen_through
from inductor_codegen.lower.values import Formula, Number, Operand, Pointwise, Reduction
from inductor_codegen.lower.views import Slice, reshape

_MOST = 8
"""Elements up to which a sum is written out."""
_DTYPES = (torch.float64, torch.float32, torch.int64)


def written_out(
    reduction: Formula, name: str, spec: TensorSpec, values: Values, where: UserLocation | None
) -> Formula:
    """The last of the additions that a sum of few elements is, the others added to ``values``; else ``reduction``."""
    if not isinstance(reduction, Reduction) or not _is_short(reduction, spec, values):
        return reduction
    operand, dims = reduction.operand, reduction.dims
    ones = tuple([1] * len(operand.sizes))
    sizes = tuple([1 if dim in dims else size for dim, size in enumerate(operand.sizes)])
    total: Number | Operand = Number(0)
    terms = list(itertools.product(*(range(int(operand.sizes[dim])) for dim in dims)))  # type: ignore[arg-type]
    for place, index in enumerate(terms, 1):
        at = dict(zip(dims, index, strict=True))
        starts = tuple([at.get(dim, 0) for dim in range(len(sizes))])
        term = seen_through(seen_through(operand, Slice(starts, ones, sizes)), reshape(sizes, spec.sizes))
        sum_so_far = Pointwise("add", (total, term), spec.dtype)
        if place < len(terms):
            total = operand_of(values.add_value(f"{name}_{place}", spec, sum_so_far, where))
    return sum_so_far


def _is_short(reduction: Reduction, spec: TensorSpec, values: Values) -> bool:
    if spec.device.type != "cuda" or reduction.kind != "sum" or spec.dtype not in _DTYPES:
        return False
    terms = 1
    for dim in reduction.dims:
        length = reduction.operand.sizes[dim]
        if not isinstance(length, int):
            return False
        terms *= length
    return 2 <= terms <= _MOST and _is_in_memory(reduction.operand, values)


def _is_in_memory(operand: Operand, values: Values) -> bool:
    """Whether nothing but conversions stands between an operand and memory: each element is read where it is added."""
    formula = values.result.values[operand.source].formula
    while isinstance(formula, Pointwise) and formula.op == "convert_dtype":
        (read,) = formula.args
        assert isinstance(read, Operand)
        formula = values.result.values[read.source].formula
    return formula is None
