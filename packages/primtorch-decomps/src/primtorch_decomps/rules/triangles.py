"""Specs of the indices of a triangle's elements, and of distances between all pairs of rows."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv, floordiv, maximum, minimum
from fx_interface.tensor_spec import TensorSpec, contiguous_strides, located
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.rules.factorizations import row_major


def _lower(rows: IntLike, columns: IntLike, offset: IntLike) -> IntLike:
    """How many elements lie on or below a diagonal: row ``r`` has ``r + offset + 1`` of them, at most all."""

    def first(count: IntLike) -> IntLike:
        """The sum of the first ``count`` of 1, 2, ... ``columns``, ``columns`` ..."""
        rising = minimum(count, columns)
        return floordiv(rising * (rising + 1), 2) + (count - rising) * columns

    return first(maximum(offset + rows, 0)) - first(maximum(offset, 0))


@spec_rule("aten.tril_indices.default")
def lower_indices(
    row: IntLike,
    col: IntLike,
    offset: IntLike = 0,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    return _pairs(_lower(row, col, offset), dtype, device)


@spec_rule("aten.triu_indices.default")
def upper_indices(
    row: IntLike,
    col: IntLike,
    offset: IntLike = 0,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    return _pairs(row * col - _lower(row, col, offset - 1), dtype, device)


def _pairs(count: IntLike, dtype: torch.dtype | None, device: Any) -> TensorSpec:
    where = located(torch.device(device or "cpu"))
    sizes = (2, count)
    return TensorSpec(sizes, contiguous_strides(sizes), dtype or torch.int64, where)


@spec_rule("aten._pdist_forward.default")
def distances_of_pairs(x: TensorSpec, p: Any = 2, *, env: ShapeEnv) -> TensorSpec:
    """Rows [n, m] -> [n * (n - 1) / 2]."""
    if x.rank != 2 or not x.is_contiguous or not x.dtype.is_floating_point:
        raise RuleMismatchError("rows of numbers, one after the other")
    rows = x.sizes[0]
    return row_major((floordiv(rows * (rows - 1), 2),), x)


@spec_rule("aten._pdist_backward.default")
def distances_of_pairs_backward(
    grad: TensorSpec, x: TensorSpec, p: Any, distances: TensorSpec, *, env: ShapeEnv
) -> TensorSpec:
    return row_major(x.sizes, x)
