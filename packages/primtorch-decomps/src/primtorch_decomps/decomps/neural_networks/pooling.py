"""Mean pooling whose windows stand side by side: of parts where they are small; a mean over split dimensions where they
cover all, and its gradient."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import contiguous_strides
from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.prims import PrimTensor, current_trace, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.images.pooling import pair, suggested_strides

_MOST_PLACES = 16
"""Places of a window up to which there is a part for each."""


def _divides(size: IntLike, part: IntLike) -> bool:
    return isinstance(size, int) and isinstance(part, int) and part > 0 and size % part == 0


def _window(
    x: PrimTensor, kernel: Sequence[int], stride: Sequence[int], padding: Any
) -> tuple[int, int] | None:
    """The window, if windows stand side by side, without a border."""
    window = pair(kernel)
    return window if pair(stride, window) == window and pair(padding) == (0, 0) else None


def _fits(x: PrimTensor, window: tuple[int, int]) -> bool:
    """Whether windows cover the input."""
    return all(_divides(x.sizes[x.rank - 2 + i], window[i]) for i in range(2))


def _is_row_major(x: PrimTensor) -> bool:
    return suggested_strides(x.sizes, x.spec, current_trace().env) == contiguous_strides(x.sizes)


def _tiled_mean(x: PrimTensor, rows: IntLike, columns: IntLike) -> PrimTensor:
    """The mean of each of ``rows`` x ``columns`` equal tiles."""
    *outer, height, width = x.sizes
    split = (*outer, rows, height // rows, columns, width // columns)
    axes = (len(outer) + 1, len(outer) + 3)
    tiles = ops.reshape(wide(x), split)
    return ops.convert_dtype(ops.div(ops.sum(tiles, axes), ops.numel(tiles, axes)), x.dtype)


def _mean_of_parts(x: PrimTensor, window: tuple[int, int]) -> PrimTensor:
    """The mean of each window: of the images that every second, third, ... row and column make, one for each place of
    the window. Of symbolic sizes nothing needs to be known."""
    *outer, height, width = x.sizes
    counts = (height // window[0], width // window[1])
    whole, total = wide(x), None
    for place in product(*map(range, window)):
        ends = [first + step * (n - 1) + 1 for first, step, n in zip(place, window, counts, strict=True)]
        starts, steps = (*(0 for _ in outer), *place), (*(1 for _ in outer), *window)
        part = ops.slice(whole, starts, (*outer, *ends), steps, (*outer, *counts))
        total = part if total is None else total + part
    return ops.convert_dtype(ops.div(total, window[0] * window[1]), x.dtype)


def _spread(grad: PrimTensor, x: PrimTensor) -> PrimTensor:
    """Each element of ``grad`` divided evenly over its tile."""
    *outer, height, width = x.sizes
    rows, columns = grad.sizes[-2:]
    split = (*outer, rows, height // rows, columns, width // columns)
    kept = (*range(len(outer) + 1), len(outer) + 2)
    share = ops.div(wide(grad), (height // rows) * (width // columns))
    return ops.convert_dtype(ops.reshape(ops.broadcast_in_dim(share, split, kept), x.sizes), x.dtype)


@decomposes("aten.avg_pool2d.default")
def avg_pool2d(
    x: PrimTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    window = _window(x, kernel_size, stride, padding)
    if window is None or divisor_override is not None or not x.dtype.is_floating_point:
        return NotImplemented
    fits, is_known = _fits(x, window), all(isinstance(size, int) for size in x.sizes[-2:])
    few = x.device.type == "cpu" and window[0] * window[1] <= _MOST_PLACES
    if few and (fits or not ceil_mode) and (is_known or _is_row_major(x)):
        return _mean_of_parts(x, window)
    return _tiled_mean(x, x.sizes[-2] // window[0], x.sizes[-1] // window[1]) if fits else NotImplemented


@decomposes("aten.avg_pool2d_backward.default")
def avg_pool2d_backward(
    grad: PrimTensor,
    x: PrimTensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    window = _window(x, kernel_size, stride, padding)
    if window is None or divisor_override is not None or not _fits(x, window):
        return NotImplemented
    return _spread(grad, x)


@decomposes("aten._adaptive_avg_pool2d.default")
def adaptive_avg_pool2d(x: PrimTensor, output_size: Sequence[IntLike]) -> Any:
    rows, columns = output_size
    one = isinstance(rows, int) and isinstance(columns, int) and rows == columns == 1
    if not one and not (_divides(x.sizes[-2], rows) and _divides(x.sizes[-1], columns)):
        return NotImplemented
    return _tiled_mean(x, rows, columns)


@decomposes("aten._adaptive_avg_pool2d_backward.default")
def adaptive_avg_pool2d_backward(grad: PrimTensor, x: PrimTensor) -> Any:
    rows, columns = grad.sizes[-2:]
    one = isinstance(rows, int) and isinstance(columns, int) and rows == columns == 1
    if not one and not (_divides(x.sizes[-2], rows) and _divides(x.sizes[-1], columns)):
        return NotImplemented
    return _spread(grad, x)
