"""Nested tensors and their ragged sizes, made of what the graph gives."""

from __future__ import annotations

from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.runtime import nested_tensors
from dynamo_capture.values import Const
from dynamo_capture.values.tensors.nested import NestedValue, RaggedSize


@makes(NestedValue)
def nested(to: Reconstruction, value: NestedValue) -> None:
    """A view of the rows."""
    parts = [value.rows, value.offsets, value.lengths, Const(value.ragged), value.cache]
    to.call(nested_tensors.nested_of, lambda: to.push_all(parts), len(parts))


@makes(RaggedSize)
def ragged(to: Reconstruction, value: RaggedSize) -> None:
    """What torch's class has for the tensor that says where rows begin."""
    to.call(nested_tensors.ragged_size, lambda: to.push_all([value.origin, Const(value.factor)]), 2)
