"""What replacement code does with tracebacks of exceptions: entries for frames that were captured, and real ones."""

from __future__ import annotations

import types
from typing import Any

from dynamo_capture import _eval_frame

_TRACEBACK: Any = vars(BaseException)["__traceback__"]


def new_traceback(
    following: Any, code: types.CodeType, namespace: dict[str, Any], offset: int, line: int
) -> Any:
    """An entry of a traceback, for a frame that was left while it was captured."""
    frame = _eval_frame.traceback_frame(code, namespace, offset, line)
    return types.TracebackType(following, frame, offset, line)


def traceback_of(error: BaseException) -> Any:
    """``error.__traceback__``, past what its class makes of attributes."""
    return _TRACEBACK.__get__(error)


def set_traceback(error: BaseException, found: Any) -> None:
    """``error.__traceback__ = found``, in the same way."""
    _TRACEBACK.__set__(error, found)


def show_frame(error: BaseException, found: Any) -> None:
    """``error.__traceback__ = found``, where the caller has just raised and caught ``error``: if the first entry of
    ``found`` stands for the caller's frame, it shows the frame itself, which holds the program's variables."""
    own = traceback_of(error)
    if found is not None and own is not None and _is_same_place(found.tb_frame.f_code, own.tb_frame.f_code):
        found = types.TracebackType(found.tb_next, own.tb_frame, own.tb_lasti, found.tb_lineno)
    set_traceback(error, found)


def _is_same_place(one: types.CodeType, other: types.CodeType) -> bool:
    """Whether one is the code of a function, and the other that of a part of it."""
    return (one.co_filename, one.co_firstlineno, one.co_name) == (
        other.co_filename,
        other.co_firstlineno,
        other.co_name,
    )
