"""The table of substitutes: original callable -> traceable Python function."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

SUBSTITUTES: dict[Any, Callable[..., Any]] = {}
"""Every substitute by the callable it stands for."""

NAMED: dict[tuple[str, str], Callable[..., Any]] = {}
"""Substitutes by module and name."""


def substitutes(*originals: Any) -> Callable[[F], F]:
    """Declare the decorated function as the traceable meaning of ``originals``; declaring one twice is an error."""

    def register(function: F) -> F:
        for original in originals:
            if original in SUBSTITUTES:
                first = SUBSTITUTES[original]
                raise ValueError(
                    f"{original!r} has two substitutes: {first.__module__}.{first.__qualname__} and "
                    f"{function.__module__}.{function.__qualname__}"
                )
            SUBSTITUTES[original] = function
        return function

    return register


def substitutes_named(module: str, name: str) -> Callable[[F], F]:
    """Declare a substitute for a function of a module that is not imported for this."""

    def register(function: F) -> F:
        NAMED[module, name] = function
        return function

    return register


def substitute_for(original: Any) -> Callable[..., Any] | None:
    """The substitute, or None; unhashable callables have none."""
    if type(original) is FunctionType:
        named = NAMED.get((original.__module__, original.__qualname__))
        if named is not None:
            return named
    try:
        return SUBSTITUTES.get(original)
    except TypeError:
        return None
