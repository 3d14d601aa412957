"""Answers about a class, worked out once for each class and forgotten when it dies."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def once_per_class(function: Callable[[type], T]) -> Callable[[type], T]:
    """``function``, asked once for each class; a metaclass's ``__eq__`` and ``__hash__`` are not asked."""
    known: dict[int, tuple[weakref.ref[type], T]] = {}

    def answer(cls: type) -> T:
        key = id(cls)
        found = known.get(key)
        if found is None or found[0]() is not cls:

            def forget(dead: weakref.ref[type]) -> None:
                current = known.get(key)
                if current is not None and current[0] is dead:
                    del known[key]

            found = known[key] = (weakref.ref(cls, forget), function(cls))
        return found[1]

    answer.__doc__ = function.__doc__
    return answer
