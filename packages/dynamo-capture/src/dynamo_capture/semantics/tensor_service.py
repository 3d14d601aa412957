"""The service of a trace for tensors: inputs, operations, attributes."""

from __future__ import annotations

from typing import Any

from dynamo_capture.semantics.tensor_subclasses.nested import NestedTensors
from dynamo_capture.semantics.tensor_subclasses.overrides import OverriddenTensors
from dynamo_capture.semantics.tensor_subclasses.wrappers import WrapperTensors
from dynamo_capture.semantics.tensors.inputs import Inputs
from dynamo_capture.semantics.tensors.operations import Operations
from dynamo_capture.semantics.tensors.results.outcome import Outcome
from dynamo_capture.values.base import Context


class Tensors(OverriddenTensors, Inputs):
    """The tensor inputs and operations of one trace. ``memo`` outlives it."""

    interceptors = (
        OverriddenTensors.check_operands,
        OverriddenTensors.by_modes,
        OverriddenTensors.by_classes,
        OverriddenTensors.by_attributes,
        NestedTensors.by_rows,
        WrapperTensors.by_dispatch,
        Operations.plain,
    )

    def __init__(self, tx: Context, memo: dict[Any, Outcome]) -> None:
        Inputs.__init__(self, tx)
        OverriddenTensors.__init__(self, tx, memo)
