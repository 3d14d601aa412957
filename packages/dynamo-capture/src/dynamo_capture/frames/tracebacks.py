"""Which frames an exception has come through, as the interpreter notes it: one entry for each frame, innermost last.

def f(x):
    try:
        g(x)                 an entry for f, at this line
    except ValueError as e:
        raise                no further entry: the exception goes on as it is
    ...
def g(x):
    raise ValueError         an entry for g, at this line
"""

from __future__ import annotations

import os
import types
from typing import Any, Protocol

import dynamo_capture
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import NONE, ObjectValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.traceback import TracebackValue

_NAME = "__traceback__"
_OWN_FILES = os.path.dirname(dynamo_capture.__file__) + os.sep
_GOES_ON = frozenset({"RERAISE", "CLEANUP_THROW", "END_ASYNC_FOR"})
"""Instructions that let an exception go on that the frame has had before."""


class Raising(Protocol):
    """The frame that an exception comes up in."""

    tx: Context
    code: types.CodeType
    globals: Any


def note(frame: Raising, step: Step, raised: Any) -> None:
    """``raised`` has come up in ``frame`` at ``step``: it is caught there, or leaves the frame."""
    if not isinstance(raised, ObjectValue) or step.opname in _GOES_ON:
        return
    if step.opname == "RAISE_VARARGS" and step.arg == 0 and raised is frame.tx.handled():
        return
    if frame.code.co_filename.startswith(_OWN_FILES):  # what stands for a function in C, which has no frame
        return
    line = step.line if step.line is not None else frame.code.co_firstlineno
    entry = TracebackValue(of(frame.tx, raised), frame.code, frame.globals.real, step.offset, line)
    raised.attrs[_NAME] = entry
    frame.tx.effects.attribute(raised, _NAME)


def keep_frames(made: ObjectValue, error: BaseException) -> None:
    """``made`` stands for an exception that came up in a library that the trace has called, below its own frames."""
    found: list[types.TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        is_own = entry.tb_frame.f_code.co_filename.startswith(_OWN_FILES)
        found = [] if is_own else [*found, entry]
        entry = entry.tb_next
    following: Value = NONE
    for entry in reversed(found):
        frame = entry.tb_frame
        following = TracebackValue(following, frame.f_code, frame.f_globals, entry.tb_lasti, entry.tb_lineno)
    if found:
        made.attrs[_NAME] = following


def of(tx: Context, exception: Value) -> Value:
    """``exception.__traceback__``, past what its class makes of attributes."""
    if not isinstance(exception, ObjectValue):
        return NONE
    found = exception.attrs.get(_NAME)
    if found is not None:
        return found
    return tx.attributes.of_exception(exception, _NAME) if exception.real is not None else NONE
