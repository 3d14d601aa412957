"""Embedding look-ups: rows of a table, picked by an index."""

from __future__ import annotations

from typing import Any

from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.registry import decomposes
from primtorch_decomps.shapes import has_empty_rows


@decomposes("aten.embedding.default")
def embedding(
    weight: PrimTensor,
    indices: PrimTensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    if has_empty_rows(weight.sizes, 0):
        return NotImplemented
    return ops.index(weight, (indices,), wraps=False)
