"""Embedding look-ups: rows of a table, picked by an index."""

from __future__ import annotations

from primtorch_decomps.prims import PrimTensor, ops
from primtorch_decomps.registry import decomposes


@decomposes("aten.embedding.default")
def embedding(
    weight: PrimTensor,
    indices: PrimTensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> PrimTensor:
    return ops.index(weight, (indices,), wraps=False)
