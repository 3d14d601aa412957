"""What torch requires of masks among indices: ``x[mask]`` takes a mask that fits the dimensions that it stands for.

Indexing by the places of a mask's set elements, which is what it means, would take any smaller mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from fx_interface.symbols import IntLike, Relation, ShapeEnv

MASKS = (torch.bool, torch.uint8)
"""The dtypes of masks."""


def check_masks(sizes: Sequence[IntLike], indices: Sequence[Any], env: ShapeEnv) -> None:
    """Raise IndexError, as torch does, for a mask of other sizes than those of the dimensions that it stands for.
    ``indices`` are specs of tensors, or None; sizes from data are expected to fit, to be checked at run time."""
    dim = 0
    for index in indices:
        if index is None or index.dtype not in MASKS:
            dim += 1
            continue
        for own, size in enumerate(index.sizes):
            if dim < len(sizes) and not _same(size, sizes[dim], env):
                mask, indexed = ([env.specialize(n) for n in part] for part in (index.sizes, sizes))
                raise IndexError(
                    f"The shape of the mask {mask} at index {own} does not match the shape of the indexed tensor "
                    f"{indexed} at index {dim}"
                )
            dim += 1


def _same(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return env.expect(Relation("==", one, other))
