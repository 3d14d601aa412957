"""What the compiler logs as errors: defects of its own that the program survives, and what FXSTACK_CHECK=1 finds."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

_LOGGERS = ("fxstack", "dynamo_capture", "aot_autograd", "inductor_codegen")
LONGEST = 1000
"""Characters of one message."""
_FOLDERS = re.compile(
    r"(?<![\w.])/(?:[\w.+-]+/)*site-packages/|(?<![\w.])/(?:[\w.+-]+/)+(?!.*site-packages/)"
)


class _Noting(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(f"logged: {without_folders(record.getMessage())[:LONGEST]}")


def without_folders(text: str) -> str:
    """``text`` with each path as below ``site-packages``, or as the name of its file: results tell of no machine."""
    return _FOLDERS.sub("", text)


def line_of(error: BaseException, longest: int) -> str:
    """An exception's type and message on one line, without folders, cut after ``longest`` characters."""
    return f"{type(error).__name__}: {without_folders(' '.join(str(error).split()))[:longest]}".rstrip()


@contextmanager
def mistakes() -> Iterator[list[str]]:
    """The messages, as they come."""
    handler = _Noting()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield handler.found
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
