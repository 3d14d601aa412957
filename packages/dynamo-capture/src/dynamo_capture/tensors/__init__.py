"""Tensors of a trace: graph inputs, operations, attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamo_capture.tensors.inputs import Inputs
from dynamo_capture.tensors.methods import METHODS, method
from dynamo_capture.tensors.outcome import Outcome
from dynamo_capture.tensors.overrides import OverriddenTensors

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


class Tensors(OverriddenTensors, Inputs):
    """The tensor inputs and operations of one trace. ``memo`` outlives it."""

    def __init__(self, tx: Trace, memo: dict[Any, Outcome]) -> None:
        Inputs.__init__(self, tx)
        OverriddenTensors.__init__(self, tx, memo)


__all__ = ["METHODS", "Tensors", "method"]
