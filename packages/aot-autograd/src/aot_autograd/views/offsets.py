"""Where views begin: how many elements lie between the first of the memory and the first of a view.

Values have no place in memory, but tensors have (``Tensor.storage_offset``), and torch's composite operators ask for it
to name memory by numbers (``fill_diagonal_``, the derivative of ``as_strided``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import torch
from torch._ops import OpOverload

from aot_autograd.recording.storage import ViewStep
from fx_interface.symbols import IntLike, floordiv, maximum, minimum
from fx_interface.tensor_spec import TensorSpec

aten = torch.ops.aten
Beginning: TypeAlias = Callable[[ViewStep, TensorSpec, IntLike], IntLike]


def offset_of(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    """Where the view made by ``step`` begins, in elements of its own dtype, if what it views begins at ``offset``."""
    beginning = _BEGINNINGS.get(step.op)
    return offset if beginning is None else beginning(step, viewed, offset)


def argument(step: ViewStep, position: int, default: Any) -> Any:
    """The step's argument at ``position`` (self not counted), or its default."""
    if position < len(step.args):
        return step.args[position]
    name = step.op._schema.arguments[position + 1].name
    return step.kwargs.get(name, default)


def _stride(viewed: TensorSpec, dim: int) -> IntLike:
    return viewed.strides[dim % viewed.rank]


def _from_front(index: IntLike, size: IntLike) -> IntLike:
    """A position that may count from the end, clamped to ``0..size``."""
    if isinstance(index, int):
        index = index + size if index < 0 else index
    else:
        index = index + size * maximum(minimum(0 - index, 1), 0)
    return minimum(maximum(index, 0), size)


def _slice(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    dim, start = argument(step, 0, 0), argument(step, 1, None)
    if start is None or (isinstance(start, int) and start == 0):
        return offset
    return offset + _from_front(start, viewed.sizes[dim % viewed.rank]) * _stride(viewed, dim)


def _select(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    dim, index = argument(step, 0, 0), argument(step, 1, 0)
    return offset + _from_front(index, viewed.sizes[dim % viewed.rank]) * _stride(viewed, dim)


def _diagonal(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    along = argument(step, 0, 0)
    if 0 in step.spec.sizes:
        return offset
    dim = argument(step, 2, 1) if along > 0 else argument(step, 1, 0)
    distance: int = abs(along)
    return offset + distance * _stride(viewed, dim)


def _split(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    sections, dim = argument(step, 0, None), argument(step, 1, 0)
    assert step.index is not None
    start = sum(sections[: step.index]) if isinstance(sections, (list, tuple)) else sections * step.index
    return offset + start * _stride(viewed, dim)


def _unbind(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    assert step.index is not None
    return offset + step.index * _stride(viewed, argument(step, 0, 0))


def _other_dtype(step: ViewStep, viewed: TensorSpec, offset: IntLike) -> IntLike:
    return floordiv(offset * viewed.dtype.itemsize, step.spec.dtype.itemsize)


_BEGINNINGS: Final[dict[OpOverload, Beginning]] = {
    aten.slice.Tensor: _slice,
    aten.select.int: _select,
    aten.diagonal.default: _diagonal,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split,
    aten.unbind.int: _unbind,
    aten.view.dtype: _other_dtype,
    aten.view_as_real.default: _other_dtype,
    aten.view_as_complex.default: _other_dtype,
}
