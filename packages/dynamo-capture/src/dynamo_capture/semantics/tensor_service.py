"""The service of a trace for tensors: inputs, operations, attributes."""

from __future__ import annotations

import types
from typing import Any

import torch

from dynamo_capture.semantics.tensor_subclasses.nested import NestedTensors
from dynamo_capture.semantics.tensor_subclasses.overrides import OverriddenTensors
from dynamo_capture.semantics.tensor_subclasses.wrappers import WrapperTensors
from dynamo_capture.semantics.tensors.content import choices
from dynamo_capture.semantics.tensors.inputs import Inputs
from dynamo_capture.semantics.tensors.methods import METHODS
from dynamo_capture.semantics.tensors.operations import Operation, Operations
from dynamo_capture.semantics.tensors.results.outcome import Outcome
from dynamo_capture.values import BuiltinMethod, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.chosen import ChosenValue


class ChosenTensors(Operations):
    """Operations on tensors that data choose. ``chooses``: whether there are any."""

    chooses = False

    def of_chosen(self, chosen: ChosenValue) -> TensorValue:
        """A tensor equal to the chosen one at this point."""
        found = choices.content(self._tx, chosen)
        self.stand_ins.append(found)
        return found

    def call_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        if not self.chooses or not choices.has_choice(self._tx, [*args, *kwargs.values()]):
            return super().call_method(owner, name, args, kwargs)
        values, made = choices.with_contents(self._tx, name, [owner, *args, *kwargs.values()])
        self.stand_ins += made
        given = dict(zip(kwargs, values[1 + len(args) :], strict=True))
        result = super().call_method(owner, name, values[1 : 1 + len(args)], given)
        choices.check_result(self._tx, made, result)
        return result

    def by_choices(self, call: Operation) -> Value | None:
        """An operation that only reads chosen tensors."""
        if not self.chooses or not choices.has_choice(self._tx, [*call.args, *call.kwargs.values()]):
            return None
        count = len(call.args)
        values, made = choices.with_contents(self._tx, call.name, [*call.args, *call.kwargs.values()])
        self.stand_ins += made
        kwargs = dict(zip(call.kwargs, values[count:], strict=True))
        result = self.operation(call.op, call.target, call.function, values[:count], kwargs)
        choices.check_result(self._tx, made, result)
        return result

    def chosen_attribute(self, chosen: ChosenValue, name: str) -> Value:
        """``chosen.name``: what the candidates have in common."""
        if not issubclass(chosen.python_type(), torch.Tensor):
            raise chosen.unknown(f"the attribute {name!r}")
        if name in choices.ATTRIBUTES:
            return self.get_attr(self.of_chosen(chosen), name)
        if isinstance(getattr(torch.Tensor, name, None), (types.FunctionType, types.MethodDescriptorType)):
            return BuiltinMethod(chosen, name)
        raise chosen.unknown(f"the attribute {name!r}")

    def chosen_method(
        self, chosen: ChosenValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``chosen.name(...)``: a fact, or an operation."""
        function = getattr(torch.Tensor, name, None)
        if not issubclass(chosen.python_type(), torch.Tensor) or function is None:
            raise chosen.unknown(f"the method {name!r}")
        if name in choices.FACTS:
            return self.call_method(self.of_chosen(chosen), name, args, kwargs)
        if name in METHODS or not isinstance(function, types.MethodDescriptorType):
            raise chosen.unknown(f"the method {name!r}")
        return self.operation("call_method", name, function, [chosen, *args], kwargs)


class Tensors(ChosenTensors, OverriddenTensors, Inputs):
    """The tensor inputs and operations of one trace. ``memo`` outlives it."""

    interceptors = (
        ChosenTensors.by_choices,
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
