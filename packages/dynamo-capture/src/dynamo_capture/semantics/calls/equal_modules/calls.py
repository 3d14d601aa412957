"""Calls of equal modules at one place of a frame: the third is recorded, and the next ones repeat it.

    for layer in self.layers:     # 1, 2 traced; 3 traced and recorded; 4, 5, ... repeated
        x = layer(x, mask)

docs/decisions/0141 says why nobody can tell. What records and repeats is loaded at the first third call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dynamo_capture.semantics.calls.equal_modules.places import Place
from dynamo_capture.values import ObjectValue, Value
from dynamo_capture.values.base import Context

if TYPE_CHECKING:
    from dynamo_capture.semantics.calls.equal_modules.repeating import Repeater

_TRACED = 2
"""So many calls come first, in which what all layers share is read."""


class EqualCalls:
    """The calls of modules of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._places: dict[tuple[Any, ...], Place] = {}
        self._repeater: Repeater | None = None

    def check_changes(self) -> None:
        """CapturedAnew where an object is changed that may be one that was read without a value."""
        if self._repeater is not None:
            self._repeater.check_changes()

    def call(
        self, owner: ObjectValue, args: list[Value], kwargs: dict[str, Value], plain: Callable[[], Value]
    ) -> Value:
        """What calling a module without hooks gives; ``plain`` traces it."""
        frame = self._tx.frames[-1]
        key = (owner.cls, frame.code, frame.next)
        place = self._places.get(key)
        if place is None or place.frame is not frame:
            self._places[key] = Place(frame)
            return plain()
        place.count += 1
        if place.count < _TRACED:
            return plain()
        if self._repeater is None:
            from dynamo_capture.semantics.calls.equal_modules.repeating import Repeater

            self._repeater = Repeater(self._tx)
        return self._repeater.call(place, owner, args, kwargs, plain)
