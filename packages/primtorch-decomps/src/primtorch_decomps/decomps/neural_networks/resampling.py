"""Resampling by index: nearest-neighbour scaling, borders by reflection or replication, pixels shuffled into space."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, Relation, ShapeEnv, mod
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.images.pooling import native_strides, suggested_strides
from primtorch_decomps.shapes import same
from primtorch_decomps.strides import any_zero


def _single(value: float) -> float:
    """The nearest float32, in which eager computes source positions."""
    rounded: float = struct.unpack("f", struct.pack("f", value))[0]
    return rounded


def _looked_up(x: PrimTensor, places: Mapping[int, PrimTensor]) -> PrimTensor:
    """``x`` with element i of each of these neighbouring axes read at ``places[axis][i]``: all by one look-up."""
    sizes = tuple(chosen.sizes[0] for chosen in places.values())
    indices: list[PrimTensor | None] = [None] * x.rank
    for number, (axis, chosen) in enumerate(places.items()):
        indices[axis] = ops.broadcast_in_dim(chosen, sizes, (number,))
    return ops.index(x, indices)


def _nearest(source: IntLike, size: IntLike, step: float, shift: float, device: torch.device) -> PrimTensor:
    """Positions floor((i + shift) * step) for i below ``size``, at most the last of ``source`` elements."""
    places = ops.convert_dtype(ops.iota(size, 0, 1, torch.int64, device), torch.float32)
    if shift:
        places = places + shift
    index = ops.convert_dtype(ops.floor(places * step), torch.int64)
    return ops.minimum(index, source - 1)


_MOST_TIMES, _NEAR = 32, 1 << 16
"""Factors and sizes up to which floor(i * (1 / factor)) of float32 is i // factor, with half a step added, too."""


@dataclass(frozen=True, slots=True)
class _Axis:
    """A scaled dimension: its size before and after, and how far apart the sources of neighbours are. ``times``: how
    many times each element stands beside itself; 0 if that differs."""

    source: IntLike
    size: IntLike
    step: float
    times: int


def _axis(source: IntLike, size: IntLike, scale: float | None, by_size: bool, env: ShapeEnv) -> _Axis | None:
    """``by_size``: where sizes are the same or the double, the scale does not matter, as for torch's kernel of images
    on a CPU. None where only the values of symbolic sizes would tell."""
    if env.known(Relation("<", 0, source)) is not True or env.known(Relation("<", 0, size)) is not True:
        return None
    quotient = size // source if mod(size, source) == 0 else 0
    factor = quotient if isinstance(quotient, int) else 0
    is_known = isinstance(source, int) and isinstance(size, int)
    if not factor and not is_known:
        return None
    ratio = 1.0 / factor if factor else env.hint(source) / env.hint(size)
    by_size = by_size and factor in (1, 2)
    step = _single(ratio if scale is None or scale <= 0 or by_size else 1.0 / scale)
    beside = 0 < factor <= _MOST_TIMES and step == _single(1.0 / factor) and _is_near(size, env)
    return _Axis(source, size, step, factor if beside else 0) if beside or is_known else None


def _is_near(size: IntLike, env: ShapeEnv) -> bool:
    """Whether a size is at most ``_NEAR``; of a symbolic one that becomes a guard."""
    at_most = Relation("<=", size, _NEAR)
    return env.known(at_most) is True or (not env.is_from_data(at_most) and env.decide(at_most))


def _repeated(x: PrimTensor, factors: Sequence[int]) -> PrimTensor:
    """``x`` with each element of its last dimensions so many times, without a look-up."""
    outer = x.rank - len(factors)
    sizes, kept = [*x.sizes[:outer]], [*range(outer)]
    for size, factor in zip(x.sizes[outer:], factors, strict=True):
        kept.append(len(sizes))
        sizes += [size, factor]
    whole = [size * factor for size, factor in zip(x.sizes[outer:], factors, strict=True)]
    return ops.reshape(ops.broadcast_in_dim(x, tuple(sizes), tuple(kept)), (*x.sizes[:outer], *whole))


def _scaled(rank: int, shift: float) -> Callable[..., Any]:
    """Nearest-neighbour scaling of the last ``rank`` dimensions."""

    def function(x: PrimTensor, output_size: Sequence[IntLike], *scales: float | None) -> Any:
        by_size, env = rank == 2 and not shift and x.device.type == "cpu", current_trace().env
        pairs = zip(x.sizes[2:], output_size, [*scales, *[None] * rank], strict=False)
        axes = [_axis(source, size, scale, by_size, env) for source, size, scale in pairs]
        known = [axis for axis in axes if axis is not None]
        if len(known) != len(axes):
            return NotImplemented
        if all(axis.times == 1 for axis in known):
            return ops.clone(x)
        whole = (*x.sizes[:2], *output_size)
        row_major = suggested_strides(whole, x.spec, env) == contiguous_strides(whole)
        if row_major and all(axis.times for axis in known):
            return _repeated(x, [axis.times for axis in known])
        if not all(isinstance(size, int) for size in (*x.sizes[2:], *output_size)):
            return NotImplemented
        places = {
            dim: ops.iota(axis.size, 0, 1, torch.int64, x.device)
            if axis.times == 1
            else _nearest(axis.source, axis.size, axis.step, shift, x.device)
            for dim, axis in enumerate(known, 2)
        }
        return _looked_up(x, places)

    return function


def _scaled_spec(x: TensorSpec, output_size: Sequence[IntLike], *scales: Any, env: ShapeEnv) -> TensorSpec:
    if x.rank != 2 + len(output_size) or 0 in x.sizes:
        raise RuleMismatchError("scaling of another rank, or of nothing")
    sizes = (*x.sizes[:2], *output_size)
    return TensorSpec(sizes, suggested_strides(sizes, x, env), x.dtype, x.device)


for _rank in (1, 2, 3):
    decomposes(f"aten.upsample_nearest{_rank}d.default", rule=_scaled_spec)(_scaled(_rank, 0.0))
    decomposes(f"aten._upsample_nearest_exact{_rank}d.default", rule=_scaled_spec)(_scaled(_rank, 0.5))


def _bordered(
    x: PrimTensor, padding: Sequence[IntLike], place: Callable[[PrimTensor, IntLike], PrimTensor]
) -> Any:
    """``x`` with borders: along each padded dimension, element i is x[place(i - low, size)]."""
    places: dict[int, PrimTensor] = {}
    for pair in reversed(range(len(padding) // 2)):
        axis = x.rank - 1 - pair
        low, high = padding[2 * pair], padding[2 * pair + 1]
        size = x.sizes[axis]
        wanted = ops.iota(size + low + high, -low, 1, torch.int64, x.device)
        places[axis] = place(wanted, size)
    return _looked_up(x, places)


def _reflected(places: PrimTensor, size: IntLike) -> PrimTensor:
    last = size - 1
    return last - ops.abs(last - ops.abs(places))


def _held(places: PrimTensor, size: IntLike) -> PrimTensor:
    return ops.minimum(ops.maximum(places, 0), size - 1)


def _reflection_pad(x: PrimTensor, padding: Sequence[IntLike]) -> Any:
    return _bordered(x, padding, _reflected)


def _replication_pad(x: PrimTensor, padding: Sequence[IntLike]) -> Any:
    return _bordered(x, padding, _held)


def _reflection_spec(x: TensorSpec, padding: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    for pair in range(len(padding) // 2):
        size = x.sizes[x.rank - 1 - pair]
        widths = padding[2 * pair : 2 * pair + 2]
        within = [(Relation("<", w, size), Relation("<", -size, w)) for w in widths]
        if not all(env.expect(above) and env.expect(below) for above, below in within):
            raise RuleMismatchError("reflection wider than the input")
    return _border_spec(x, padding, env=env)


def _border_spec(x: TensorSpec, padding: Sequence[IntLike], *, env: ShapeEnv) -> TensorSpec:
    count = len(padding) // 2
    if x.rank not in (count + 1, count + 2) or 0 in x.sizes:
        raise RuleMismatchError("borders of another rank, or of nothing")
    sizes = list(x.sizes)
    for pair in range(count):
        axis = x.rank - 1 - pair
        sizes[axis] = sizes[axis] + padding[2 * pair] + padding[2 * pair + 1]
    if any(isinstance(n, int) and n < 1 for n in sizes):
        raise RuleMismatchError("borders that cut everything off")
    shape = tuple(sizes)
    strides = native_strides(shape, x, env) if count > 1 else contiguous_strides(shape)
    return TensorSpec(shape, strides, x.dtype, x.device)


for _rank in (1, 2, 3):
    decomposes(f"aten.reflection_pad{_rank}d.default", rule=_reflection_spec)(_reflection_pad)
    decomposes(f"aten.replication_pad{_rank}d.default", rule=_border_spec)(_replication_pad)


def _shuffled_spec(x: TensorSpec, factor: int, *, env: ShapeEnv) -> TensorSpec:
    *outer, channels, height, width = x.sizes
    sizes = (*outer, channels // (factor * factor), height * factor, width * factor)
    if factor < 1 or not same(mod(channels, factor * factor), 0, env):
        raise RuleMismatchError("channels that do not divide")
    return TensorSpec(sizes, native_strides(sizes, x, env), x.dtype, x.device)


@decomposes("aten.pixel_shuffle.default", rule=_shuffled_spec)
def pixel_shuffle(x: PrimTensor, upscale_factor: int) -> PrimTensor:
    *outer, channels, height, width = x.sizes
    factor, count = upscale_factor, len(outer)
    split = ops.reshape(x, (*outer, channels // (factor * factor), factor, factor, height, width))
    order = (*range(count + 1), count + 3, count + 1, count + 4, count + 2)
    sizes = (*outer, channels // (factor * factor), height * factor, width * factor)
    return ops.reshape(ops.permute(split, order), sizes)


def _unshuffled_spec(x: TensorSpec, factor: int, *, env: ShapeEnv) -> TensorSpec:
    *outer, channels, height, width = x.sizes
    if factor < 1 or not all(same(mod(side, factor), 0, env) for side in (height, width)):
        raise RuleMismatchError("sizes that do not divide")
    if any_zero(x.sizes):
        raise RuleMismatchError("the layout of no elements")
    sizes = (*outer, channels * factor * factor, height // factor, width // factor)
    return TensorSpec(sizes, native_strides(sizes, x, env), x.dtype, x.device)


@decomposes("aten.pixel_unshuffle.default", rule=_unshuffled_spec)
def pixel_unshuffle(x: PrimTensor, downscale_factor: int) -> PrimTensor:
    *outer, channels, height, width = x.sizes
    factor, count = downscale_factor, len(outer)
    split = ops.reshape(x, (*outer, channels, height // factor, factor, width // factor, factor))
    order = (*range(count + 1), count + 2, count + 4, count + 1, count + 3)
    return ops.reshape(
        ops.permute(split, order), (*outer, channels * factor * factor, height // factor, width // factor)
    )
