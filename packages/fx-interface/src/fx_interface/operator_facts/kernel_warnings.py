"""Which ATen operators' kernels warn in each call with such arguments, so that a graph without the kernel is silent.

What torch warns of once in a process is not here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch._ops import OpOverload

_ATEN: Final = torch.ops.aten


def _has_few_elements(
    tensor: Any, dim: int | Sequence[int] | None = None, *, correction: Any = None, **others: Any
) -> bool:
    """A variance: whether there are not more elements than are subtracted; not, where sizes are symbolic. Torch counts
    them by the number of results, so that a tensor without elements has few whichever dimension is empty."""
    sizes = tuple(tensor.shape)
    chosen = (dim,) if isinstance(dim, int) else dim or ()
    if any(not -len(sizes) <= one < len(sizes) for one in chosen if sizes):
        return False  # it raises
    if any(type(size) is int and size == 0 for size in sizes):
        return True
    reduced = [sizes[one] for one in chosen] if chosen and sizes else sizes
    count = 1
    for size in reduced:
        if type(size) is not int:
            return False
        count *= size
    return count <= (1 if correction is None else correction)


def _has_byte_index(tensor: Any, indices: Sequence[Any], *others: Any, **options: Any) -> bool:
    return any(index is not None and index.dtype is torch.uint8 for index in indices)


def _has_byte_mask(tensor: Any, mask: Any, *others: Any, **options: Any) -> bool:
    return mask.dtype is torch.uint8


def _grows(tensor: Any, other: Any) -> bool:
    """Whether the result, for which a kernel takes one like its first operand, is of another shape; not, where sizes
    are symbolic."""
    mine, theirs = tuple(tensor.shape), tuple(other.shape)
    if any(type(size) is not int for size in (*mine, *theirs)) or 0 in mine:
        return False
    pairs = zip(reversed(mine), reversed(theirs), strict=False)
    return len(theirs) > len(mine) or any(one == 1 and two != 1 for one, two in pairs)


_CONDITIONS: Final[Mapping[OpOverload, Callable[..., bool]]] = {
    **dict.fromkeys(
        (_ATEN.std.correction, _ATEN.var.correction, _ATEN.std_mean.correction, _ATEN.var_mean.correction),
        _has_few_elements,
    ),
    **dict.fromkeys((_ATEN.index.Tensor, _ATEN.index_put.default, _ATEN.index_put_.default), _has_byte_index),
    _ATEN.ldexp.Tensor: _grows,
    **dict.fromkeys((_ATEN.masked_scatter.default, _ATEN.masked_scatter_.default), _has_byte_mask),
}


def warns(op: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether torch's kernel for ``op`` warns when it is called with these arguments."""
    condition = _CONDITIONS.get(op)
    return condition is not None and condition(*args, **kwargs)
