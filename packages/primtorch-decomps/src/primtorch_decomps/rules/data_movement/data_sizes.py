"""Specs of operators whose result's size, or whose number, only data can tell: each makes a symbol without a hint.

Two calls give two symbols. Whoever traces knows which tensors are the same, and asks once for each.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import Expr, IntLike, ShapeEnv, product
from fx_interface.tensor_spec import SymSpec, TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.promotion import is_integral
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import canonical_dim, same_sizes


def counted(env: ShapeEnv, most: IntLike | None, least: int = 0) -> Expr:
    """A new number of elements: at least ``least``, at most ``most`` where that is a plain integer."""
    return env.create_symbol(None, low=least, high=most if isinstance(most, int) else None)


def _row_major(sizes: Sequence[IntLike], dtype: torch.dtype, like: TensorSpec) -> TensorSpec:
    return TensorSpec(tuple(sizes), contiguous_strides(sizes), dtype, like.device)


@spec_rule("aten.nonzero.default", "aten.argwhere.default")
def nonzero(x: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    """One row for each element that is not zero; columns lie together in memory."""
    count = counted(env, product(x.sizes))
    return TensorSpec((count, x.rank), (1, count), torch.int64, x.device)


@spec_rule("aten.masked_select.default")
def masked_select(x: TensorSpec, mask: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    most = product(x.sizes) if same_sizes(x.sizes, mask.sizes, env) else None
    return _row_major((counted(env, most),), x.dtype, x)


def _distinct(x: TensorSpec, env: ShapeEnv) -> Expr:
    """How many different elements ``x`` has: at least one if it has any."""
    total = product(x.sizes)
    return counted(env, total, 1 if isinstance(total, int) and total > 0 else 0)


@spec_rule("aten._unique.default")
def unique_plain(
    x: TensorSpec, sorted: bool = True, return_inverse: bool = False, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    found, inverse, _ = unique(x, sorted, return_inverse, env=env)
    return found, inverse


@spec_rule("aten._unique2.default")
def unique(
    x: TensorSpec,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The different elements, where each element of ``x`` stands among them, and how often each occurs."""
    count = _distinct(x, env)
    inverse = _row_major(x.sizes if return_inverse else (0,), torch.int64, x)
    counts = _row_major((count,) if return_counts else (0,), torch.int64, x)
    return _row_major((count,), x.dtype, x), inverse, counts


@spec_rule("aten.unique_consecutive.default")
def unique_consecutive(
    x: TensorSpec,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    if dim is None:
        return unique(x, True, return_inverse, return_counts, env=env)
    if x.rank != 1:
        raise RuleMismatchError("slices that are the same")
    canonical_dim(dim, 1)
    return unique(x, True, return_inverse, return_counts, env=env)


@spec_rule("aten.unique_dim.default")
def unique_dim(
    x: TensorSpec,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    *,
    env: ShapeEnv,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """The different slices along ``dim``, on a CPU stacked first in memory."""
    axis = canonical_dim(dim, x.rank)
    if x.rank == 0 or any(isinstance(n, int) and n == 0 for n in x.sizes):
        raise RuleMismatchError("slices of nothing")
    length = x.sizes[axis]
    count = counted(env, length, 1 if isinstance(length, int) else 0)
    rest = [n for d, n in enumerate(x.sizes) if d != axis]
    packed = contiguous_strides((count, *rest))
    strides = [*packed[1 : axis + 1], packed[0], *packed[axis + 1 :]]
    sizes = tuple(count if d == axis else n for d, n in enumerate(x.sizes))
    if x.device.type != "cpu":
        strides = list(contiguous_strides(sizes))
    found = TensorSpec(sizes, tuple(strides), x.dtype, x.device)
    return found, _row_major((length,), torch.int64, x), _row_major((count,), torch.int64, x)


@spec_rule("aten.unique_dim_consecutive.default")
def unique_dim_consecutive(
    x: TensorSpec, dim: int, return_inverse: bool = False, return_counts: bool = False, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    return unique_dim(x, dim, True, return_inverse, return_counts, env=env)


@spec_rule("aten.bincount.default")
def bincount(
    x: TensorSpec, weights: TensorSpec | None = None, minlength: IntLike = 0, *, env: ShapeEnv
) -> TensorSpec:
    """One count for each number up to the greatest, and at least ``minlength`` of them."""
    if x.rank != 1:
        raise RuleMismatchError("bins of a tensor with other than one dimension")
    least = minlength if isinstance(minlength, int) else env.bounds(minlength).low or 0
    dtype = torch.int64
    if weights is not None:
        dtype = torch.float32 if weights.dtype is torch.float32 else torch.float64
    return _row_major((counted(env, None, max(least, 0)),), dtype, x)


@spec_rule("aten.repeat_interleave.Tensor")
def repeat_interleave(
    repeats: TensorSpec, *, output_size: IntLike | None = None, env: ShapeEnv
) -> TensorSpec:
    """Each place as often as ``repeats`` says."""
    size = counted(env, None) if output_size is None else output_size
    return _row_major((size,), repeats.dtype, repeats)


@spec_rule("aten._ctc_loss.Tensor")
def ctc_loss(
    log_probs: TensorSpec, targets: TensorSpec, *rest: object, env: ShapeEnv, **options: object
) -> tuple[TensorSpec, TensorSpec]:
    """Losses [batch], and probabilities [batch, time, 2 * the longest target + 1] for the gradient."""
    if log_probs.rank != 3:
        raise RuleMismatchError("no batch")
    time, batch, _ = log_probs.sizes
    states = counted(env, None, 1)
    dtype = log_probs.dtype
    return _row_major((batch,), dtype, log_probs), _row_major((batch, time, states), dtype, log_probs)


@spec_rule("aten._ctc_loss_backward.Tensor")
def ctc_loss_backward(grad: TensorSpec, log_probs: TensorSpec, *rest: object, env: ShapeEnv) -> TensorSpec:
    return _row_major(log_probs.sizes, log_probs.dtype, log_probs)


_LIMITS = {
    torch.int64: (-(1 << 63), (1 << 63) - 1),
    torch.int32: (-(1 << 31), (1 << 31) - 1),
    torch.int16: (-(1 << 15), (1 << 15) - 1),
    torch.int8: (-(1 << 7), (1 << 7) - 1),
    torch.uint8: (0, 255),
}


@spec_rule("aten._local_scalar_dense.default")
def number(x: TensorSpec, *, env: ShapeEnv) -> SymSpec:
    """The integer in a tensor of one element."""
    if not is_integral(x.dtype) or x.dtype not in _LIMITS:
        raise RuleMismatchError("a number that is no integer")
    low, high = _LIMITS[x.dtype]
    return SymSpec(env.create_symbol(None, low=low, high=high))
