"""Small tensors of integers that belong to an object's state: strides, kernel sizes, flags kept as buffers.

Their content is known while tracing, like that of tensors made of constants. Where it decides about something, the
trace relies on it, and a guard compares it.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.values import TensorValue
from fx_interface.source import Source

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

MOST_ELEMENTS = 16
_DTYPES = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool)


class State:
    """What one trace relies on of its inputs' contents, by their sources."""

    def __init__(self) -> None:
        self.relied: dict[Source, Any] = {}

    def rely(self, tx: Trace, tensor: TensorValue, sizes: bool = True) -> None:
        """What the trace does depends on a tensor's content: on the inputs and ``sizes`` that it follows from."""
        for one in tensor.follows_from:
            if isinstance(one, TensorValue):
                assert isinstance(one.initial, torch.Tensor)
                assert one.source is not None
                self.relied[one.source] = one.initial.tolist()
            elif sizes:
                tx.env.specialize(one)


def read(tx: Trace, tensor: TensorValue, real: torch.Tensor, source: Source) -> None:
    """Take note of the content of an input, if it is one of those; one that differs again and again is not read."""
    if real.dtype not in _DTYPES or real.device.type != "cpu" or math.prod(real.shape) > MOST_ELEMENTS:
        return
    if (
        not tensor.meta.spec.is_static
        or real.untyped_storage().nbytes() != real.numel() * real.element_size()
    ):
        return
    if not tx.policy.is_settled(real, source):
        return
    tensor.content = tensor.initial = real.detach().clone()
    tensor.follows_from = (tensor,)
