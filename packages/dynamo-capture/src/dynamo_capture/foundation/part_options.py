"""Other options for a part of the program: what is captured while it runs, in this thread."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_ALLOWED = {"dynamic": (True, False, None), "error_on_graph_break": (True, False)}
"""The options that a part may have of its own, and their values."""


class _Thread(threading.local):
    """What holds in a thread now."""

    def __init__(self) -> None:
        self.options: dict[str, Any] = {}


_THREAD = _Thread()


def part_option(name: str, otherwise: Any) -> Any:
    """The option as the innermost part that has one states it."""
    return _THREAD.options.get(name, otherwise)


def part_options_kept() -> Callable[[], None]:
    """What puts this thread's options back as they are now; it may be called twice."""
    return functools.partial(setattr, _THREAD, "options", _THREAD.options)


class patch_options:
    """Options for what is captured inside; a context manager, and a decorator.

    ``dynamic``: as for ``optimize``; it decides about what is read there first. ``error_on_graph_break``: a graph break
    inside is a CaptureError, or (False) is none although one around says so. ``fullgraph=True`` of the whole goes
    first. In plain Python it changes nothing. TypeError for another option, ValueError for another value.
    """

    def __init__(self, **changes: Any) -> None:
        for name, value in changes.items():
            if name not in _ALLOWED:
                raise TypeError(
                    f"no option {name!r} for a part of the program; there are {', '.join(_ALLOWED)}"
                )
            if not any(value is one for one in _ALLOWED[name]):
                raise ValueError(f"{name}={value!r}: it is one of {_ALLOWED[name]}")
        self.changes = changes
        self._before: list[dict[str, Any]] = []

    def __enter__(self) -> patch_options:
        self._before.append(_THREAD.options)
        _THREAD.options = {**_THREAD.options, **self.changes}
        return self

    def __exit__(self, *raised: object) -> None:
        _THREAD.options = self._before.pop()

    def __call__(self, fn: F) -> F:
        """``fn`` with these options while it runs."""
        changes = self.changes

        @functools.wraps(fn)
        def with_options(*args: Any, **kwargs: Any) -> Any:
            with patch_options(**changes):
                return fn(*args, **kwargs)

        return with_options  # type: ignore[return-value]


def error_on_graph_break(error_on_graph_break: bool) -> patch_options:
    """``patch_options(error_on_graph_break=...)``, by torch's name for it."""
    return patch_options(error_on_graph_break=error_on_graph_break)


def options_of(changes: tuple[tuple[str, Any], ...]) -> patch_options:
    """A manager that replacement code makes again."""
    return patch_options(**dict(changes))
