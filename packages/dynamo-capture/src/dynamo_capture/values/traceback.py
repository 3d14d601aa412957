"""Tracebacks of exceptions that are raised while the program is captured, and frames that it looks at.

One entry says where one frame was left, or where it caught the exception. The real entry is made where it is needed:
where an exception outlives the graph, and where the program looks at a frame, which ends the graph.
"""

from __future__ import annotations

import types
from typing import Any, Protocol

from dynamo_capture.foundation.break_kinds import NAMESPACE_ACCESS
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const


class TracebackValue(Value):
    """An entry for a frame of ``code``; ``following``: the next entry, towards where the exception was raised."""

    __slots__ = ("code", "following", "line", "namespace", "offset")
    python_class = types.TracebackType

    def __init__(
        self, following: Value, code: types.CodeType, namespace: dict[str, Any], offset: int, line: int
    ) -> None:
        self.following = following
        self.code = code
        self.namespace = namespace
        self.offset = offset
        self.line = line

    def children(self, tx: Context) -> list[Value]:
        return [self.following]

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        match name:
            case "tb_next":
                return self.following
            case "tb_lineno":
                return Const(self.line)
            case "tb_lasti":
                return Const(self.offset)
            case "tb_frame":  # has variables, and goes on
                raise GraphBreak(NAMESPACE_ACCESS, "the frame of a traceback is asked for", as_written=True)
        return None


class TracedFrame(Protocol):
    """What is read of a frame of the trace."""

    code: types.CodeType
    line: int | None


class FrameValue(Value):
    """``frame`` of the trace, and the one that called it, where Python has no other in between."""

    __slots__ = ("caller", "frame")
    python_class = types.FrameType

    def __init__(self, frame: TracedFrame, caller: FrameValue | None) -> None:
        self.frame = frame
        self.caller = caller

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name == "f_code":
            return tx.known(self.frame.code)
        if name in _READ and self.frame in tx.frames:
            if name == "f_lineno":
                return Const(self.frame.line)
            if name == "f_back" and self.caller is not None:
                return self.caller
        if name in _READ:
            raise GraphBreak(NAMESPACE_ACCESS, f"{name} of a frame is asked for", as_written=True)
        return None


_READ = frozenset({"f_back", "f_builtins", "f_globals", "f_lasti", "f_lineno", "f_locals", "f_trace"})
