"""Evenly spaced numbers between two ends, and powers of a base with evenly spaced exponents."""

from __future__ import annotations

from typing import Any

import torch

from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps.decomps.data_movement.factories import place_of
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.promotion import constant
from primtorch_decomps.registry import decomposes


def _spaced_spec(
    start: Any,
    end: Any,
    steps: Any,
    *base: Any,
    env: ShapeEnv,
    dtype: Any = None,
    device: Any = None,
    **_: Any,
) -> TensorSpec:
    if not isinstance(steps, int) or steps < 0 or isinstance(start, complex) or isinstance(end, complex):
        raise RuleMismatchError("a range of symbolic length, or of complex numbers")
    return TensorSpec((steps,), (1,), dtype or torch.get_default_dtype(), place_of(device))


def _spaced(start: Any, end: Any, steps: Any, dtype: torch.dtype, device: torch.device) -> PrimTensor:
    """From the nearer end, so that both ends are met exactly."""
    if not isinstance(steps, int) or steps < 0 or dtype not in (torch.float32, torch.float64):
        raise RuleMismatchError("a range of numbers that eager rounds on the way, or of symbolic length")
    start, end = float(constant(start)), float(constant(end))
    if steps < 2:
        return ops.full((steps,), start, dtype, device)
    places = ops.convert_dtype(ops.iota(steps, 0, 1, torch.int64, device), dtype)
    step = (end - start) / (steps - 1)
    near, far = places * step + start, (places - float(steps - 1)) * step + end
    return ops.where(ops.lt(places, float(steps // 2)), near, far)


@decomposes("aten.linspace.default", rule=_spaced_spec)
def linspace(
    start: Any,
    end: Any,
    steps: Any,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    chosen = dtype or torch.get_default_dtype()
    return ops.convert_dtype(_spaced(start, end, steps, chosen, place_of(device)), chosen)


@decomposes("aten.logspace.default", rule=_spaced_spec)
def logspace(
    start: Any,
    end: Any,
    steps: Any,
    base: float = 10.0,
    *,
    dtype: torch.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: Any = None,
) -> PrimTensor:
    chosen = dtype or torch.get_default_dtype()
    if base <= 0:
        raise RuleMismatchError("powers of a negative base")
    return ops.convert_dtype(
        ops.pow(float(base), _spaced(start, end, steps, chosen, place_of(device))), chosen
    )
