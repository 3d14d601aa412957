"""Methods and items of known objects: constants, functions, classes and modules."""

from __future__ import annotations

import types
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import is_function_of_library
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.runtime.replacement_calls import C_SLOTS
from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.semantics.calls.builtins.methods import METHODS, check_arguments
from dynamo_capture.semantics.calls.receivers import FOLDED
from dynamo_capture.semantics.modes import modes
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    ListValue,
    MethodValue,
    ObjectValue,
    TensorValue,
    TupleValue,
    Value,
    is_none,
)
from dynamo_capture.values.base import Context
from fx_interface.source import ItemSource


def call_method_of_known(
    tx: Context, owner: Const, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``constant.name(...)``."""
    real = owner.value
    if isinstance(real, (types.ModuleType, type)):
        return _call_in_namespace(tx, owner, name, args, kwargs)
    if isinstance(real, types.FunctionType) and name == "__get__":
        check_arguments(owner, types.FunctionType.__get__, args, kwargs)
        return owner if is_none(args[0]) else MethodValue(owner, args[0])
    if name == "__call__":
        return owner.call(tx, args, kwargs)
    method = getattr(type(real), name, None)
    special = METHODS.get(method) if isinstance(real, (str, bytes, tuple, frozenset)) else None
    if special is not None:
        check_arguments(owner, method, args, kwargs)
        receiver = tx.calls.as_set(owner, frozenset) if isinstance(real, frozenset) else owner
        return special(tx, receiver, args, kwargs)
    if isinstance(real, tuple) and not all(map(tx.is_constant, (*args, *kwargs.values()))):
        values = TupleValue([tx.known(item) for item in real], type(real))
        return values.call_method(tx, name, args, kwargs)
    if isinstance(method, types.FunctionType):
        return tx.inliner.call_function(Const(method), [owner, *args], kwargs)
    if isinstance(real, torch.device) and name in ("__enter__", "__exit__"):
        if kwargs or len(args) != (0 if name == "__enter__" else 3):
            raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()}.{name} gets arguments that it does not take")
        return modes.device_block(tx, owner, real, name)
    if name == "__get__" and isinstance(real, C_SLOTS) and args and not is_none(args[0]):
        return _read_by_descriptor(tx, real, args[0])
    if isinstance(real, types.MemberDescriptorType) and name in _WRITING and len(args) == _WRITING[name]:
        return _write_by_descriptor(tx, real, args)
    if isinstance(real, FOLDED):
        check_arguments(owner, method, args, kwargs)
        return tx.calls.call_folded(tx.fold(lambda: getattr(real, name)), args, kwargs)
    found = owner.get_attr(tx, name)
    if isinstance(found, BuiltinMethod):
        raise GraphBreak(NOT_IN_PYTHON, f"a call of the method {name!r} of {owner.describe()}")
    return found.call(tx, args, kwargs)


def _read_by_descriptor(tx: Context, slot: Any, owner: Value) -> Value:
    """``type(owner).name.__get__(owner)``: the attribute, where the class has this descriptor under its name."""
    if tx.attributes.in_class(owner.python_type(), slot.__name__) is not slot:
        raise GraphBreak(NOT_IN_PYTHON, f"{slot!r} reads what {owner.describe()} has under another name")
    if isinstance(owner, TensorValue):
        return tx.tensors.torchs_attribute(owner, slot.__name__)
    return owner.get_attr(tx, slot.__name__)


_WRITING = {"__set__": 2, "__delete__": 1}
"""The methods by which a descriptor writes, and how many arguments they take."""


def _write_by_descriptor(tx: Context, slot: Any, args: list[Value]) -> Value:
    """``type(owner).name.__set__(owner, value)`` of a slot, where the class has this descriptor under its name."""
    owner, name = args[0], slot.__name__
    if not isinstance(owner, ObjectValue) or tx.attributes.in_class(owner.cls, name) is not slot:
        raise GraphBreak(NOT_IN_PYTHON, f"{slot!r} writes to {owner.describe()}")
    if len(args) == 1:
        tx.attributes.delete_generic(owner, name)
    else:
        tx.attributes.set_generic(owner, name, args[1])
    return NONE


def _call_in_namespace(
    tx: Context, owner: Const, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``module.name(...)``, ``cls.name(...)``."""
    found = owner.get_attr(tx, name)
    if not isinstance(found, BuiltinMethod) or found.receiver is not owner:
        return found.call(tx, args, kwargs)
    if name == "mro" and not args and not kwargs:
        tx.attributes.guard_bases(owner.value)
        return ListValue([Const(base) for base in owner.value.mro()])
    if name == "__subclasses__" and not args and not kwargs:
        return _subclasses(tx, owner.value)
    raise GraphBreak(NOT_IN_PYTHON, f"a call of {name!r}, a method of classes, on {owner.describe()}")


def _subclasses(tx: Context, cls: type) -> Value:
    """``cls.__subclasses__()``: a new list; the guard asks again."""
    source = CallSource(known_object(type.__subclasses__), (known_object(cls),), ())
    found = source.step(type.__subclasses__)
    tx.guards.length(source, found)
    for index, one in enumerate(found):
        tx.guards.is_object(ItemSource(source, index), one)
    return ListValue([Const(one) for one in found])


def _item_of_class(tx: Context, owner: Const, key: Value) -> Value:
    """``cls[key]`` of a class whose metaclass has no ``__getitem__``: ``__class_getitem__`` answers, which may be code
    of the program. What a library has for that gives the same for the same key."""
    generic: Any = owner.value
    found = tx.attributes.in_class(generic, "__class_getitem__")
    function = found.__func__ if isinstance(found, classmethod) else found
    is_of_program = not is_function_of_library(function)
    if found is not ABSENT and is_of_program and not isinstance(found, types.ClassMethodDescriptorType):
        return tx.attribute(owner, "__class_getitem__").call(tx, [key], {})
    return tx.known(tx.fold(lambda: generic[tx.calls.python_object(key)]))


def item_of_known(tx: Context, owner: Const, key: Value) -> Value:
    """``constant[key]``."""
    real: Any = owner.value
    if hasattr(type(real), "__getitem__"):
        index = tx.index(key)
        found = tx.fold(lambda: real[index])
        if type(real) is tuple and type(index) is slice and found is not real:
            return tx.calls.from_python(found)
        return tx.known(found)
    if isinstance(real, type):
        return _item_of_class(tx, owner, key)
    raise tx.raises(TypeError, f"{message_name(type(real))!r} object is not subscriptable")
