"""Mean pooling whose windows tile the input exactly: a mean over split dimensions; and its gradient. The largest of
each window, where windows do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fx_interface.symbols import IntLike
from primtorch_decomps.decomps.neural_networks.normalization import wide
from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.rules.images.pooling import pair


def _divides(size: IntLike, part: IntLike) -> bool:
    return isinstance(size, int) and isinstance(part, int) and part > 0 and size % part == 0


def _tiles(
    x: PrimTensor, kernel: Sequence[int], stride: Sequence[int], padding: Any
) -> tuple[int, int] | None:
    """The window, if windows cover the input without overlap, gap or border."""
    window = pair(kernel)
    covers = pair(stride, window) == window and pair(padding) == (0, 0)
    fits = all(_divides(x.sizes[x.rank - 2 + i], window[i]) for i in range(2))
    return window if covers and fits else None


def _tiled_mean(x: PrimTensor, rows: IntLike, columns: IntLike) -> PrimTensor:
    """The mean of each of ``rows`` x ``columns`` equal tiles."""
    *outer, height, width = x.sizes
    split = (*outer, rows, height // rows, columns, width // columns)
    axes = (len(outer) + 1, len(outer) + 3)
    tiles = ops.reshape(wide(x), split)
    return ops.convert_dtype(ops.div(ops.sum(tiles, axes), ops.numel(tiles, axes)), x.dtype)


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
    window = _tiles(x, kernel_size, stride, padding)
    if window is None or divisor_override is not None or not x.dtype.is_floating_point:
        return NotImplemented
    return _tiled_mean(x, x.sizes[-2] // window[0], x.sizes[-1] // window[1])


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
    window = _tiles(x, kernel_size, stride, padding)
    return NotImplemented if window is None or divisor_override is not None else _spread(grad, x)


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
