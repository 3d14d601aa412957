"""A substitute for torch's associative scan by any function, which torch finds behind imports of its compiler."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dynamo_capture.polyfills.registry import substitutes_named

_Combine = Callable[[list[Any], list[Any]], list[Any]]


@substitutes_named("torch._higher_order_ops.associative_scan", "associative_scan")
def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """``ys[0] = xs[0]; ys[i] = combine_fn(ys[i - 1], xs[i])`` along ``dim``, with eager's choice of parentheses."""
    leaves, structure = pytree.tree_flatten(xs)
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise" and not all(leaf.device.type in ("cuda", "xpu") for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    together = torch.vmap(combine_fn)

    def combine(left: list[Any], right: list[Any]) -> list[Any]:
        trees = pytree.tree_unflatten(left, structure), pytree.tree_unflatten(right, structure)
        return pytree.tree_leaves(together(*trees))

    columns = [torch.movedim(leaf, dim, 0) for leaf in leaves]
    if reverse:
        columns = [column.flip(0) for column in columns]
    columns = scanned(combine, columns)
    if reverse:
        columns = [column.flip(0) for column in columns]
    return pytree.tree_unflatten([torch.movedim(column, 0, dim) for column in columns], structure)


def scanned(combine: _Combine, columns: list[Any]) -> list[Any]:
    """The scan along dimension 0: of neighbours in pairs first, which gives the odd places, then of those between."""
    count = columns[0].shape[0]
    if count < 2:
        return columns
    if count < 8:
        return _of_few(combine, columns, count)
    pairs = combine([column[:-1:2] for column in columns], [column[1::2] for column in columns])
    odd = scanned(combine, pairs)
    after = [column[2::2] for column in columns]
    between = combine([column[: after[0].shape[0]] for column in odd], after)
    even = [torch.cat([column[:1], rest]) for column, rest in zip(columns, between, strict=True)]
    return [_alternating(one, other, count) for one, other in zip(even, odd, strict=True)]


def _of_few(combine: _Combine, columns: list[Any], count: Any) -> list[Any]:
    """The scan of 2 to 7 rows, as above, without tensors that have now none or one of them, now more: each would be
    another program. Between the pairs an even number has one row too many. It is made of the last pair again, and no
    part of the result."""
    firsts, seconds = [column[:-1:2] for column in columns], [column[1::2] for column in columns]
    odd = scanned(combine, combine(firsts, seconds))
    half = count // 2
    is_wanted = torch.arange(half, device=columns[0].device) < (count - 1) // 2
    before = [
        torch.where(is_wanted.reshape([-1] + [1] * (row.dim() - 1)), row, first)
        for row, first in zip(odd, firsts, strict=True)
    ]
    between = combine(before, [torch.cat([column, column[count - 1 :]])[2::2] for column in columns])
    even = [torch.cat([column[:1], rest]) for column, rest in zip(columns, between, strict=True)]
    odd = [torch.cat([row, row[half - 1 :]]) for row in odd]
    return [torch.stack(rows, 1).flatten(0, 1)[:count] for rows in zip(even, odd, strict=True)]


def _alternating(even: Any, odd: Any, count: Any) -> Any:
    """The ``count`` rows of two tensors by turns; ``even`` may have one more. Nothing asks whether it has: each number
    of rows would be another program."""
    padded = torch.cat([odd, even[:1]])[: (count + 1) // 2]
    return torch.stack([even, padded], 1).flatten(0, 1)[:count]
