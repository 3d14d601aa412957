"""Specs of operators that write by index, sort, accumulate or draw random numbers; they are library calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.promotion import is_integral
from primtorch_decomps.registry import spec_rule
from primtorch_decomps.shapes import at_most, broadcast, canonical_dim, required, required_within
from primtorch_decomps.strides import format_strides, overwritten_strides, preserved_strides


def _contiguous(sizes: Sequence[IntLike], dtype: torch.dtype, device: torch.device) -> TensorSpec:
    sizes = tuple(sizes)
    return TensorSpec(sizes, contiguous_strides(sizes), dtype, device)


@spec_rule("aten.embedding_dense_backward.default")
def embedding_dense_backward(
    grad: TensorSpec,
    indices: TensorSpec,
    num_weights: IntLike,
    padding_idx: int,
    scale_grad_by_freq: bool,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    """Gradient [..., E] -> [num_weights, E]."""
    return _contiguous((num_weights, grad.sizes[-1]), grad.dtype, grad.device)


@spec_rule(
    "aten.index_put.default",
    "aten._unsafe_index_put.default",
    "aten.index_fill.int_Scalar",
    "aten.index_fill.int_Tensor",
    "aten.put.default",
)
def like_first(x: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    """A changed clone of the first tensor."""
    if x.rank == 0:
        raise RuleMismatchError("indices into a 0-dimensional tensor")
    return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)


@spec_rule(
    "aten.scatter.src",
    "aten.scatter.value",
    "aten.scatter_add.default",
    "aten.scatter.reduce",
    "aten.scatter.value_reduce",
    "aten.scatter_reduce.two",
)
def scatter(
    x: TensorSpec,
    dim: int,
    index: TensorSpec,
    source: Any,
    *args: Any,
    env: ShapeEnv,
    **kwargs: Any,
) -> TensorSpec:
    """A changed copy of the first tensor, row-major. The index is nowhere longer than the source, and along ``dim``
    alone longer than the tensor: generated code takes both from where the index says."""
    axis = canonical_dim(dim, x.rank)
    places, rank = _at_least_one(index.sizes), max(x.rank, 1)
    sources = _at_least_one(source.sizes) if isinstance(source, TensorSpec) else places
    if not (
        len(places) == len(sources) == rank
        and required_within(places, _at_least_one(x.sizes), axis, env)
        and required_within(places, sources, None, env)
    ):
        raise RuleMismatchError("an index of other sizes than what is scattered")
    return _contiguous(x.sizes, x.dtype, x.device)


@spec_rule("aten.index_add.default", "aten.index_copy.default", "aten.index_reduce.default")
def by_index(
    x: TensorSpec, dim: int, index: TensorSpec, source: TensorSpec, *args: Any, env: ShapeEnv, **kwargs: Any
) -> TensorSpec:
    """A changed copy of the first tensor, row-major; each index names the place of one slice of the source."""
    axis = canonical_dim(dim, x.rank)
    wanted = [*_at_least_one(x.sizes)]
    wanted[axis] = index.numel
    if index.rank > 1 or not _fits(_at_least_one(source.sizes), wanted, env):
        raise RuleMismatchError("slices of other sizes, or not one for each index")
    return _contiguous(x.sizes, x.dtype, x.device)


def _at_least_one(sizes: Sequence[IntLike]) -> tuple[IntLike, ...]:
    """The sizes of a number are those of one element."""
    return tuple(sizes) or (1,)


def _fits(sizes: Sequence[IntLike], wanted: Sequence[IntLike], env: ShapeEnv) -> bool:
    return len(sizes) == len(wanted) and all(
        required(one, other, env) for one, other in zip(sizes, wanted, strict=True)
    )


@spec_rule("aten.cumsum.default", "aten.cumprod.default")
def cumulative(x: TensorSpec, dim: int, *, dtype: torch.dtype | None = None, env: ShapeEnv) -> TensorSpec:
    canonical_dim(dim, x.rank)
    chosen = dtype or (torch.int64 if is_integral(x.dtype) else x.dtype)
    return _contiguous(x.sizes, chosen, x.device)


@spec_rule("aten.topk.default")
def topk(
    x: TensorSpec, k: IntLike, dim: int = -1, largest: bool = True, sorted: bool = True, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    axis = canonical_dim(dim, x.rank)
    if x.rank == 0 or not at_most(k, x.sizes[axis], env):
        raise RuleMismatchError("topk's k is out of range")
    sizes = (*x.sizes[:axis], k, *x.sizes[axis + 1 :])
    return _contiguous(sizes, x.dtype, x.device), _contiguous(sizes, torch.int64, x.device)


@spec_rule("aten.sort.default")
def sort(
    x: TensorSpec, dim: int = -1, descending: bool = False, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    return sort_stable(x, stable=None, dim=dim, descending=descending, env=env)


@spec_rule("aten.sort.stable")
def sort_stable(
    x: TensorSpec, *, stable: bool | None, dim: int = -1, descending: bool = False, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    canonical_dim(dim, x.rank)
    strides = preserved_strides(x.sizes, x.strides, env)
    return (
        TensorSpec(x.sizes, strides, x.dtype, x.device),
        TensorSpec(x.sizes, strides, torch.int64, x.device),
    )


@spec_rule("aten.native_dropout.default")
def native_dropout(
    x: TensorSpec, p: float, train: bool | None, *, env: ShapeEnv
) -> tuple[TensorSpec, TensorSpec]:
    strides = preserved_strides(x.sizes, x.strides, env)
    return (
        TensorSpec(x.sizes, strides, x.dtype, x.device),
        TensorSpec(x.sizes, strides, torch.bool, x.device),
    )


@spec_rule("aten.masked_scatter.default")
def masked_scatter(x: TensorSpec, mask: TensorSpec, source: TensorSpec, *, env: ShapeEnv) -> TensorSpec:
    return _contiguous(broadcast([x.sizes, mask.sizes], env), x.dtype, x.device)


@spec_rule("aten.bernoulli.default", "aten.bernoulli.p")
def bernoulli(x: TensorSpec, p: Any = None, *, generator: Any = None, env: ShapeEnv) -> TensorSpec:
    return _contiguous(x.sizes, x.dtype, x.device)


@spec_rule(
    "aten.uniform.default",
    "aten.normal_functional.default",
    "aten.exponential.default",
)
def drawn_like(x: TensorSpec, *args: Any, generator: Any = None, env: ShapeEnv, **kwargs: Any) -> TensorSpec:
    """Random numbers in the shape of a tensor."""
    return TensorSpec(x.sizes, preserved_strides(x.sizes, x.strides, env), x.dtype, x.device)


@spec_rule(
    "aten.rand_like.default",
    "aten.randn_like.default",
    "aten.rand_like.generator",
    "aten.randn_like.generator",
    "aten.empty_like.default",
)
def fresh_like(
    x: TensorSpec,
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: torch.memory_format | None = None,
    env: ShapeEnv,
) -> TensorSpec:
    strides = format_strides(x.sizes, x.strides, memory_format, env)
    return TensorSpec(
        x.sizes, strides, dtype or x.dtype, x.device if device is None else torch.device(device)
    )


@spec_rule(
    "aten.rand.default",
    "aten.randn.default",
    "aten.rand.generator",
    "aten.randn.generator",
    "aten.empty.memory_format",
)
def fresh(
    sizes: Sequence[IntLike],
    *,
    generator: Any = None,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    memory_format: torch.memory_format | None = None,
    env: ShapeEnv,
) -> TensorSpec:
    place = torch.device("cpu") if device is None else torch.device(device)
    shape = tuple(sizes)
    strides = format_strides(shape, contiguous_strides(shape), memory_format or torch.contiguous_format, env)
    return TensorSpec(shape, strides, dtype or torch.get_default_dtype(), place)


@spec_rule("aten.new_empty.default")
def new_empty(
    x: TensorSpec,
    sizes: Sequence[IntLike],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    return fresh(sizes, dtype=dtype or x.dtype, device=x.device if device is None else device, env=env)


@spec_rule("aten.new_empty_strided.default")
def new_empty_strided(
    x: TensorSpec,
    sizes: Sequence[IntLike],
    strides: Sequence[IntLike],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    place = x.device if device is None else torch.device(device)
    return TensorSpec(tuple(sizes), tuple(strides), dtype or x.dtype, place)


@spec_rule("aten.empty_strided.default")
def empty_strided(
    sizes: Sequence[IntLike],
    strides: Sequence[IntLike],
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
    env: ShapeEnv,
) -> TensorSpec:
    place = torch.device("cpu") if device is None else torch.device(device)
    return TensorSpec(tuple(sizes), tuple(strides), dtype or torch.get_default_dtype(), place)


@spec_rule("aten.as_strided.default")
def as_strided(
    x: TensorSpec,
    sizes: Sequence[IntLike],
    strides: Sequence[IntLike],
    storage_offset: IntLike | None = None,
    *,
    env: ShapeEnv,
) -> TensorSpec:
    return TensorSpec(tuple(sizes), tuple(strides), x.dtype, x.device, alias=x.alias)


@spec_rule("aten.masked_scatter_backward.default")
def masked_scatter_backward(
    grad: TensorSpec, mask: TensorSpec, sizes: Sequence[IntLike], *, env: ShapeEnv
) -> TensorSpec:
    """The gradient of what was written, in the form that it had."""
    return _contiguous(sizes, grad.dtype, grad.device)


@spec_rule("aten.as_strided_scatter.default")
def window_written(x: TensorSpec, *args: Any, env: ShapeEnv) -> TensorSpec:
    """A copy of the first tensor, gaps included, with other elements in a window of its memory."""
    return TensorSpec(x.sizes, overwritten_strides(x.sizes, x.strides, env), x.dtype, x.device)
