"""Packages whose frames run compiled code."""

from __future__ import annotations

_RUNTIMES: set[str] = set()


def runs_compiled_code(package: str) -> None:
    """Declare, when a backend's package is imported, that its frames run compiled code: a capture layer captures
    neither them nor what they call. A backward is called by torch's engine, in the middle of the user's program."""
    _RUNTIMES.add(package)


def is_runtime(module: str) -> bool:
    """Whether a module belongs to a package that has been declared so."""
    return module.partition(".")[0] in _RUNTIMES
