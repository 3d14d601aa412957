"""The service of a trace for tensors: inputs, operations, attributes.

Whoever may answer is asked in a declared order and may decline: an operation, a method, an attribute that is read or
written belongs to a mode, to the tensor's class, to what a kind of tensor makes of it, and else to torch.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dynamo_capture.semantics.modes.torch_function_modes import FunctionModes
from dynamo_capture.semantics.regions import new_data
from dynamo_capture.semantics.regions.transforms import dual_levels
from dynamo_capture.semantics.tensor_subclasses import nested, operands, overrides, sparse, wrappers
from dynamo_capture.semantics.tensor_subclasses.nested_stand_ins import Ragged
from dynamo_capture.semantics.tensor_subclasses.subclass_region import Stretch
from dynamo_capture.semantics.tensors import attributes, chosen_tensors
from dynamo_capture.semantics.tensors.inputs import Inputs
from dynamo_capture.semantics.tensors.operations import Operations
from dynamo_capture.semantics.tensors.results.outcome import Outcome
from dynamo_capture.tables import first_answer
from dynamo_capture.values import TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.chosen import ChosenValue

_OWN_METHODS = (chosen_tensors.method_beside, overrides.own_method)
"""Who is asked about a method before it is taken for what torch gives each tensor."""

_METHODS = (
    overrides.method_by_modes,
    overrides.method_by_class,
    nested.method,
    sparse.method,
    wrappers.method,
)
"""Who is asked about a method that torch gives each tensor, before torch."""

_READERS = (
    overrides.attribute_by_modes,
    overrides.attribute_by_class,
    nested.attribute,
    sparse.attribute,
    wrappers.attribute,
)
"""Who is asked about an attribute that torch gives each tensor, before torch."""

_WRITERS = (overrides.check_setting, nested.set_attribute, sparse.set_attribute, wrappers.set_attribute)
"""Who may set an attribute, before torch; each says whether it did."""


class Tensors(Operations, Inputs):
    """The tensor inputs and operations of one trace. ``memo`` outlives it.

    ``chooses``: whether there are tensors that data choose; ``disabled``: in so many blocks that turn the classes'
    ``__torch_function__`` off; ``skips_one``: whether the next question to them is left out; ``below``: in so many
    calls of ``__torch_dispatch__``, which autograd does not see into; ``stretch``: the operations so far that
    autograd follows through classes that dispatch; ``has_nested``: whether the trace has met a nested tensor;
    ``duals``: the level of dual tensors that the program has entered.
    """

    interceptors = (
        chosen_tensors.by_choices,
        new_data.by_data,
        overrides.check_operands,
        overrides.by_modes,
        overrides.by_classes,
        overrides.by_attributes,
        nested.by_rows,
        sparse.by_parts,
        wrappers.by_dispatch,
        dual_levels.by_derivative,
    )
    input_kinds = (nested.existing, wrappers.existing)
    unusual_kinds = (sparse.existing,)
    chooses = False
    disabled = 0
    skips_one = False
    below = 0
    stretch: Stretch | None = None
    has_nested = False
    duals: dual_levels.DualLevel | None = None

    def __init__(self, tx: Context, memo: dict[Any, Outcome]) -> None:
        Inputs.__init__(self, tx)
        Operations.__init__(self, tx, memo)
        self.modes = FunctionModes()
        self.ragged = Ragged(tx)

    def get_attr(self, owner: TensorValue, name: str) -> Value:
        """``tensor.name``."""
        answer = overrides.own_attribute(self._tx, owner, name)
        return self.torchs_attribute(owner, name) if answer is None else answer

    def torchs_attribute(self, owner: TensorValue, name: str) -> Value:
        """What torch gives each tensor under a name, or what the class makes of that being read."""
        answer = first_answer(_READERS, self._tx, owner, name)
        return attributes.attribute(self._tx, owner, name) if answer is None else answer

    def set_attr(self, owner: TensorValue, name: str, value: Value) -> None:
        """``tensor.name = value``."""
        if not any(writer(self._tx, owner, name, value) for writer in _WRITERS):
            attributes.set_attribute(self._tx, owner, name, value)

    def call_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``tensor.name(...)``."""
        if attributes.has_itself(owner, name) and name[:2] != "__":
            return owner.get_attr(self._tx, name).call(self._tx, args, kwargs)
        answer = first_answer(_OWN_METHODS, self._tx, owner, name, args, kwargs)
        return self.torchs_method(owner, name, args, kwargs) if answer is None else answer

    def torchs_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``torch.Tensor.name(tensor, ...)``, whatever the tensor's class has under that name."""
        answer = first_answer(_METHODS, self._tx, owner, name, args, kwargs)
        return self.plain_method(owner, name, args, kwargs) if answer is None else answer

    def get_item(self, owner: TensorValue, key: Value) -> Value:
        """``tensor[key]``."""
        self.check_special(owner, "__getitem__")
        answer = overrides.by_mode(self._tx, operator.getitem, [owner, key], {})
        return self.plain_item(owner, key) if answer is None else answer

    def set_item(self, owner: TensorValue, key: Value, value: Value) -> None:
        """``tensor[key] = value``."""
        self.check_special(owner, "__setitem__")
        if overrides.by_mode(self._tx, operator.setitem, [owner, key, value], {}) is None:
            self.set_plain_item(owner, key, value)

    def of_chosen(self, chosen: ChosenValue) -> TensorValue:
        """A tensor equal to one that data choose, at this point."""
        return chosen_tensors.stand_in(self._tx, chosen)

    def chosen_attribute(self, chosen: ChosenValue, name: str) -> Value:
        """``chosen.name``."""
        return chosen_tensors.attribute(self._tx, chosen, name)

    def chosen_method(
        self, chosen: ChosenValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``chosen.name(...)``."""
        return chosen_tensors.method(self._tx, chosen, name, args, kwargs)

    def check_special(self, value: Value, *names: str) -> None:
        """Python asks the class of a tensor first what an operator or a builtin function means."""
        attributes.check_special(self._tx, value, *names)

    def by_override(self, function: Callable[..., Any], args: list[Value]) -> Value | None:
        """What a mode or a class of the program makes of a builtin function on tensors; None: torch does not ask."""
        return overrides.by_override(self._tx, function, args)

    def overriding(self, values: list[Value]) -> list[type]:
        """The classes that take over an operation, in torch's order: subclasses before their bases."""
        return operands.overriding(self._tx, values)

    def as_class(self, owner: TensorValue, cls: type, *, followed: bool = True) -> TensorValue:
        """Another tensor, of that class, with the same memory and history, or none."""
        return overrides.as_class(self._tx, owner, cls, followed=followed)
