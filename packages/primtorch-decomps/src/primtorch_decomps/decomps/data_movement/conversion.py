"""Copies: to another dtype, device or memory format."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.pointwise import move_scalar
from primtorch_decomps.prims import PrimTensor, broadcast_to, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import broadcast, required
from primtorch_decomps.strides import format_strides, overwritten_strides


def _to_copy_spec(
    x: TensorSpec,
    *,
    env: ShapeEnv,
    dtype: torch.dtype | None = None,
    device: Any = None,
    memory_format: torch.memory_format | None = None,
    **options: Any,
) -> TensorSpec:
    strides = format_strides(x.sizes, x.strides, memory_format, env)
    return TensorSpec(
        x.sizes, strides, dtype or x.dtype, x.device if device is None else torch.device(device)
    )


@decomposes("aten._to_copy.default", rule=_to_copy_spec)
def to_copy(x: PrimTensor, *, dtype: torch.dtype | None = None, device: Any = None, **options: Any) -> Any:
    if device is not None and torch.device(device) != x.device:
        return NotImplemented
    return ops.clone(x) if dtype is None or dtype is x.dtype else ops.convert_dtype(x, dtype)


def _clone_spec(
    x: TensorSpec, *, memory_format: torch.memory_format | None = None, env: ShapeEnv
) -> TensorSpec:
    return TensorSpec(x.sizes, format_strides(x.sizes, x.strides, memory_format, env), x.dtype, x.device)


@decomposes("aten.clone.default", rule=_clone_spec)
def clone(x: PrimTensor, *, memory_format: torch.memory_format | None = None) -> PrimTensor:
    return ops.clone(x)


def _copy_spec(
    x: TensorSpec, src: TensorSpec | float, non_blocking: bool = False, *, env: ShapeEnv
) -> TensorSpec:
    """``src``: torch hands on a number as it is."""
    sizes = src.sizes if isinstance(src, TensorSpec) else ()
    shown = broadcast([x.sizes, sizes], env)
    if len(shown) != len(x.sizes) or not all(
        required(a, b, env) for a, b in zip(shown, x.sizes, strict=True)
    ):
        raise RuleMismatchError(f"{sizes} does not broadcast to {x.sizes}")
    return TensorSpec(x.sizes, overwritten_strides(x.sizes, x.strides, env), x.dtype, x.device)


@decomposes("aten.copy.default", rule=_copy_spec)
def copy(x: PrimTensor, src: PrimTensor | float, non_blocking: bool = False) -> Any:
    if not isinstance(src, PrimTensor):
        return ops.full(x.sizes, src, dtype=x.dtype, device=x.device)
    if src.device != x.device:
        if src.rank or src.device.type != "cpu":
            return NotImplemented
        src = move_scalar(src, x.device)
    converted = ops.convert_dtype(src, x.dtype)
    moved = broadcast_to(converted, x.sizes)
    return ops.clone(moved) if moved is src else moved
