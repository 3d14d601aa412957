"""``__torch_function__``: operations on tensor subclasses, and on objects that take part in torch's functions.

The program's ``__torch_function__`` is traced like any function of the program, with what torch hands to it
(``stand_ins.py``).
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON, OTHER_INTERPRETER, SUBCLASS_TAKES_OVER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import module_of_function
from dynamo_capture.semantics.modes.torch_function_modes import (
    FunctionModes,
    is_asked_about,
    looks_for_modes,
)
from dynamo_capture.semantics.tensor_subclasses.operands import check_class, overriding
from dynamo_capture.semantics.tensor_subclasses.stand_ins import Given, StandInMode
from dynamo_capture.semantics.tensors import attributes
from dynamo_capture.semantics.tensors.attributes import (
    check_reads,
    check_special,
    function_reads_own,
    is_own,
    reads_own,
)
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.semantics.tensors.torchs_members import overrides
from dynamo_capture.values import (
    Const,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.special_methods import rely_on_operator
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from dynamo_capture.values.tensors.wrapper import WrapperValue, dispatches

_CONVERSIONS = frozenset({"__index__", "__int__", "__float__", "__bool__", "__complex__"})
_MIRRORED = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}


def by_mode(
    tx: Context, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """What the modes make of a function of torch; None where there are none, or torch does not ask them."""
    if not tx.tensors.modes:
        return None
    given = Given(tx)
    reached = given.run(function, args, kwargs, StandInMode())
    if reached is None:
        return None
    options = None if reached.kwargs is None else given.back(reached.kwargs)
    classes = [] if tx.tensors.disabled else overriding(tx, [*args, *kwargs.values()])
    classes = classes or list(reached.types)
    modes: FunctionModes = tx.tensors.modes
    return modes.ask(tx, reached.func, classes, given.back(reached.args), options)


def by_override(tx: Context, function: Callable[..., Any], args: list[Value]) -> Value | None:
    """What a mode or a class of the program makes of a builtin function on tensors; None: torch does not ask."""
    answer = by_mode(tx, function, args, {})
    classes = [] if answer is not None or tx.tensors.disabled else overriding(tx, args)
    return _overridden(tx, function, classes, args, {}) if classes else answer


def is_asked(tx: Context, args: list[Value]) -> bool:
    """Whether a mode or a class of the program is asked about a function of these."""
    return bool(tx.tensors.modes) or (not tx.tensors.disabled and bool(overriding(tx, args)))


def check_operands(tx: Context, call: Operation) -> None:
    """Python asks the classes of an operator's operands before torch is asked."""
    if call.op == "call_function":
        rely_on_operator(tx, call.function, call.args)
    _check_operator(tx, call.function, call.args)


def by_modes(tx: Context, call: Operation) -> Value | None:
    """What modes of ``__torch_function__`` make of an operation."""
    return by_mode(tx, call.function, call.args, call.kwargs)


def by_classes(tx: Context, call: Operation) -> Value | None:
    """What classes with a ``__torch_function__`` make of an operation on their tensors."""
    if tx.tensors.disabled:
        return None
    classes = overriding(tx, [*call.args, *call.kwargs.values()])
    return _overridden(tx, call.function, classes, call.args, call.kwargs) if classes else None


def by_attributes(tx: Context, call: Operation) -> Value | None:
    """A function of torch in Python that asks for attributes which a class of the program defines."""
    for arg in call.args:
        if isinstance(arg, TensorValue) and function_reads_own(tx, arg.meta.cls, call.function):
            return tx.inliner.call_function(Const(call.function), call.args, call.kwargs)
    return None


def _check_operator(tx: Context, function: Callable[..., Any], args: list[Value]) -> None:
    if getattr(function, "__module__", "") != "_operator":
        return
    name = function.__name__.strip("_")
    plain = name.removeprefix("i")
    names = [f"__{each}__" for each in (name, f"r{name}", f"i{name}", plain, f"r{plain}")]
    names += [f"__{_MIRRORED[name]}__"] if name in _MIRRORED else []
    for value in args:
        known = tx.force(value)
        check_class(known)
        check_special(tx, known, *names)


def own_method(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """``tensor.name(...)``, where the program says in the tensor's class what that is."""
    if name in (owner.attrs or ()) or not is_own(tx, owner.meta.cls, name):
        return None
    return owner.get_attr(tx, name).call(tx, args, kwargs)


def method_by_modes(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """What modes make of a method that torch gives each tensor."""
    if not tx.tensors.modes or not callable(function := getattr(torch.Tensor, name, None)):
        return None
    if looks_for_modes(function):
        return tx.inliner.call_function(Const(function), [owner, *args], kwargs)
    return by_mode(tx, function, [owner, *args], kwargs) if is_asked_about(function) else None


def method_by_class(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """What the tensor's class makes of a method that torch gives each tensor, or of what that reads."""
    cls = owner.meta.cls
    if overrides(cls) and not tx.tensors.disabled and callable(function := getattr(torch.Tensor, name, None)):
        answer = _overridden(tx, function, [cls], [owner, *args], kwargs)
        if answer is not None:
            return answer
    if reads_own(tx, cls, name):
        return tx.inliner.call_function(Const(getattr(torch.Tensor, name)), [owner, *args], kwargs)
    return None


def own_attribute(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """``tensor.name``, where the program has written it, or says in the tensor's class what it is."""
    if owner.attrs is not None and name in owner.attrs:
        answer = attribute_by_modes(tx, owner, name)
        return owner.attrs[name] if answer is None else answer
    return attributes.own_attribute(tx, owner, name) if is_own(tx, owner.meta.cls, name) else None


def attribute_by_modes(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """What modes make of an attribute that torch gives each tensor being read."""
    if not tx.tensors.modes or not isinstance(_in_tensor(name), (property, types.GetSetDescriptorType)):
        return None
    return by_mode(tx, lambda tensor: getattr(tensor, name), [owner], {})


def attribute_by_class(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """What the tensor's class makes of an attribute that torch gives each tensor being read."""
    cls = owner.meta.cls
    if tx.tensors.disabled or not overrides(cls) or name[:2] == "__":
        return None
    if not isinstance(getattr(torch.Tensor, name, None), (property, types.GetSetDescriptorType)):
        return None
    return _overridden(tx, lambda tensor: getattr(tensor, name), [cls], [owner], {})


def check_setting(tx: Context, owner: TensorValue, name: str, value: Value) -> bool:
    """``tensor.name = value`` ends the graph where a mode or the tensor's class would be asked."""
    if tx.tensors.modes and isinstance(_in_tensor(name), (property, types.GetSetDescriptorType)):
        raise GraphBreak(
            OTHER_INTERPRETER, f"the attribute {name!r} of a tensor is set in a TorchFunctionMode"
        )
    is_wrapper = type(owner) is WrapperValue
    if (
        not is_wrapper
        and owner.meta.cls not in PLAIN_CLASSES
        and (hasattr(torch.Tensor, name) or is_own(tx, owner.meta.cls, name))
    ):
        raise GraphBreak(SUBCLASS_TAKES_OVER, f"the attribute {name!r} of a tensor subclass is set")
    return False


def as_class(tx: Context, owner: TensorValue, cls: type, *, followed: bool = True) -> TensorValue:
    """Another tensor, of that class, with the same memory and history, or none."""
    if dispatches(cls):
        raise GraphBreak(DISPATCH_IN_PYTHON, f"a tensor is made a {cls.__name__}, which dispatches in Python")
    check_reads(tx, cls)
    alias = _alias(tx, owner, torch.ops.aten.alias.default if followed else torch.ops.aten.detach.default)
    meta = alias.meta
    made = TensorValue(
        alias.node,
        TensorMeta.of(meta.spec, meta.requires_grad, not meta.requires_grad, cls, meta.is_inference),
    )
    made.show(alias.memory)
    if followed:
        made.root = alias.root
        made.root.views.append(made)
        made.refuses_writes = alias.refuses_writes
    return made


def _alias(tx: Context, owner: TensorValue, function: Callable[..., Any]) -> TensorValue:
    """A tensor object of its own that shows the same, of which neither class nor mode is asked."""
    tx.tensors.disabled += 1
    try:
        with tx.tensors.modes.without(len(tx.tensors.modes.active)):
            alias = tx.tensors.call_function(function, [owner], {})
    finally:
        tx.tensors.disabled -= 1
    assert isinstance(alias, TensorValue)
    return alias


def _overridden(
    tx: Context,
    function: Callable[..., Any],
    classes: list[type],
    args: list[Value],
    kwargs: dict[str, Value],
) -> Value | None:
    """What the program makes of an operation; None for one that torch does not ask it about."""
    if tx.tensors.skips_one:
        raise GraphBreak(SUBCLASS_TAKES_OVER, "an operation is to be done without asking its class once")
    classes = overriding(tx, [*args, *kwargs.values()]) or classes
    given = Given(tx)
    reached = given.run(function, args, kwargs)
    if reached is None:
        return None
    if _is_of_torch(function) and reached.func is not function:  # a step of it: the class is asked about each
        return tx.inliner.call_function(Const(function), args, kwargs)
    asked = getattr(reached.func, "__name__", "")
    if asked in _CONVERSIONS and asked.strip("_") != getattr(function, "__name__", "").strip("_"):
        raise GraphBreak(SUBCLASS_TAKES_OVER, "an operand is asked what number it is")
    passed = [Const(reached.func), TupleValue([Const(cls) for cls in classes]), given.back(reached.args)]
    if reached.kwargs is not None:
        passed.append(given.back(reached.kwargs))
    for cls in classes:
        override = Const(cls).get_attr(tx, "__torch_function__")
        answer = tx.force(override.call(tx, list(passed), {}))
        if not answer.stands_for(NotImplemented):
            return answer
    raise GraphBreak(SUBCLASS_TAKES_OVER, "no __torch_function__ takes the operation")


def _is_of_torch(function: Callable[..., Any]) -> bool:
    """Whether it is a function of torch's that is written in Python."""
    return (
        isinstance(function, types.FunctionType) and module_of_function(function).partition(".")[0] == "torch"
    )


def _in_tensor(name: str) -> Any:
    return next((base.__dict__[name] for base in torch.Tensor.__mro__[:-1] if name in base.__dict__), None)
