"""A substitute for torch's associative scan, which runs its function under ``vmap`` or in a kernel of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from dynamo_capture.polyfills.registry import substitutes_named


@substitutes_named("torch._higher_order_ops.associative_scan", "associative_scan")
def associative_scan(
    combine_fn: Callable[[Any, Any], Any],
    xs: Any,
    dim: int,
    reverse: bool = False,
    combine_mode: str = "pointwise",
) -> Any:
    """``ys[0] = xs[0]; ys[i] = combine_fn(ys[i - 1], xs[i])`` along ``dim``: the order in which nothing is assumed."""
    leaves, structure = pytree.tree_flatten(xs)
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    if combine_mode == "pointwise" and not all(leaf.device.type in ("cuda", "xpu") for leaf in leaves):
        raise ValueError("For combine_mode='pointwise', all input tensors need to be on CUDA or XPU")
    dim = dim if dim >= 0 else dim + leaves[0].ndim
    items = list(zip(*[torch.unbind(leaf, dim) for leaf in leaves], strict=True))
    if reverse:
        items.reverse()
    carried = pytree.tree_unflatten(list(items[0]), structure)
    found = [list(items[0])]
    for item in items[1:]:
        carried = combine_fn(carried, pytree.tree_unflatten(list(item), structure))
        found.append(pytree.tree_leaves(carried))
    if reverse:
        found.reverse()
    return pytree.tree_unflatten(
        [torch.stack(list(column), dim) for column in zip(*found, strict=True)], structure
    )
