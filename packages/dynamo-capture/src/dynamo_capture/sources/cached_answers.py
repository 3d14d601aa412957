"""What a function with a cache has kept for a tensor: asked only where there is an answer, so that nothing runs."""

from __future__ import annotations

import gc
from collections.abc import Hashable
from typing import Any, Final

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import DerivedSource

NO_ANSWER: Final = object()
"""Stands for what a cache does not hold."""


def caches_of(function: Any) -> list[dict[Any, Any]]:
    """The tables of a function with a cache."""
    return [one for one in gc.get_referents(function) if type(one) is dict and one is not vars(function)]


def is_answered(function: Any, given: tuple[Any, ...]) -> bool:
    """Whether a function with a cache has an answer for these arguments, so that asking it runs nothing."""
    key = given[0] if len(given) == 1 and type(given[0]) in (int, str) else given
    return any(key in cache for cache in caches_of(function))


@dataclass(frozen=True, slots=True)
class KeptAnswerSource(DerivedSource):
    """What ``function(*arguments)`` has given for a tensor, the argument at ``place``."""

    form = "{0.function.__qualname__}({0.parent})"
    function: Any
    arguments: tuple[Hashable, ...]
    place: int

    def step(self, value: Any) -> Any:
        given = (*self.arguments[: self.place], value, *self.arguments[self.place + 1 :])
        known = any(given in cache for cache in caches_of(self.function))
        return self.function(*given) if known else NO_ANSWER
