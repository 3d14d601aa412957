"""The tables of opcodes, name -> function of (frame, step), and of intrinsic functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

Handler = Callable[..., Any]
OPCODES: dict[str, Handler] = {}
INTRINSICS: dict[str, Handler] = {}
"""The functions behind CALL_INTRINSIC_1 and CALL_INTRINSIC_2, by CPython's name: functions of (trace, values)."""


def opcode(
    *names: str, since: tuple[int, int] = (3, 11), until: tuple[int, int] = (3, 99)
) -> Callable[[Handler], Handler]:
    """Declare the meaning of opcodes for CPython versions ``since`` to ``until``, both included.

    The function returns None to go on, or what the frame's loop gives back. Declaring one twice for the running
    version is an error.
    """

    def register(function: Handler) -> Handler:
        if since <= sys.version_info[:2] <= until:
            for name in names:
                if name in OPCODES:
                    raise ValueError(f"the opcode {name} is declared twice: {OPCODES[name]} and {function}")
                OPCODES[name] = function
        return function

    return register


def intrinsic(name: str) -> Callable[[Handler], Handler]:
    """Declare the meaning of one of the interpreter's intrinsic functions; declaring one twice is an error."""

    def register(function: Handler) -> Handler:
        if name in INTRINSICS:
            raise ValueError(f"{name} is declared twice: {INTRINSICS[name]} and {function}")
        INTRINSICS[name] = function
        return function

    return register
