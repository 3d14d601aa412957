"""Locals that keep objects alive: which are passed on although nothing reads them again, and in which order they die.

In eager a local holds its object until the function ends, or until it is given another one. A weak reference tells, or
a finalizer (of a temporary folder, say). So what a resume function takes includes the locals that hold

- an object of before the graph that only locals of the frame are known to hold;
- an object that the instruction where the graph ends is given, `weakref.ref(box)`: it is made there;
- a generator that runs code of the program when it is dropped.

Tensors are not among them: one that nothing reads any more is freed where a graph ends.
"""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterator, Sequence

import torch

from dynamo_capture.bytecode.liveness import SHOW_VARIABLES
from dynamo_capture.foundation.class_members import has_member, has_weak_references, is_one_of
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.frames.steps import prepare
from dynamo_capture.sources.frame_locals import is_frame_local, local_root
from dynamo_capture.values import (
    CellValue,
    DictValue,
    FunctionValue,
    Lazy,
    ListValue,
    ObjectValue,
    SetValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.opaque import OpaqueValue
from fx_interface.python_runtime.quick_dataclasses import dataclass

_OBJECTS = (
    Lazy,
    ObjectValue,
    OpaqueValue,
    FunctionValue,
    SetValue,
    ListValue,
    DictValue,
    TupleValue,
    CellValue,
)
_CONTAINERS = (list, tuple, dict)
_DEPTH = 4
"""How far containers are looked into that hold each other."""


@dataclass(frozen=True, slots=True)
class FrameLocals:
    """Of a frame's locals at a graph break: the ``unbound`` ones, and those to ``keep`` though nothing reads them."""

    unbound: tuple[str, ...]
    keep: tuple[str, ...]


def frame_locals(frame: Frame, given: Sequence[Value]) -> FrameLocals:
    """A frame's locals; ``given`` is the stack of the innermost frame, before the instruction that runs in Python."""
    variables = frame.variables
    names = prepare(frame.code).body.varnames
    all_of = not SHOW_VARIABLES.isdisjoint(
        frame.code.co_names
    )  # a variable that an `if` gave a value is shown, too
    return FrameLocals(
        unbound=unbound_locals(frame),
        keep=tuple(
            name for name in names if name in variables and (all_of or _is_held(variables[name], given))
        ),
    )


def unbound_locals(frame: Frame) -> tuple[str, ...]:
    """The frame's locals that hold no value."""
    return tuple(name for name in prepare(frame.code).body.varnames if name not in frame.variables)


def _is_held(value: Value, given: Collection[Value], depth: int = 0) -> bool:
    """Whether it is such an object, or a container that has one inside."""
    if isinstance(value, GeneratorValue):
        return not value.ends_by_itself
    if not isinstance(value, _OBJECTS):
        return False
    kind = type(value.real) if isinstance(value, OpaqueValue) else value.python_type()
    source = value.source
    if is_frame_local(source):
        return _may_be_watched(kind) or is_one_of(kind, _CONTAINERS)
    if any(value is other for other in given):
        return _may_be_watched(kind)
    return (
        source is None and depth < _DEPTH and any(_is_held(part, given, depth + 1) for part in _parts(value))
    )


def _parts(value: Value) -> Iterator[Value]:
    """What a container or an object that the trace has made holds."""
    match value:
        case TupleValue() | ListValue():
            yield from value.kinds
        case SetValue():
            yield from value.items.values()
        case DictValue(entries=dict() as entries):
            for key, item in entries.values():
                yield from (key, item)
            yield from value.attrs.values()
        case ObjectValue():
            yield from (part for part in value.attrs.values() if part is not None)
        case CellValue(content=Value() as content):
            yield content
        case FunctionValue():
            yield from value.closure


def _may_be_watched(cls: type) -> bool:
    """Whether the program may see when an object dies; a weak reference that dies first does not call its callback."""
    if issubclass(cls, weakref.ref) or has_member(cls, "__del__"):
        return True
    return has_weak_references(cls) and not issubclass(cls, torch.Tensor)


def dying_in_turn(tx: Context, frame: Frame, arguments: Sequence[str]) -> list[str]:
    """Arguments that a resume function must drop one by one before it returns, so that what they hold dies in the order
    of the variables that the program sees.

    A frame clears its variables in the order of their places. The argument ``.stack0`` of a resume function, say,
    stands behind all others, and holds what the program has in a variable before them, or has used up: the result of
    ``ref()``. First go those that no variable holds, then those that one holds, in the order of the last that does.
    The arguments of other functions are held by their callers as well.
    """
    if not tx.resumes.is_resume_function(frame.code):
        return []
    names = tx.resumes.original(frame.code).co_varnames
    held = [
        found for name in names if name in frame.variables for found in _arguments_of(frame.variables[name])
    ]
    last_first = [name for name in reversed(held) if name in arguments]
    in_turn = list(dict.fromkeys(last_first))[::-1]
    if not in_turn:
        return []
    in_turn = [*(name for name in arguments if name not in in_turn), *in_turn]
    return in_turn if in_turn != list(arguments) else []


def _arguments_of(value: Value, depth: int = 0) -> Iterator[str]:
    """The arguments that have this object, or one that it holds, if it is an object of before the graph."""
    if isinstance(value, TensorValue):
        return
    if value.source is None:
        if depth < _DEPTH:
            for part in _parts(value):
                yield from _arguments_of(part, depth + 1)
        return
    name = local_root(value.source)
    if name is not None:
        yield name
