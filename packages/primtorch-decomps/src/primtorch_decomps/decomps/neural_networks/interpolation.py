"""Linear and cubic interpolation: each new element is a weighted sum of its neighbours along every scaled dimension."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike
from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.strides import channels_last_order, is_strided_channels_last

_CUBIC = -0.75
"""The parameter of Keys' cubic convolution (1981) that eager uses."""

_Taps = Sequence[tuple[PrimTensor, PrimTensor | None]]
"""Neighbours' places (int64) and weights (None: the rest to 1) along one dimension, one of each for a new element."""


def _sources(
    source: int, size: int, align_corners: bool, scale: float | None, dtype: torch.dtype, device: torch.device
) -> PrimTensor:
    """The fractional place in the source that each new element corresponds to."""
    places = ops.convert_dtype(ops.iota(size, 0, 1, torch.int64, device), dtype)
    if align_corners:
        return places * ((source - 1) / (size - 1) if size > 1 else 0.0)
    step = 1.0 / scale if scale is not None and scale > 0 else source / size
    return (places + 0.5) * step - 0.5


def _linear_taps(places: PrimTensor, source: int) -> _Taps:
    held = ops.maximum(places, 0.0)
    low = ops.minimum(ops.convert_dtype(ops.floor(held), torch.int64), source - 1)
    share = ops.minimum(ops.maximum(held - ops.convert_dtype(low, held.dtype), 0.0), 1.0)
    return [(low, 1.0 - share), (ops.minimum(low + 1, source - 1), share)]


def _cubic_taps(places: PrimTensor, source: int) -> _Taps:
    base = ops.floor(places)
    near = places - base
    far = 1.0 - near
    weights = (_outer(near + 1.0), _inner(near), _inner(far), _outer(far + 1.0))
    start = ops.convert_dtype(base, torch.int64)
    reached = [ops.minimum(ops.maximum(start + step, 0), source - 1) for step in (-1, 0, 1, 2)]
    return list(zip(reached, weights, strict=True))


def _inner(t: PrimTensor) -> PrimTensor:
    return ((_CUBIC + 2.0) * t - (_CUBIC + 3.0)) * t * t + 1.0


def _outer(t: PrimTensor) -> PrimTensor:
    return ((_CUBIC * t - 5.0 * _CUBIC) * t + 8.0 * _CUBIC) * t - 4.0 * _CUBIC


def _along(x: PrimTensor, axis: int, taps: _Taps) -> PrimTensor:
    total: PrimTensor | None = None
    for places, weight in taps:
        picked = ops.index(x, (*(None,) * axis, places))
        if weight is not None:
            picked = picked * ops.broadcast_in_dim(weight, picked.sizes, (axis,))
        total = picked if total is None else total + picked
    assert total is not None
    return total


def _memory_order(x: PrimTensor) -> tuple[int, ...]:
    """The dimensions as they run through memory, channels last or first: what is made between two of them does too."""
    order = channels_last_order(x.rank)
    is_last = order is not None and is_strided_channels_last(x.sizes, x.strides, current_trace().env)
    return tuple(order) if is_last and order is not None else tuple(range(x.rank))


def _interpolation(rank: int, taps: Callable[[PrimTensor, int], _Taps]) -> Callable[..., Any]:
    """Scaling of the last ``rank`` dimensions."""

    def function(
        x: PrimTensor, output_size: Sequence[IntLike], align_corners: bool, *scales: float | None
    ) -> Any:
        whole = [*x.sizes[2:], *output_size]
        if not all(isinstance(n, int) and n > 0 for n in whole) or not x.dtype.is_floating_point:
            return NotImplemented
        order = _memory_order(x)
        result = ops.permute(wide(x), order)
        for place in reversed(range(rank)):
            source, size = x.sizes[2 + place], output_size[place]
            scale = scales[place] if place < len(scales) else None
            assert isinstance(source, int)
            assert isinstance(size, int)
            if source == size:
                continue
            where = _sources(source, size, align_corners, scale, result.dtype, x.device)
            result = _along(result, order.index(2 + place), taps(where, source))
        if result.sizes == tuple(x.sizes[dim] for dim in order):
            return ops.clone(x)
        back = tuple(order.index(dim) for dim in range(x.rank))
        return ops.permute(ops.convert_dtype(result, x.dtype), back)

    return function


decomposes("aten.upsample_linear1d.default")(_interpolation(1, _linear_taps))
decomposes("aten.upsample_bilinear2d.default")(_interpolation(2, _linear_taps))
decomposes("aten.upsample_trilinear3d.default")(_interpolation(3, _linear_taps))
decomposes("aten.upsample_bicubic2d.default")(_interpolation(2, _cubic_taps))
