"""The table of opcodes: one decorated function each, of (frame, instruction)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from dynamo_capture.bytecode.instruction import Instruction

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame

Handler = Callable[["Frame", Instruction], None]

HANDLERS: dict[str, Handler] = {}
"""Every handled opcode by name."""

UNHANDLED: dict[str, str] = {}
"""Every opcode that breaks the graph, with the reason."""


def opcode(*names: str, since: tuple[int, int] = (3, 11)) -> Callable[[Handler], Handler]:
    """Declare what instructions of these names do; ``since`` is the first CPython that has them."""

    def register(function: Handler) -> Handler:
        for name in names:
            if name in HANDLERS:
                raise ValueError(f"opcode {name} is declared twice: {HANDLERS[name].__name__} and {function.__name__}")
            HANDLERS[name] = function
        return function

    return register


def unhandled(reason: str, *names: str) -> None:
    """List opcodes that break the graph."""
    for name in names:
        UNHANDLED[name] = reason
