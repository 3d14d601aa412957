"""Sparse tensors, made of what the graph gives."""

from __future__ import annotations

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.runtime import made_tensors
from dynamo_capture.values import Const, TupleValue, size_value
from dynamo_capture.values.tensors.sparse import SparseValue


@makes(SparseValue)
def sparse(to: Reconstruction, value: SparseValue) -> None:
    """Of its places and of what is stored there."""
    sizes = TupleValue([size_value(size) for size in value.meta.spec.sizes])
    parts = [value.places, value.stored, sizes, Const(value.is_coalesced)]
    to.call(made_tensors.sparse_of, lambda: to.push_all(parts), len(parts))
