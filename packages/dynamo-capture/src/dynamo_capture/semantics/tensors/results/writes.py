"""What is known of the memory that an operation writes to: whose it is, and whether torch may refuse the write."""

from __future__ import annotations

from collections.abc import Sequence

from dynamo_capture.values import TensorValue


def may_be_refused(written: Sequence[TensorValue], tensors: Sequence[TensorValue]) -> bool:
    """Whether torch may refuse a write: several elements lie at one place, or another argument lies there."""
    return any(
        any(one is not tensor and one.memory is tensor.memory for one in tensors)
        or any(
            stride == 0 and size != 1
            for stride, size in zip(tensor.meta.spec.strides, tensor.meta.spec.sizes, strict=True)
        )
        or (tensor.memory is not tensor and not tensor.meta.spec.is_contiguous)
        for tensor in written
    )


def is_view_of_new_leaf(tensor: TensorValue) -> bool:
    """Whether torch refuses every write to a view: the tensor was made a leaf here."""
    root = tensor.root
    return root is not tensor and root.source is None and root.meta.is_leaf and root.meta.requires_grad


def is_own_memory(tensor: TensorValue) -> bool:
    """Whether the graph has made a tensor and its memory, which no other tensor shows."""
    is_made = tensor.source is None and tensor.root is tensor and tensor.memory is tensor
    return is_made and not tensor.is_shown
