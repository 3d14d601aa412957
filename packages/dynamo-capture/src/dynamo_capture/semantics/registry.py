"""The table of callables that the translator knows itself: callable -> function of (trace, args, kwargs)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from dynamo_capture.tables import declaring
from dynamo_capture.values import Value
from dynamo_capture.values.base import Context

Handler = Callable[["Context", list[Value], dict[str, Value]], Value | None]
H = TypeVar("H", bound=Handler)
HANDLERS: dict[Any, Handler] = {}
"""What calling a builtin, class or library function means; None: as without a handler."""

PURE: set[Any] = set()
"""Callables that may be run for real when every argument is known: no effects, result determined by the arguments."""

PURE_MODULES: set[str] = {
    "math",
    "cmath",
    "_operator",
    "operator",
    "fnmatch",
    "string",
    "keyword",
    "zlib",
    "binascii",
    "unicodedata",
    "difflib",
    "textwrap",
    "_json",
    "re",
    "statistics",
}
"""Modules whose functions are all pure."""


LEAST: dict[Any, int] = {}
"""How many arguments a function needs at least that has no signature to say so."""


def handles(*functions: Any, least: int = 0) -> Callable[[H], H]:
    """Declare what calling ``functions`` means; declaring one twice is an error that names both. They need ``least``
    arguments."""
    if least:
        LEAST.update(dict.fromkeys(functions, least))
    return declaring(HANDLERS, *functions)


def handler_of(function: Any) -> Handler | None:
    """The handler of a function or method; None where there is none, as for methods that have no hash."""
    try:
        return HANDLERS.get(function)
    except TypeError:
        return None


def pure(*functions: Any) -> None:
    """Declare callables as pure."""
    PURE.update(functions)
