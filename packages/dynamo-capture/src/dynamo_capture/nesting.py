"""How deep a graph break goes: which of the inlined frames are left one by one, each to be resumed where it stood.

A break passes through the frames of the calls that were inlined; each leaves in ``GraphBreak.trail`` where it stood.
``deepest`` follows the trail from the outside for as long as a frame's call gives exactly what the next frame returns
(or the instance that the next frame initializes), and comes to the innermost frame of the program's own code.
The trace is then run once more and stopped at that place, before the instruction.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch

from dynamo_capture.values import Const, FunctionValue, MethodValue, ObjectValue, PartialValue, Value

if TYPE_CHECKING:
    from types import CodeType

    from dynamo_capture.frame import Frame
    from dynamo_capture.prepared import Step


class Stop(NamedTuple):
    """A place in a trace: in the ``run``-th run of an inlined frame, after so many ``steps``."""

    run: int
    steps: int


class Stopped(BaseException):
    """The signal that the trace has come to its ``Stop``; the frames are as they are there, outermost first."""

    def __init__(self, frames: list[Frame]) -> None:
        self.frames = frames


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a frame stood when a break left it."""

    frame: Frame
    step: Step
    stop: Stop


_CALLS = frozenset({"CALL", "CALL_KW", "CALL_FUNCTION_EX"})


def deepest(
    root: Frame, step: Step, trail: list[Standing], is_own: Callable[[Frame], bool]
) -> Standing | None:
    """The innermost frame at which the graph can end, or None: the outermost frame ``root``, in ``step``.

    ``trail`` is innermost first; ``is_own`` says whether a frame is the program's, not a library's.
    """
    caller, calling = root, step
    found: Standing | None = None
    for standing in reversed(trail):
        frame = standing.frame
        if root.exceptions or frame.exceptions or frame.is_generator:
            break
        if calling.opname not in _CALLS or not _is_direct(caller, frame):
            break
        caller, calling = frame, standing.step
        if is_own(frame):
            found = standing
    return found


def _is_direct(caller: Frame, frame: Frame) -> bool:
    if caller.callee is None:
        return False
    codes = direct_codes(caller.callee)
    if initializes(caller):
        codes = _codes_of(getattr(caller.callee.as_constant(), "__init__", None))
    return any(code is frame.code for code in codes)


def initializes(caller: Frame) -> bool:
    """Whether the call in which ``caller`` is makes an instance, ``caller.made``."""
    return isinstance(caller.callee, Const) and isinstance(caller.callee.value, type)


def direct_codes(function: Value) -> list[CodeType]:
    """The code of which a frame runs when ``function`` is called, with the call's result as its own."""
    match function:
        case FunctionValue():
            return [function.code]
        case MethodValue() | PartialValue():
            return direct_codes(function.function)
        case Const():
            return _codes_of(function.value)
        case ObjectValue():
            named = ("__call__", "forward") if issubclass(function.cls, torch.nn.Module) else ("__call__",)
            return [code for name in named for code in _codes_of(getattr(function.cls, name, None))]
    return []


def _codes_of(function: object) -> list[CodeType]:
    return [function.__code__] if isinstance(function, types.FunctionType) else []
