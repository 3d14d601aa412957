"""A part of what a function with a cache gives, as the cache has it."""

from __future__ import annotations

from typing import Any

from dynamo_capture.values.base import Context, Value


class CachedPart(Value):
    """``function(*args, **kwargs)[step][step]...``: handed back by the call, which gives the cache's own object."""

    __slots__ = ("args", "function", "kwargs", "steps")

    def __init__(
        self, function: Any, args: list[Value], kwargs: dict[str, Value], steps: tuple[Any, ...]
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.steps = steps

    def inside(self, step: Any) -> CachedPart:
        """What this part has under an index or a key."""
        return CachedPart(self.function, self.args, self.kwargs, (*self.steps, step))

    def children(self, tx: Context) -> list[Value]:
        return [*self.args, *self.kwargs.values()]
