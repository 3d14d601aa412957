"""Methods in C that are called through their class: ``str.upper(x)``, ``object.__setattr__(x, name, value)``."""

from __future__ import annotations

import types
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import is_immutable
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.builtins.slots import attribute_name, call_slot
from dynamo_capture.semantics.calls.receivers import FOLDED
from dynamo_capture.semantics.calls.signatures import takes
from dynamo_capture.semantics.calls.substituted import not_taken
from dynamo_capture.semantics.tensors.attributes import is_own
from dynamo_capture.values import NONE, Const, ObjectValue, TensorValue, Value
from dynamo_capture.values.base import Context

_OPERANDS = {"__getattribute__": 2, "__setattr__": 3, "__delattr__": 2}
"""What may run code of the program, or change the object, and how many arguments it has, self included."""
_HARMLESS = frozenset(
    {
        "__eq__",
        "__ne__",
        "__lt__",
        "__le__",
        "__gt__",
        "__ge__",
        "__hash__",
        "__repr__",
        "__sizeof__",
        "__or__",
    }
)
"""What only looks at any object in C."""


def call_unbound(tx: Context, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``function(receiver, ...)``, a method descriptor or a slot's wrapper."""
    if not args:
        tx.fold(function)
    if not takes(function, len(args), tuple(kwargs)):
        raise not_taken(Const(function))
    receiver, name = args[0], function.__name__
    if isinstance(receiver, TensorValue):
        if is_own(tx, torch.Tensor, name):
            raise GraphBreak(
                NOT_IN_PYTHON, f"{function.__qualname__} is called, which the program has replaced"
            )
        if function.__objclass__ is object and getattr(receiver.meta.cls, name) is not function:
            raise GraphBreak(NOT_IN_PYTHON, f"{function.__qualname__} is called with {receiver.describe()}")
        if name in (receiver.attrs or ()):
            raise GraphBreak(NOT_IN_PYTHON, f"{function.__qualname__} is called with {receiver.describe()}")
        return tx.tensors.torchs_method(receiver, name, args[1:], kwargs)
    if isinstance(receiver, ObjectValue):
        return call_slot(tx, receiver, function, args[1:], kwargs)
    if isinstance(receiver, Const):
        return _of_known(tx, function, receiver, args, kwargs)
    if (
        getattr(receiver.python_type(), name, None) is not function
    ):  # as ``OrderedDict`` has an ``__eq__`` of its own
        raise GraphBreak(NOT_IN_PYTHON, f"{function.__qualname__} is called with {receiver.describe()}")
    return receiver.call_method(tx, name, args[1:], kwargs)


def _of_known(
    tx: Context, function: Any, receiver: Const, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """Run for real only where that runs no code of the program and changes nothing."""
    real, name = receiver.value, function.__name__
    if name in _OPERANDS and len(args) == _OPERANDS[name] and not kwargs:
        return _attribute(tx, function, receiver, args)
    is_value = isinstance(real, FOLDED) and (is_immutable(type(real)) or function.__objclass__ in FOLDED)
    if is_value or name in _HARMLESS or name in _OPERANDS:
        return tx.calls.call_folded(function, args, kwargs)
    if isinstance(real, (type, types.ModuleType)):
        return _of_namespace(tx, function, receiver, args, kwargs)
    if tx.attributes.in_class(type(real), name) is function:
        return receiver.call_method(tx, name, args[1:], kwargs)
    raise GraphBreak(NOT_IN_PYTHON, f"a call of {function.__qualname__} on {receiver.describe()}")


def _of_namespace(
    tx: Context, function: Any, receiver: Const, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A method of all classes or modules, in whose own namespace another may stand under its name."""
    real, name = receiver.value, function.__name__
    if name == "__str__" and tx.attributes.in_class(type(real), "__repr__") is type.__repr__:
        return tx.calls.call_folded(function, args, kwargs)
    if function in (type.mro, type.__subclasses__) and tx.attributes.in_class(real, name) is fx_guards.ABSENT:
        return receiver.call_method(tx, name, args[1:], kwargs)
    raise GraphBreak(NOT_IN_PYTHON, f"a call of {function.__qualname__} on {receiver.describe()}")


def _attribute(tx: Context, function: Any, receiver: Const, args: list[Value]) -> Value:
    name = attribute_name(tx, args[1])
    if function.__name__ == "__getattribute__":
        return tx.attributes.of_known_plainly(receiver, name, function)
    if function.__name__ == "__setattr__":
        receiver.set_attr(tx, name, args[2])
    else:
        receiver.del_attr(tx, name)
    return NONE
