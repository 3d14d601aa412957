"""The tables of opcodes, name -> function of (frame, step), and of intrinsic functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from dynamo_capture.tables import declaring

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

    is_running = since <= sys.version_info[:2] <= until
    return declaring(OPCODES, *(names if is_running else ()))


def intrinsic(name: str) -> Callable[[Handler], Handler]:
    """Declare the meaning of one of the interpreter's intrinsic functions; declaring one twice is an error."""
    return declaring(INTRINSICS, name)
