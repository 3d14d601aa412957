"""Tensors of symbolic sizes picked from, put into blocks, or compared with their neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from fx_interface.composites.products import is_symbolic


def take_along_dim(*args: Any, **kwargs: Any) -> Any:
    """``torch.take_along_dim``: (input, indices, dim); what is no ``dim`` broadcasts."""
    x, indices, dim = (*args, None, None, None)[:3]
    indices, dim = kwargs.get("indices", indices), kwargs.get("dim", dim)
    if kwargs.keys() - {"indices", "dim"} or len(args) > 3 or not is_symbolic([x, indices]):
        return torch.take_along_dim(*args, **kwargs)
    if dim is None:
        return x.reshape(-1).gather(0, indices.reshape(-1))
    if x.dim() != indices.dim() or not -x.dim() <= dim < x.dim():
        return torch.take_along_dim(*args, **kwargs)
    dim %= x.dim()
    sizes = [b if type(a) is int and a == 1 else a for a, b in zip(x.shape, indices.shape, strict=True)]
    given, picked = ([*sizes[:dim], part.shape[dim], *sizes[dim + 1 :]] for part in (x, indices))
    return x.expand(given).gather(dim, indices.expand(picked))


def masked_select(*args: Any, **kwargs: Any) -> Any:
    """``torch.masked_select``: its derivative in torch takes no symbolic sizes, that of an index does."""
    if kwargs or len(args) != 2 or not is_symbolic(args) or args[1].dtype is not torch.bool:
        return torch.masked_select(*args, **kwargs)
    x, mask = args
    rank = max(x.dim(), mask.dim())
    pairs = zip(*((1,) * (rank - part.dim()) + tuple(part.shape) for part in args), strict=True)
    sizes = [b if type(a) is int and a == 1 else a for a, b in pairs]
    return x.expand(sizes)[mask.expand(sizes)]


def block_diag(*tensors: Any) -> Any:
    """``torch.block_diag``: zeros beside each block."""
    if not is_symbolic(tensors) or any(
        part.dim() > 2 or part.dtype is not tensors[0].dtype or part.device != tensors[0].device
        for part in tensors
    ):
        return torch.block_diag(*tensors)  # type: ignore[no-untyped-call]
    blocks = [part.reshape((1, -1) if part.dim() else (1, 1)) if part.dim() < 2 else part for part in tensors]
    total: Any = sum(block.shape[1] for block in blocks)
    rows, left = [], 0
    for block in blocks:
        width: Any = block.shape[1]
        rows.append(functional.pad(block, [left, total - left - width]))
        left = left + width
    return torch.cat(rows)


def gradient(*args: Any, **kwargs: Any) -> Any:
    """``torch.gradient``: half the difference of both neighbours, at the edges the difference to the one."""
    x, spacing = args[0], kwargs.get("spacing", 1)
    dim = kwargs.get("dim")
    if (
        len(args) != 1
        or kwargs.keys() - {"spacing", "dim", "edge_order"}
        or kwargs.get("edge_order", 1) != 1
        or type(spacing) not in (int, float)
        or not (dim is None or type(dim) is int or isinstance(dim, Sequence))
        or not is_symbolic([x])
        or not x.dtype.is_floating_point
    ):
        return torch.gradient(*args, **kwargs)
    dims = range(x.dim()) if dim is None else [dim] if isinstance(dim, int) else dim
    return tuple([_slopes(x, axis, spacing) for axis in dims])


def _slopes(x: torch.Tensor, dim: int, spacing: float) -> torch.Tensor:
    size = x.shape[dim]
    first = (x.narrow(dim, 1, 1) - x.narrow(dim, 0, 1)) / spacing
    last = (x.narrow(dim, size - 1, 1) - x.narrow(dim, size - 2, 1)) / spacing
    inner = (x.narrow(dim, 2, size - 2) - x.narrow(dim, 0, size - 2)) / (2 * spacing)
    return torch.cat([first, inner, last], dim)
