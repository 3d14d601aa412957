"""Tensors from nothing: constants, ranges, identity; and constants shaped like another tensor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv, floordiv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps import promotion
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import below
from primtorch_decomps.strides import format_strides

CPU = torch.device("cpu")


def place_of(device: Any) -> torch.device:
    """The device that an option of a factory names: without one, the CPU."""
    return CPU if device is None else torch.device(device)


def constant(sizes: Sequence[IntLike], value: Any, dtype: torch.dtype | None, device: Any) -> PrimTensor:
    """A tensor of one value; without ``dtype`` the value's own (default dtype for floats)."""
    chosen = dtype or promotion.number_dtype(value)
    return ops.full(tuple(sizes), promotion.cast_number(value, chosen), chosen, place_of(device))


@decomposes("aten.full.default")
def full(
    size: Sequence[IntLike],
    fill_value: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    return constant(size, fill_value, dtype, device)


def _filled(value: float) -> Any:
    def function(
        size: Sequence[IntLike],
        *,
        dtype: torch.dtype | None = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: Any = None,
    ) -> PrimTensor:
        return constant(size, value, dtype or torch.get_default_dtype(), device)

    return function


decomposes("aten.zeros.default")(_filled(0))
decomposes("aten.ones.default")(_filled(1))


@decomposes("aten.scalar_tensor.default")
def scalar_tensor(
    s: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    return constant((), s, dtype or torch.get_default_dtype(), device)


def _like_spec(
    x: TensorSpec,
    *args: Any,
    env: ShapeEnv,
    dtype: torch.dtype | None = None,
    device: Any = None,
    memory_format: Any = None,
    **kwargs: Any,
) -> TensorSpec:
    strides = format_strides(x.sizes, x.strides, memory_format, env)
    return TensorSpec(
        x.sizes, strides, dtype or x.dtype, x.device if device is None else torch.device(device)
    )


@decomposes("aten.full_like.default", rule=_like_spec)
def full_like(
    x: PrimTensor, fill_value: Any, *, dtype: torch.dtype | None = None, device: Any = None, **options: Any
) -> PrimTensor:
    return constant(x.sizes, fill_value, dtype or x.dtype, x.device if device is None else device)


@decomposes("aten.zeros_like.default", rule=_like_spec)
def zeros_like(
    x: PrimTensor, *, dtype: torch.dtype | None = None, device: Any = None, **options: Any
) -> PrimTensor:
    return full_like(x, 0, dtype=dtype, device=device)


@decomposes("aten.ones_like.default", rule=_like_spec)
def ones_like(
    x: PrimTensor, *, dtype: torch.dtype | None = None, device: Any = None, **options: Any
) -> PrimTensor:
    return full_like(x, 1, dtype=dtype, device=device)


def _fill_spec(x: TensorSpec, value: Any, *, env: ShapeEnv) -> TensorSpec:
    return _like_spec(x, env=env)


@decomposes("aten.fill.Scalar", rule=_fill_spec)
def fill(x: PrimTensor, value: Any) -> PrimTensor:
    return full_like(x, value)


@decomposes("aten.fill.Tensor", rule=_fill_spec)
def fill_tensor(x: PrimTensor, value: PrimTensor) -> Any:
    if value.device != x.device:
        return NotImplemented
    return ops.broadcast_in_dim(ops.convert_dtype(value, x.dtype), x.sizes, ())


@decomposes("aten.new_full.default")
def new_full(
    x: PrimTensor,
    size: Sequence[IntLike],
    fill_value: Any,
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    **options: Any,
) -> PrimTensor:
    return constant(size, fill_value, dtype or x.dtype, x.device if device is None else device)


@decomposes("aten.new_zeros.default")
def new_zeros(
    x: PrimTensor,
    size: Sequence[IntLike],
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    **options: Any,
) -> PrimTensor:
    return new_full(x, size, 0, dtype=dtype, device=device)


@decomposes("aten.new_ones.default")
def new_ones(
    x: PrimTensor,
    size: Sequence[IntLike],
    *,
    dtype: torch.dtype | None = None,
    device: Any = None,
    **options: Any,
) -> PrimTensor:
    return new_full(x, size, 1, dtype=dtype, device=device)


def _range_length(start: Any, end: Any, step: Any) -> IntLike:
    """How many numbers there are from ``start`` to before ``end``; at least 0."""
    if all(isinstance(v, (int, Expr)) for v in (start, end, step)):
        env = current_trace().env
        is_down = below(step, 0, env)
        if not is_down and not below(0, step, env):
            raise RuleMismatchError("a range without steps")
        span, stride = (start - end, 0 - step) if is_down else (end - start, step)
        length = floordiv(span + stride - 1, stride)
        if isinstance(length, Expr) and env.is_from_data(length):
            env.expect(Relation("<=", 0, length))
        elif below(length, 0, env):
            raise RuleMismatchError("the range's bounds do not suit its step")
        return length
    whole: int = math.ceil((end - start) / step)
    return whole


def _integer(number: Any) -> Any:
    """A number without a fraction as an integer, which sizes can be computed with; None for others."""
    return number if isinstance(number, (int, Expr)) else int(number) if float(number).is_integer() else None


@decomposes("aten.arange.start_step")
def arange(
    start: Any,
    end: Any,
    step: Any = 1,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    whole = all(isinstance(v, (int, Expr)) for v in (start, end, step))
    chosen = dtype or (torch.int64 if whole else torch.get_default_dtype())
    if not whole and any(isinstance(v, Expr) for v in (start, end, step)):
        integers = [_integer(v) for v in (start, end, step)]
        if None not in integers:
            (start, end, step), whole = integers, True
    if not whole:
        start, end, step = map(promotion.constant, (start, end, step))
    if promotion.is_integral(chosen) and not whole:
        start, end, step = int(start), int(end), int(step)
        whole = True
    length = _range_length(start, end, step)
    place = place_of(device)
    if whole:
        return ops.convert_dtype(ops.iota(length, start, step, torch.int64, place), chosen)
    steps = ops.convert_dtype(ops.iota(length, 0, 1, torch.int64, place), torch.float64)
    return ops.convert_dtype(steps * float(step) + float(start), chosen)


@decomposes("aten.arange.default")
def arange_end(
    end: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    return arange(0 if isinstance(end, (int, Expr)) else 0.0, end, dtype=dtype, device=device)


@decomposes("aten.arange.start")
def arange_start(
    start: Any,
    end: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    return arange(start, end, dtype=dtype, device=device)


def _eye_spec(
    n: IntLike, m: IntLike, *, dtype: torch.dtype | None = None, device: Any = None, env: ShapeEnv, **_: Any
) -> TensorSpec:
    made = dtype or torch.get_default_dtype()
    return TensorSpec((n, m), contiguous_strides((n, m)), made, place_of(device))


def _square_spec(n: IntLike, *, env: ShapeEnv, **options: Any) -> TensorSpec:
    return _eye_spec(n, n, env=env, **options)


@decomposes("aten.eye.m", rule=_eye_spec)
def eye(
    n: IntLike,
    m: IntLike,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    place = place_of(device)
    rows = ops.broadcast_in_dim(ops.iota(n, 0, 1, torch.int64, place), (n, m), (0,))
    columns = ops.broadcast_in_dim(ops.iota(m, 0, 1, torch.int64, place), (n, m), (1,))
    return ops.convert_dtype(ops.eq(rows, columns), dtype or torch.get_default_dtype())


@decomposes("aten.eye.default", rule=_square_spec)
def eye_square(
    n: IntLike,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    return eye(n, n, dtype=dtype, device=device)
