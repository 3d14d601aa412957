"""Functions of ``inspect`` and ``typing`` that read what describes the functions and classes that they are given."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from typing import Any

import fx_guards
from dynamo_capture.foundation.break_kinds import DESCRIPTOR, NAMESPACE_ACCESS, NOT_IN_PYTHON, OUTSIDE_WORLD
from dynamo_capture.foundation.class_members import has_member, is_looked_up_by_program
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import is_function_of_library
from dynamo_capture.frames.frame import Frame
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import ProxiedSource, known_object
from dynamo_capture.values import Const, FunctionValue, MethodValue, ObjectValue, PartialValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.traceback import FrameValue
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, Source

_PARAMETERS = ("__code__", "__defaults__", "__kwdefaults__")
_IN_DICTIONARY = ("__wrapped__", "__signature__")
_CALLED = ("__init__", "__new__", "__call__")


@handles(inspect.unwrap)
def unwrapped(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for value in args:
        _guard_value(tx, value, ())
    return tx.calls.call_folded(inspect.unwrap, args, kwargs)


@handles(inspect.getdoc)
def documentation(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for value in args:
        _guard_value(tx, value, ("__doc__",))
    return tx.calls.call_folded(inspect.getdoc, args, kwargs)


@handles(typing.get_type_hints)
def type_hints(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for value in args:
        _guard_value(tx, value, ("__annotations__",))
    return tx.calls.call_folded(typing.get_type_hints, args, kwargs)


@handles(inspect.signature)
def signature(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Of a known function, or of a method, whose first parameter is bound."""
    owner = args[0]
    options = {name: tx.constant(value) for name, value in kwargs.items()}
    if isinstance(owner, MethodValue) and isinstance(owner.function, Const):
        bound = types.MethodType(
            owner.function.value, owner
        )  # to anything: only what is left of the parameters counts
        _guard_value(tx, owner.function, _PARAMETERS)
        return Const(tx.fold(lambda: inspect.signature(bound, **options)))
    _guard_value(tx, owner, _PARAMETERS)
    real = owner.real if isinstance(owner, ObjectValue) and owner.real is not None else tx.constant(owner)
    return Const(tx.fold(lambda: inspect.signature(real, **options)))


@handles(inspect.getfullargspec)
def argument_names(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    real = tx.constant(args[0])
    _guard_value(tx, args[0], _PARAMETERS)
    return tx.known(tx.fold(lambda: inspect.getfullargspec(real)))


def _guard_value(tx: Context, value: Value, names: tuple[str, ...]) -> None:
    """The attributes of these names stay, of a function or class of the program, of what functions wrap, and of what an
    instance is called by. A graph break where the trace has changed one, or where the program would be asked."""
    real = value.real if isinstance(value, ObjectValue) else value.value if isinstance(value, Const) else None
    if is_looked_up_by_program(type(real)) or is_looked_up_by_program(type(type(real))):
        raise GraphBreak(NOT_IN_PYTHON, f"{value.describe()} has code of its own for being looked at")
    if isinstance(value, ObjectValue) and value.real is not None:
        tx.attributes.guard_type(value)
        _check_answers_plainly(tx, value)
        _guard_class(tx, value.cls, names)
    elif isinstance(value, Const) and isinstance(value.value, type):
        _guard_class(tx, value.value, names)
    elif isinstance(value, Const) and isinstance(value.value, types.ModuleType):
        raise GraphBreak(DESCRIPTOR, f"what describes {value.describe()} is read")
    elif isinstance(value, Const):
        _guard_function(tx, value.value, names)


_OF_CALLABLES = (
    *("__call__", "__name__", "__code__", "__defaults__", "__kwdefaults__", "__annotations__", "__class__"),
    *("__wrapped__", "__signature__", "__text_signature__", "__partialmethod__", "_partialmethod"),
)
_PLAIN = (
    types.FunctionType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
)


def _check_answers_plainly(tx: Context, value: ObjectValue) -> None:
    """A graph break for an object that cannot be called, which a message shows, or that computes what is read of it."""
    for name in _OF_CALLABLES:
        found = tx.attributes.in_class(value.cls, name)
        if (
            found is not fx_guards.ABSENT
            and not isinstance(found, _PLAIN)
            and has_member(type(found), "__get__")
        ):
            raise GraphBreak(DESCRIPTOR, f"{value.describe()} computes {name}, which is read")
    if tx.attributes.in_class(value.cls, "__call__") is fx_guards.ABSENT:
        raise GraphBreak(DESCRIPTOR, f"what describes {value.describe()} is read, which is not called")


def _guard_class(tx: Context, cls: type, names: tuple[str, ...]) -> None:
    if names == _PARAMETERS:
        for name in _CALLED:
            _guard_function(tx, tx.attributes.in_class(cls, name), names)
        return
    tx.attributes.guard_bases(cls)
    for base in cls.__mro__:
        for name in names if not _is_of_library(base) else ():
            if name in base.__dict__:
                _guard_attribute(tx, AttrSource(known_object(base), name), base.__dict__[name])
            else:
                tx.guards.absent(ProxiedSource(AttrSource(known_object(base), "__dict__")), name)


def _guard_function(tx: Context, real: Any, names: tuple[str, ...]) -> None:
    while isinstance(real, types.FunctionType):
        _check_unchanged(tx, real, "__annotations__" in names)
        if _is_of_library(real):
            return
        source = known_object(real)
        for name in names:
            _guard_attribute(tx, AttrSource(source, name), getattr(real, name))
        space = vars(real)
        for name in _IN_DICTIONARY:
            if name in space:
                tx.guards.is_object(ItemSource(InstanceDictSource(source), name), space[name])
            else:
                tx.guards.absent(InstanceDictSource(source), name)
        real = space.get("__wrapped__")


def _guard_attribute(tx: Context, source: Source, found: Any) -> None:
    """An attribute stays the same object, and what it holds if it is a dictionary."""
    tx.guards.is_object(source, found)
    if isinstance(found, dict):
        tx.guards.keys(source, found)
        for key, value in found.items():
            tx.guards.is_object(ItemSource(source, key), value)


def _is_of_library(real: Any) -> bool:
    return is_function_of_library(real)


def _check_unchanged(tx: Context, function: types.FunctionType, reads_annotations: bool) -> None:
    spaces = [vars(function), *([function.__annotations__] if reads_annotations else [])]
    for space in spaces:
        known = tx.wrapping.value_of(space)
        if known is not None and tx.effects.has_changed(known):
            raise GraphBreak(
                DESCRIPTOR, f"what describes {function.__qualname__} is read, and has been changed"
            )


@handles(sys._getframe)
def frame_of_caller(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A frame that runs. Those that the trace does not have (torch's around a hook, those around the compiled function)
    are Python's to find."""
    depth = max(0, tx.index(args[0])) if args else 0
    around = tx.frames[-1:]
    for frame in reversed(tx.frames[:-1]):
        if not _called_right_from(frame, around[-1]):
            break
        around.append(frame)
    if depth >= len(around) or kwargs:
        is_right_here = len(tx.frames) == 1 and not tx.resumes.is_resume_function(tx.frames[0].code)
        what = "a frame around the code that is captured is asked for"
        raise GraphBreak(NAMESPACE_ACCESS, what, as_written=not is_right_here)
    found: FrameValue | None = None
    for frame in reversed(around):
        found = frame.shown = frame.shown or FrameValue(frame, found)
    shown: FrameValue = around[depth].shown
    return shown


@handles(sys.setprofile, sys.settrace)
def watching(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A function of the program that is called for each call and line, in what follows too."""
    raise GraphBreak(OUTSIDE_WORLD, "calls or lines are watched from here on, or no longer", as_written=True)


def _called_right_from(frame: Frame, callee: Frame) -> bool:
    """Whether Python has no other frame between the two."""
    step = frame.steps[frame.next - 1]
    function = frame.callee
    while isinstance(function, (MethodValue, PartialValue)):
        function = function.function
    if isinstance(function, FunctionValue):
        return step.opname.startswith("CALL") and function.code is callee.code
    real = function.value if isinstance(function, Const) else None
    return (
        step.opname.startswith("CALL")
        and isinstance(real, types.FunctionType)
        and real.__code__ is callee.code
    )
