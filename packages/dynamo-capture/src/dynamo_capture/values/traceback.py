"""Tracebacks of exceptions that are raised while the program is captured.

One entry says where one frame was left, or where it caught the exception. The real entry is made where it is needed:
where an exception outlives the graph, and where the program looks at a frame, which ends the graph.
"""

from __future__ import annotations

import types
from typing import Any

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
