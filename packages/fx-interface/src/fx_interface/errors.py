"""Errors with a stable code, what happened, where in the user's code, and what to do."""

from __future__ import annotations

from typing import Final

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserLocation:
    """A line of the user's program: file, 1-based line and the function's qualified name."""

    filename: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        """Text that can be written as UTF-8, whatever bytes the file's name has (PEP 383)."""
        suffix = f" in {self.function}" if self.function else ""
        text = f"{self.filename}:{self.line}{suffix}"
        return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


class StackError(Exception):
    """Base of every error that a package of the stack raises on purpose.

    ``code`` is stable across releases (two or three letters of the package, then a number), so that it can be searched
    for; ``what`` says what happened, ``where`` the user's line if one is known, ``action`` what to do about it.
    """

    def __init__(self, code: str, what: str, *, where: UserLocation | None = None, action: str = "") -> None:
        self.code = code
        self.what = what
        self.where = where
        self.action = action
        super().__init__(code, what)

    def __str__(self) -> str:
        lines = [f"[{self.code}] {self.what}"]
        if self.where is not None:
            lines.append(f"  at {self.where}")
        if self.action:
            lines.append(f"  to do: {self.action}")
        return "\n".join(lines)


class InvalidGraphError(StackError):
    """A graph breaks a rule of its dialect (codes FXI1xx)."""


class IncompatibleInterfaceError(StackError):
    """A plug-in was written for another version of the interface (code FXI201)."""


class UnknownBackendError(StackError, RuntimeError):
    """No backend of that name is known (code FXI202). A ``RuntimeError``, as torch's is."""


class PluginLoadError(StackError):
    """A registered plug-in cannot be loaded (FXI203), or two claim one name (FXI204)."""


class CorruptArtifactError(StackError):
    """A stored graph or artifact cannot be read back (code FXI301)."""


class UnsupportedProgramError(StackError):
    """A stage cannot handle this program; the caller must report it and let eager run it."""


class UnbackedSymbolError(UnsupportedProgramError):
    """A decision needs the value of a size that is only known when the program runs (code FXI401)."""


OTHER_LAYOUT: Final = "[IND301]"
"""How the message of a ValueError begins by which a compiled graph refuses a call: see ``refuses_layout``."""


def refuses_layout(error: BaseException) -> bool:
    """Whether a compiled graph has refused a call, before it did anything, because a tensor has other sizes or strides
    than those it was compiled for. The caller then runs the program that the graph was compiled from."""
    return isinstance(error, ValueError) and str(error).startswith(OTHER_LAYOUT)
