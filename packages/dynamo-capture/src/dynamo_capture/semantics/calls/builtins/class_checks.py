"""``isinstance`` and ``issubclass``, also where a metaclass answers: in Python, or by what has been registered."""

from __future__ import annotations

import abc
import builtins
import types
import typing
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import DESCRIPTOR, OBJECT_OPERATION
from dynamo_capture.foundation.class_members import CLASS_OF_OBJECTS, is_immutable
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.parameters import IS_PARAMETER
from dynamo_capture.foundation.library_functions import is_function_of_library
from dynamo_capture.guard_kinds.classes import InstanceIs, SubclassIs
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import Const, ObjectValue, OpaqueValue, OpenText, TensorValue, Value, boolean
from dynamo_capture.values.base import Context
from dynamo_capture.values.opaque import WeakProxy
from dynamo_capture.values.tensors.wrapper import IS_BUFFER
from fx_interface.python_runtime.own_builtins import PROGRAMS_ISINSTANCE

_LEGACY_CLASS: Any = type(torch.FloatTensor)
_MODULE_OF_LEGACY = {"cpu": "torch", "cuda": "torch.cuda"}
_dump_of: Any = vars(abc)["_get_dump"]
"""What an abstract class has registered, and the classes about which it remembers its answer."""
_REGISTERED = (abc.ABCMeta.__instancecheck__, abc.ABCMeta.__subclasscheck__)


@handles(PROGRAMS_ISINSTANCE, isinstance)  # the second one in polyfills, modules of the stack
def is_instance(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value, wanted = args[0], tx.constant(args[1])
    if isinstance(value, WeakProxy) and not _is_of_one(value.python_type(), wanted):
        value = value.referent  # whose ``__class__`` the proxy shows
    if isinstance(value, ObjectValue):
        tx.attributes.guard_type(value)
    cls = value.python_type()
    if isinstance(value, (Const, ObjectValue, OpaqueValue)) and not _is_told_by_class(cls, wanted):
        _check_class_is_shown(tx, cls)
    tx.attributes.guard_bases(cls)
    return boolean(_any_of(tx, value, wanted))


def _is_of_one(cls: type, wanted: Any) -> bool:
    """Whether a class is one of those that are asked for, or inherits from it."""
    if type(wanted) is tuple:
        return any(_is_of_one(cls, kind) for kind in wanted)
    return type(wanted) is type and issubclass(cls, wanted)


def _is_told_by_class(cls: type, wanted: Any) -> bool:
    """Whether an object is an instance before Python asks it for its ``__class__``: of the first of several classes."""
    while type(wanted) is tuple and wanted:
        wanted = wanted[0]
    return wanted == () or (type(wanted) is type and issubclass(cls, wanted))


def _check_class_is_shown(tx: Context, cls: type) -> None:
    """``obj.__class__`` must be the class, and no code of the program."""
    in_class = tx.attributes.in_class
    if is_immutable(cls):
        return
    if in_class(cls, "__class__") is not CLASS_OF_OBJECTS or isinstance(
        in_class(cls, "__getattribute__"), types.FunctionType
    ):
        raise GraphBreak(DESCRIPTOR, "objects of a class answer themselves what class they have")


def _any_of(tx: Context, value: Value, wanted: Any) -> bool:
    """A tuple is asked class by class; the first that says yes ends it."""
    if type(wanted) is tuple:
        return any(_any_of(tx, value, part) for part in wanted)
    check = _own_check(tx, wanted, "__instancecheck__")
    cls = value.python_type()
    if check is not None and not _is_library(check):
        return cls is wanted or tx.truth(tx.inliner.call_function(Const(check), [Const(wanted), value], {}))
    if check is not None and cls is not wanted:
        _check_asks_nobody(cls, wanted)
    answer = _answer(tx, value, cls, wanted)
    if check in _REGISTERED:
        _guard_registration(tx, cls, wanted, answer)
    elif check is not None and check.__module__ == typing.__name__ and value.source is not None:
        tx.guards.add(InstanceIs(value.source, wanted, answer, where=tx.where()))
    return answer


def _answer(tx: Context, value: Value, cls: type, wanted: Any) -> bool:
    if isinstance(value, Const) and not value.is_open and not isinstance(value, OpenText):
        return tx.fold(lambda: PROGRAMS_ISINSTANCE(value.value, wanted))
    if isinstance(value, ObjectValue) and value.real is not None:
        return tx.fold(lambda: PROGRAMS_ISINSTANCE(value.real, wanted))
    if isinstance(value, TensorValue):
        attrs = value.attrs or {}
        marks = {name: attrs[name] for name in (IS_PARAMETER, IS_BUFFER) if name in attrs}
        if value.real is not None and not marks:
            return tx.fold(lambda: PROGRAMS_ISINSTANCE(value.real, wanted))
        if isinstance(wanted, _LEGACY_CLASS):
            return _is_legacy_instance(value, wanted)
        plain = torch.empty(0, device="cpu")
        sample = plain if cls is torch.Tensor else plain.as_subclass(cls)
        for name, mark in marks.items():
            setattr(sample, name, tx.constant(mark))
        return tx.fold(lambda: PROGRAMS_ISINSTANCE(sample, wanted))
    return tx.fold(lambda: issubclass(cls, wanted))


def _is_legacy_instance(value: TensorValue, wanted: Any) -> bool:
    """``torch.DoubleTensor``, ``torch.cuda.HalfTensor``, ... have the tensors of one dtype on one kind of device."""
    spec = value.meta.spec
    return wanted.dtype is spec.dtype and wanted.__module__ == _MODULE_OF_LEGACY.get(spec.device.type)


@handles(builtins.issubclass)
def is_subclass(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls, wanted = (tx.constant(arg) for arg in args)
    if isinstance(cls, type):
        tx.attributes.guard_bases(cls)
    return boolean(_any_base(tx, cls, wanted))


def _any_base(tx: Context, cls: Any, wanted: Any) -> bool:
    if type(wanted) is tuple:
        return any(_any_base(tx, cls, part) for part in wanted)
    check = _own_check(tx, wanted, "__subclasscheck__")
    if check is not None and not _is_library(check):
        return tx.truth(tx.inliner.call_function(Const(check), [Const(wanted), Const(cls)], {}))
    if check is not None and isinstance(cls, type):
        _check_asks_nobody(cls, wanted)
    answer = tx.fold(lambda: issubclass(cls, wanted))
    if check in _REGISTERED and isinstance(cls, type):
        _guard_registration(tx, cls, wanted, answer)
    return answer


def _own_check(tx: Context, wanted: Any, name: str) -> types.FunctionType | None:
    """How the class's own metaclass, if it is written in Python, answers."""
    if not isinstance(wanted, type) or type(wanted) is type:
        return None
    found = tx.attributes.in_class(type(wanted), name)
    return found if isinstance(found, types.FunctionType) else None


def _check_asks_nobody(cls: type, wanted: Any) -> None:
    """That an abstract class finds its answer without code of the program. It asks its own ``__subclasscheck__``, then,
    the first time, all classes that are registered with it or derived from it, whose metaclasses may answer."""
    if not isinstance(wanted, abc.ABCMeta):
        return
    if _is_answered_by_program(wanted) or (
        not _has_answered(cls, wanted) and wanted not in cls.__mro__ and _has_program_below(wanted, set())
    ):
        raise GraphBreak(OBJECT_OPERATION, f"{wanted.__name__} asks code of the program about a class")


def _is_answered_by_program(wanted: type) -> bool:
    """Whether a metaclass, written in the program, answers ``issubclass``."""
    found = next(
        vars(cls)["__subclasscheck__"] for cls in type.mro(type(wanted)) if "__subclasscheck__" in vars(cls)
    )
    return isinstance(found, types.FunctionType) and not _is_library(found)


def _has_answered(cls: type, wanted: abc.ABCMeta) -> bool:
    """Whether an abstract class remembers its answer about ``cls``."""
    _, known, refused, version = _dump_of(wanted)
    answered = (*known, *refused) if version == abc.get_cache_token() else known
    return any(reference() is cls for reference in answered)  # a weak reference has the hash of the class


def _has_program_below(wanted: abc.ABCMeta, seen: set[type]) -> bool:
    registered = [one for reference in _dump_of(wanted)[0] if (one := reference()) is not None]
    derived: list[type] = type.__subclasses__(wanted)  # type: ignore[arg-type]  # stubs take no metaclass's instance
    for below in (*registered, *derived):
        if below in seen:
            continue
        seen.add(below)
        if _is_answered_by_program(below):
            return True
        if isinstance(below, abc.ABCMeta) and _has_program_below(below, seen):
            return True
    return False


def _guard_registration(tx: Context, cls: type, wanted: type, answer: bool) -> None:
    """Classes are registered with others, and gain methods that others ask for; those of libraries stay."""
    if not (_is_library(cls) and _is_library(wanted)):
        source = tx.attributes.class_source(cls)
        tx.guards.add(SubclassIs(source, wanted, answer, where=tx.where()))


def _is_library(owner: type | types.FunctionType) -> bool:
    return is_function_of_library(owner)
