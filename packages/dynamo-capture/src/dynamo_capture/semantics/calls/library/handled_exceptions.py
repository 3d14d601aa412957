"""The exception that is being handled, and where it has been: ``sys.exc_info``, the module ``traceback``."""

from __future__ import annotations

import sys
import traceback
import types

from dynamo_capture.foundation.break_kinds import NAMESPACE_ACCESS
from dynamo_capture.foundation.errors import HANDLED, GraphBreak
from dynamo_capture.frames import tracebacks
from dynamo_capture.runtime import suspension
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import NONE, Const, TupleValue, Value, is_none
from dynamo_capture.values.base import Context
from dynamo_capture.values.traceback import TracebackValue


@handles(sys.exception)
def current_exception(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What the trace handles, or else what whoever called the compiled function handles."""
    handled = tx.handled()
    if handled is not None:
        return handled
    source = CallSource(known_object(sys.exception), (), ())
    return tx.wrap(HANDLED.error, source)  # the compiler may be handling one of its own by now


@handles(sys.exc_info)
def exception_info(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    handled = current_exception(tx, [], {})
    if is_none(handled):
        return TupleValue([NONE, NONE, NONE])
    return TupleValue([Const(handled.python_type()), handled, tracebacks.of(tx, handled)])


@handles(suspension.leave)
def leave(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The frames of that module are not noted while they are traced."""
    return NONE


_LOOK_AT_FRAMES = [
    function
    for name in traceback.__all__
    if isinstance(function := getattr(traceback, name), (types.FunctionType, type))
    and function is not traceback.clear_frames
]


@handles(*_LOOK_AT_FRAMES, traceback.StackSummary.extract, traceback.TracebackException.from_exception)
def looks_at_frames(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(NAMESPACE_ACCESS, "the module traceback looks at the frames of the program")


@handles(traceback.clear_frames)
def clear_frames(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Frames that were left while the program is captured hold nothing any more."""
    given = [tx.force(value) for value in (*args, *kwargs.values())]
    if len(given) == 1 and (isinstance(given[0], TracebackValue) or is_none(given[0])):
        return NONE
    return looks_at_frames(tx, args, kwargs)
