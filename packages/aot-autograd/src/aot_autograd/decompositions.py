"""Operators that the caller wants traced as other operators: a table of programs, passed in.

They replace an operator where it is recorded, below autograd: derivatives stay torch's, and operators that the
derivative formulas call are replaced as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from torch._ops import OpOverload

from aot_autograd.recording.trace import Handler, Trace, TraceMode

Decompositions: TypeAlias = Mapping[OpOverload, Callable[..., Any]]
"""For an operator a function of its arguments, which computes the same of other operators (or writes to its arguments,
if the operator does). It may answer ``NotImplemented`` for a call that is to stay as it is."""

NOTHING: Final[Decompositions] = MappingProxyType({})
"""The table without entries."""


def decomposing(handle: Handler, table: Decompositions) -> Handler:
    """``handle``, after operators in ``table`` were taken apart; inside of its own program an operator is itself."""
    if not table:
        return handle
    within: set[OpOverload] = set()

    def handler(trace: Trace, op: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        program = table.get(op)
        if program is not None and op not in within:
            within.add(op)
            try:
                with TraceMode(trace, handler):
                    result = program(*args, **kwargs)
            finally:
                within.discard(op)
            if result is not NotImplemented:
                return result
        return handle(trace, op, args, kwargs)

    return handler
