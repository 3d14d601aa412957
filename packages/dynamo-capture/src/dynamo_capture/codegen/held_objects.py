"""Which locals are passed on although nothing reads them again: those that alone may keep an object alive.

In eager a local holds its object until the function ends, or until it is given another one. A weak reference tells, or
a finalizer (of a temporary folder, say). So what a resume function takes includes the locals that hold

- an object of before the graph that only locals of the frame are known to hold;
- an object that the instruction where the graph ends is given, `weakref.ref(box)`: it is made there;
- a generator that runs code of the program when it is dropped.

Tensors are not among them: one that nothing reads any more is freed where a graph ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from dynamo_capture.frame import GeneratorValue
from dynamo_capture.prepared import prepare
from dynamo_capture.values import FunctionValue, Lazy, ObjectValue, SetValue, Value
from fx_interface.source import AttrSource, ItemSource, LocalSource, Source

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame


@dataclass(frozen=True, slots=True)
class FrameLocals:
    """Of a frame's locals at a graph break: the ``unbound`` ones, and those to ``keep`` though nothing reads them."""

    unbound: tuple[str, ...]
    keep: tuple[str, ...]


def frame_locals(frame: Frame, given: Sequence[Value]) -> FrameLocals:
    """A frame's locals; ``given`` is the stack of the innermost frame, before the instruction that runs in Python."""
    variables = frame.variables
    names = prepare(frame.code).body.varnames
    return FrameLocals(
        unbound=unbound_locals(frame),
        keep=tuple(name for name in names if name in variables and _is_held(variables[name], given)),
    )


def unbound_locals(frame: Frame) -> tuple[str, ...]:
    """The frame's locals that hold no value."""
    return tuple(name for name in prepare(frame.code).body.varnames if name not in frame.variables)


def _is_held(value: Value, given: Collection[Value]) -> bool:
    if isinstance(value, Lazy):
        return _only_frames_hold(value.source) and _may_be_watched(value.python_type())
    if isinstance(value, GeneratorValue):
        return not value.ends_by_itself
    if not isinstance(value, (ObjectValue, FunctionValue, SetValue)):
        return False
    if not _may_be_watched(value.python_type()):
        return False
    return _only_frames_hold(value.source) or any(value is other for other in given)


def _only_frames_hold(source: Source | None) -> bool:
    """Whether it reads a local of the frame, or what a frame that was left in the middle takes (``Suspended.args``)."""
    match source:
        case ItemSource(AttrSource(parent, "args")):
            return _only_frames_hold(parent)
        case LocalSource():
            return True
    return False


def _may_be_watched(cls: type) -> bool:
    return cls.__weakrefoffset__ != 0 and not issubclass(cls, torch.Tensor)
