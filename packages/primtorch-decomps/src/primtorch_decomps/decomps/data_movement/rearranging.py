"""Elements moved to other places: shuffled channels, narrow copies, elements taken from the flat tensor."""

from __future__ import annotations

import torch

from fx_interface.symbols import IntLike, ShapeEnv, floordiv, mod
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.decomps.data_movement.views import narrow
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.images.pooling import native_strides
from primtorch_decomps.shapes import same


@decomposes("aten.narrow_copy.default")
def narrow_copy(x: PrimTensor, dim: int, start: IntLike, length: IntLike) -> PrimTensor:
    return ops.clone(narrow(x, dim, start, length))


@decomposes("aten.take.default")
def take(x: PrimTensor, index: PrimTensor) -> PrimTensor:
    if index.dtype is not torch.int64 or same(x.numel, 0, current_trace().env):
        raise RuleMismatchError("taking from nothing, or by another index than int64")
    return ops.index(ops.reshape(x, (x.numel,)), (index,))


def _is_no_divisor(groups: IntLike, channels: IntLike, env: ShapeEnv) -> bool:
    """``groups`` is a symbol in the gradient, which shuffles in as many groups as a group has channels."""
    return (isinstance(groups, int) and groups < 1) or not same(mod(channels, groups), 0, env)


def _grouped_spec(x: TensorSpec, groups: IntLike, *, env: ShapeEnv) -> TensorSpec:
    if x.rank < 3 or 0 in x.sizes or _is_no_divisor(groups, x.sizes[1], env):
        raise RuleMismatchError("channels that do not divide into groups")
    return TensorSpec(x.sizes, native_strides(x.sizes, x, env), x.dtype, x.device)


@decomposes("aten.channel_shuffle.default", rule=_grouped_spec)
def channel_shuffle(x: PrimTensor, groups: IntLike) -> PrimTensor:
    """[N, groups * C, ...]: channel c of group g moves to place c * groups + g."""
    split = ops.reshape(x, (x.sizes[0], groups, floordiv(x.sizes[1], groups), *x.sizes[2:]))
    order = (0, 2, 1, *range(3, split.rank))
    return ops.reshape(ops.permute(split, order), x.sizes)
