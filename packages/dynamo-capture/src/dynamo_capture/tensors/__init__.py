"""Tensors of a trace: graph inputs, operations, attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamo_capture.tensors.attributes import TensorAttributes
from dynamo_capture.tensors.inputs import Inputs
from dynamo_capture.tensors.methods import METHODS, method
from dynamo_capture.tensors.outcome import Outcome

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


class Tensors(TensorAttributes, Inputs):
    """The tensor inputs and operations of one trace. ``memo`` outlives it."""

    def __init__(self, tx: Trace, memo: dict[Any, Outcome]) -> None:
        Inputs.__init__(self, tx)
        TensorAttributes.__init__(self, tx, memo)


__all__ = ["METHODS", "Tensors", "method"]
