"""What a call prints and logs, in one text in the order of the calls."""

from __future__ import annotations

import contextlib
import io
import logging
import sys
from collections.abc import Iterator

from fx_interface.python_runtime.own_builtins import STACK_PACKAGES


@contextlib.contextmanager
def printed_and_logged() -> Iterator[io.StringIO]:
    """What is printed, printed to stderr and logged meanwhile, but for what the compiler itself logs."""
    output = io.StringIO()
    handler = _Printing()
    logging.getLogger().addHandler(handler)
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(_Errors()):
            yield output
    finally:
        logging.getLogger().removeHandler(handler)


class _Errors(io.TextIOBase):
    """Goes where output goes, marked."""

    def write(self, text: str) -> int:
        sys.stdout.write(f"<stderr>{text}")
        return len(text)


class _Printing(logging.Handler):
    """Prints the records of the program."""

    def emit(self, record: logging.LogRecord) -> None:
        if record.name.partition(".")[0] not in STACK_PACKAGES:
            sys.stdout.write(f"<{record.levelname} {record.name}>{record.getMessage()}\n")
