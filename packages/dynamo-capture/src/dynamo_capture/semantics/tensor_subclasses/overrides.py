"""``__torch_function__``: operations on tensor subclasses, and on objects that take part in torch's functions.

The program's ``__torch_function__`` is traced like any function of the program, with what torch hands to it
(``stand_ins.py``).
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.modes.torch_function_modes import (
    FunctionModes,
    is_asked_about,
    looks_for_modes,
)
from dynamo_capture.semantics.tensor_subclasses.nested import NestedTensors
from dynamo_capture.semantics.tensor_subclasses.stand_ins import Given, StandInMode
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.semantics.tensors.results.outcome import Outcome
from dynamo_capture.semantics.tensors.torchs_members import overrides
from dynamo_capture.sources.sources import TensorAttributeSource
from dynamo_capture.values import (
    Const,
    ObjectValue,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.special_methods import rely_on_operator
from dynamo_capture.values.structures import sequence_leaves
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from dynamo_capture.values.tensors.wrapper import WrapperValue, add_classes, dispatches

_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


class OverriddenTensors(NestedTensors):
    """Operations that may belong to a class or a mode of the program. ``disabled``: in so many blocks that turn the
    classes' off."""

    disabled = 0

    def __init__(self, tx: Context, memo: dict[Any, Outcome]) -> None:
        super().__init__(tx, memo)
        self.modes = FunctionModes()

    def by_mode(
        self, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        """What the modes make of a function of torch; None where there are none, or torch does not ask them."""
        if not self.modes:
            return None
        given = Given(self._tx)
        reached = given.run(function, args, kwargs, StandInMode())
        if reached is None:
            return None
        options = None if reached.kwargs is None else given.back(reached.kwargs)
        classes = [] if self.disabled else self.overriding([*args, *kwargs.values()])
        classes = classes or list(reached.types)
        return self.modes.ask(self._tx, reached.func, classes, given.back(reached.args), options)

    def by_override(self, function: Callable[..., Any], args: list[Value]) -> Value | None:
        """What a mode or a class of the program makes of a builtin function on tensors; None: torch does not ask."""
        answer = self.by_mode(function, args, {})
        classes = [] if answer is not None or self.disabled else self.overriding(args)
        return self._overridden(function, classes, args, {}) if classes else answer

    def is_asked(self, args: list[Value]) -> bool:
        """Whether a mode or a class of the program is asked about a function of these."""
        return bool(self.modes) or (not self.disabled and bool(self.overriding(args)))

    def get_item(self, owner: TensorValue, key: Value) -> Value:
        """``tensor[key]``."""
        self.check_special(owner, "__getitem__")
        answer = self.by_mode(operator.getitem, [owner, key], {})
        return super().get_item(owner, key) if answer is None else answer

    def set_item(self, owner: TensorValue, key: Value, value: Value) -> None:
        """``tensor[key] = value``."""
        self.check_special(owner, "__setitem__")
        if self.by_mode(operator.setitem, [owner, key, value], {}) is None:
            super().set_item(owner, key, value)

    def check_operands(self, call: Operation) -> None:
        """Python asks the classes of an operator's operands before torch is asked."""
        if call.op == "call_function":
            rely_on_operator(self._tx, call.function, call.args)
        self._check_operator(call.function, call.args)

    def by_modes(self, call: Operation) -> Value | None:
        """What modes of ``__torch_function__`` make of an operation."""
        return self.by_mode(call.function, call.args, call.kwargs)

    def by_classes(self, call: Operation) -> Value | None:
        """What classes with a ``__torch_function__`` make of an operation on their tensors."""
        if self.disabled:
            return None
        classes = self.overriding([*call.args, *call.kwargs.values()])
        return self._overridden(call.function, classes, call.args, call.kwargs) if classes else None

    def by_attributes(self, call: Operation) -> Value | None:
        """A function of torch in Python that asks for attributes which a class of the program defines."""
        for arg in call.args:
            if isinstance(arg, TensorValue) and self.function_reads_own(arg.meta.cls, call.function):
                return self._tx.inliner.call_function(Const(call.function), call.args, call.kwargs)
        return None

    def _check_operator(self, function: Callable[..., Any], args: list[Value]) -> None:
        if getattr(function, "__module__", "") != "_operator":
            return
        name = function.__name__.strip("_")
        plain = name.removeprefix("i")
        names = [f"__{each}__" for each in (name, f"r{name}", f"i{name}", plain, f"r{plain}")]
        names += [f"__{_MIRRORED[name]}__"] if name in _MIRRORED else []
        for value in args:
            known = self._tx.force(value)
            if type(known) is Const and _is_asked_itself(known.value):
                raise GraphBreak(
                    "CAP238", f"{known.describe()} is an operand, and is asked for __torch_function__"
                )
            self.check_special(known, *names)

    def call_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``tensor.name(...)``."""
        if name not in (owner.attrs or ()) and self.is_own(owner.meta.cls, name):
            return self.get_attr(owner, name).call(self._tx, args, kwargs)
        return self.torchs_method(owner, name, args, kwargs)

    def torchs_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``torch.Tensor.name(tensor, ...)``, whatever the tensor's class has under that name."""
        cls = owner.meta.cls
        if self.modes and callable(function := getattr(torch.Tensor, name, None)):
            if looks_for_modes(function):
                return self._tx.inliner.call_function(Const(function), [owner, *args], kwargs)
            answer = self.by_mode(function, [owner, *args], kwargs) if is_asked_about(function) else None
            if answer is not None:
                return answer
        if overrides(cls):
            function = getattr(torch.Tensor, name, None)
            if not self.disabled and callable(function):
                answer = self._overridden(function, [cls], [owner, *args], kwargs)
                if answer is not None:
                    return answer
        if self.reads_own(cls, name):
            return self._tx.inliner.call_function(Const(getattr(torch.Tensor, name)), [owner, *args], kwargs)
        return super().call_method(owner, name, args, kwargs)

    def get_attr(self, owner: TensorValue, name: str) -> Value:
        """``tensor.name``."""
        cls = owner.meta.cls
        is_written = name in (owner.attrs or ())
        if not is_written and self.is_own(cls, name):
            return self.own_attribute(owner, name)
        if is_written or cls in PLAIN_CLASSES:
            answer = self._attribute_by_mode(owner, name)
            return super().get_attr(owner, name) if answer is None else answer
        return self.torchs_attribute(owner, name)

    def _attribute_by_mode(self, owner: TensorValue, name: str) -> Value | None:
        if not self.modes or not isinstance(_in_tensor(name), (property, types.GetSetDescriptorType)):
            return None
        return self.by_mode(lambda tensor: getattr(tensor, name), [owner], {})

    def torchs_attribute(self, owner: TensorValue, name: str) -> Value:
        """What torch gives each tensor under a name, or what the class makes of that being read."""
        answer = self._attribute_by_mode(owner, name)
        if answer is not None:
            return answer
        cls = owner.meta.cls
        found = getattr(torch.Tensor, name, None)
        if (
            not self.disabled
            and overrides(cls)
            and isinstance(found, (property, types.GetSetDescriptorType))
            and name[:2] != "__"
        ):
            answer = self._overridden(lambda tensor: getattr(tensor, name), [cls], [owner], {})
            if answer is not None:
                return answer
        return super().get_attr(owner, name)

    def _grad(self, owner: TensorValue) -> Value:
        if owner.real is None or owner.source is None or not overrides(owner.meta.cls):
            return super()._grad(owner)
        source = TensorAttributeSource(owner.source, "grad")
        return self._tx.wrap(source.step(owner.real), source)

    def set_attr(self, owner: TensorValue, name: str, value: Value) -> None:
        """``tensor.name = value``."""
        if self.modes and isinstance(_in_tensor(name), (property, types.GetSetDescriptorType)):
            raise GraphBreak("CAP239", f"the attribute {name!r} of a tensor is set in a TorchFunctionMode")
        is_wrapper = type(owner) is WrapperValue
        if (
            not is_wrapper
            and owner.meta.cls not in PLAIN_CLASSES
            and (hasattr(torch.Tensor, name) or self.is_own(owner.meta.cls, name))
        ):
            raise GraphBreak("CAP238", f"the attribute {name!r} of a tensor subclass is set")
        super().set_attr(owner, name, value)

    def as_class(self, owner: TensorValue, cls: type, *, followed: bool = True) -> TensorValue:
        """Another tensor, of that class, with the same memory and history, or none."""
        if dispatches(cls):
            raise GraphBreak("CAP249", f"a tensor is made a {cls.__name__}, which dispatches in Python")
        alias = self._alias(
            owner, torch.ops.aten.alias.default if followed else torch.ops.aten.detach.default
        )
        meta = alias.meta
        made = TensorValue(
            alias.node,
            TensorMeta.of(meta.spec, meta.requires_grad, not meta.requires_grad, cls, meta.is_inference),
        )
        made.show(alias.memory)
        if followed:
            made.root = alias.root
            made.root.views.append(made)
        return made

    def _alias(self, owner: TensorValue, function: Callable[..., Any]) -> TensorValue:
        """A tensor object of its own that shows the same, of which neither class nor mode is asked."""
        self.disabled += 1
        try:
            with self.modes.without(len(self.modes.active)):
                alias = self.call_function(function, [owner], {})
        finally:
            self.disabled -= 1
        assert isinstance(alias, TensorValue)
        return alias

    def overriding(self, values: list[Value]) -> list[type]:
        """The classes that take over an operation, in torch's order: subclasses before their bases."""
        found: list[type] = []
        for value in sequence_leaves(self._tx, values):
            cls = value.python_type()
            if isinstance(value, TensorValue):
                takes_over = cls is not torch.Tensor and overrides(cls)
            else:
                takes_over = type(value) is ObjectValue and has_member(cls, "__torch_function__")
            if takes_over:
                add_classes(found, [cls])
        return found

    def _overridden(
        self, function: Callable[..., Any], classes: list[type], args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        """What the program makes of an operation; None for one that torch does not ask it about."""
        tx = self._tx
        classes = self.overriding([*args, *kwargs.values()]) or classes
        given = Given(tx)
        reached = given.run(function, args, kwargs)
        if reached is None:
            return None
        passed = [Const(reached.func), TupleValue([Const(cls) for cls in classes]), given.back(reached.args)]
        if reached.kwargs is not None:
            passed.append(given.back(reached.kwargs))
        for cls in classes:
            override = Const(cls).get_attr(tx, "__torch_function__")
            answer = tx.force(override.call(tx, list(passed), {}))
            if not (isinstance(answer, Const) and answer.value is NotImplemented):
                return answer
        raise GraphBreak("CAP238", "no __torch_function__ takes the operation")


def _is_asked_itself(operand: Any) -> bool:
    """Whether torch asks a class that is an operand, as it would ask an instance of it."""
    return isinstance(operand, type) and any("__torch_function__" in vars(base) for base in operand.__mro__)


def _in_tensor(name: str) -> Any:
    return next((base.__dict__[name] for base in torch.Tensor.__mro__[:-1] if name in base.__dict__), None)
