"""Tables that declarations fill, by decorators, where each thing is: declaring one twice is an error; and asking those
who may answer in a declared order."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


def declaring(table: dict[Any, Any], *keys: Any) -> Callable[[T], T]:
    """A decorator that puts a function into the table under each key; the error of a second one names both."""

    def declare(function: T) -> T:
        for key in dict.fromkeys(keys):
            if key in table:
                raise ValueError(f"{key!r} is declared twice: {_place(table[key])} and {_place(function)}")
            table[key] = function
        return function

    return declare


def first_answer(asked: Iterable[Callable[..., T | None]], *given: Any) -> T | None:
    """What the first of ``asked`` that does not decline by None makes of what is given."""
    for each in asked:
        answer = each(*given)
        if answer is not None:
            return answer
    return None


def _place(function: Any) -> str:
    return f"{function.__module__}.{getattr(function, '__qualname__', function)}"
