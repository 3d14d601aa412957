"""Specs of binary searches; they are library calls."""

from __future__ import annotations

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import same_sizes


def _places(x: TensorSpec, out_int32: bool) -> TensorSpec:
    """One place for each element, whatever the layout of ``x``."""
    dtype = torch.int32 if out_int32 else torch.int64
    return TensorSpec(x.sizes, contiguous_strides(x.sizes), dtype, x.device)


@spec_rule("aten.bucketize.Tensor")
def bucketize(
    x: TensorSpec, boundaries: TensorSpec, *, out_int32: bool = False, right: bool = False, env: ShapeEnv
) -> TensorSpec:
    if boundaries.rank != 1 or (boundaries.device, boundaries.dtype) != (x.device, x.dtype):
        raise RuleMismatchError("what torch's kernel checks")
    return _places(x, out_int32)


@spec_rule("aten.searchsorted.Tensor")
def searchsorted(
    sorted_sequence: TensorSpec,
    x: TensorSpec,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: TensorSpec | None = None,
    env: ShapeEnv,
) -> TensorSpec:
    """One row is searched for all of ``x``, or each row for a row of ``x``."""
    rows = sorted_sequence.sizes[:-1]
    alike = sorted_sequence.device == x.device and sorted_sequence.dtype is x.dtype
    if not alike or not sorted_sequence.rank or sorter is not None or side is not None:
        raise RuleMismatchError("what torch's kernel checks")
    if rows and (x.rank != sorted_sequence.rank or not same_sizes(rows, x.sizes[:-1], env)):
        raise RuleMismatchError("rows that do not match")
    return _places(x, out_int32)
