"""What a frame drops: an object whose death the program can see dies at its instruction, in Python.

A resume function has the only reference to what its frame held (``bytecode/splice.py``), so that what it pops or
overwrites may die there: a generator that a loop leaves by ``break`` runs its ``finally`` blocks, an object its
``__del__``, and weak references tell.
"""

from __future__ import annotations

import weakref
from types import FunctionType, GeneratorType

import torch

from dynamo_capture.bytecode.resume.analysis import UNBOUND
from dynamo_capture.foundation.break_kinds import NOT_RECONSTRUCTIBLE
from dynamo_capture.foundation.class_members import has_member, has_weak_references, name_of
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.sources.frame_locals import is_frame_local
from dynamo_capture.values import Lazy, ObjectValue, TensorValue, Value
from dynamo_capture.values.opaque import OpaqueValue
from fx_guards import is_of_program
from fx_interface.source import LocalSource, Source

_HELD = (ObjectValue, OpaqueValue, TensorValue, Lazy)


def check_dropped(frame: Frame, value: Value | None) -> None:
    """End the graph before an instruction that drops an object of the frame's, if something tells when it dies."""
    _note_holder(frame, value)
    if not isinstance(value, _HELD):
        return
    if value.source is None or not is_frame_local(value.source):
        return
    real = value.real
    cls = type(real) if isinstance(value, OpaqueValue) else value.python_type()
    if real is None or real is UNBOUND or issubclass(cls, FunctionType):
        # guards refer weakly to what stands for no value, caches to functions
        return
    if issubclass(cls, torch.Tensor) and not has_member(cls, "__del__"):
        _check_tensor(frame, real, value.source)
        return
    held = [getattr(other, "source", None) for other in (*frame.stack, *frame.variables.values())]
    if held.count(value.source) > 1:
        return
    if has_weak_references(cls) or cls is GeneratorType or has_member(cls, "__del__"):
        frame.tx.guards.type_is(value.source, cls)
    if cls is GeneratorType or has_member(cls, "__del__"):
        raise GraphBreak(
            NOT_RECONSTRUCTIBLE, f"an object of {name_of(cls)}, which has a finalizer, is dropped"
        )
    if not has_weak_references(cls):
        return
    known = any(map(is_of_program, weakref.getweakrefs(real)))
    if known or value.source in frame.tx.weakly_referenced:
        raise GraphBreak(
            NOT_RECONSTRUCTIBLE, f"an object of {name_of(cls)}, which is weakly referenced, is dropped"
        )
    frame.tx.guards.unreferenced(value.source)


def _note_holder(frame: Frame, value: Value | None) -> None:
    """Note that something is dropped that may hold others, which die with it: what is weakly referenced is then asked
    for in Python (``WeakReference.call``)."""
    source, real = getattr(value, "source", None), getattr(value, "real", None)
    if (
        source is None
        or real is None
        or not is_frame_local(source)
        or not _only_the_frame_holds(frame, source)
    ):
        return
    cls = type(real)  # not looked up in a set: a metaclass may have a ``__hash__``
    if not (any(cls is one for one in _HOLD_NOTHING) or (cls is torch.Tensor and not real.__dict__)):
        frame.tx.has_dropped_holder = True


_HOLD_NOTHING = (bool, int, float, complex, str, bytes)


def _only_the_frame_holds(frame: Frame, source: Source) -> bool:
    """Callers hold the arguments of a function, and of what it calls: only what it was left with at a graph break it
    holds alone."""
    return type(source) is not LocalSource or frame.tx.resumes.is_resume_function(frame.tx.frames[0].code)


def _check_tensor(frame: Frame, real: torch.Tensor, source: Source) -> None:
    """The same for a tensor that a plain weak reference knows."""
    if not _only_the_frame_holds(frame, source):
        return
    held = [getattr(other, "source", None) for other in (*frame.stack, *frame.variables.values())]
    if held.count(source) > 1:
        return
    if any(type(one) is weakref.ref and is_of_program(one) for one in weakref.getweakrefs(real)):
        raise GraphBreak(NOT_RECONSTRUCTIBLE, "a tensor that is weakly referenced is dropped")
    frame.tx.guards.unreferenced(source, plain_only=True)


def check_returned(frame: Frame, result: Value) -> None:
    """The same where a called function returns: what it was left with at a graph break dies then, but for the result.
    The frame that is compiled drops its own when it returns."""
    if len(frame.tx.frames) > 1:
        for value in frame.variables.values():
            if isinstance(value, _HELD) and value is not result and type(value.source) is not LocalSource:
                check_dropped(frame, value)


def check_before_generators(frame: Frame, result: Value) -> None:
    """The same for the frame that is compiled, where a generator that the graph has begun would be closed before an
    object of a variable before it dies: Python clears variables in their order."""
    pending = {id(value) for value in frame.tx.generators if not value.ends_by_itself}
    names = frame.tx.resumes.original(frame.code).co_varnames
    held = [value for name in names if (value := frame.variables.get(name)) is not None]
    last = max((place for place, value in enumerate(held) if id(value) in pending), default=0)
    for value in held[:last]:
        if value is not result:
            check_dropped(frame, value)
