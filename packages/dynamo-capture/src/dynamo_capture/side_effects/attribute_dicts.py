"""Dictionaries of attributes that the program holds itself: an attribute and an item are one place.

    class Config(dict):
        def __init__(self): self.__dict__ = self     # config.x is config["x"]

The graph ends where one of the two is changed while the trace knows the other, so that Python changes it.
"""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.values import Const, DictValue, ObjectValue, TensorValue, Value
from dynamo_capture.values.base import Context


class AttributeDicts:
    """Those of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._written: dict[int, Any] = {}
        """The dictionaries of objects whose attributes the trace has changed, by identity."""

    def check_content(self, space: Any) -> None:
        """The content of a dictionary of before the trace changes, for the first time."""
        for value in self._tx.wrapping.objects():
            if instance_dict(value.real) is space:
                raise _both(value)

    def check_attribute(self, owner: ObjectValue | TensorValue) -> None:
        """An attribute of an object of before the trace changes."""
        space = instance_dict(owner.real)
        if isinstance(self._tx.wrapping.value_of(space), (DictValue, ObjectValue)):
            raise _both(owner)
        self._written[id(space)] = space

    def check_object(self, value: ObjectValue) -> None:
        """An object is read for the first time."""
        known = self._tx.wrapping.value_of(instance_dict(value.real))
        if known is not None and self._tx.effects.has_changed(known):
            raise _both(value)

    def check_constant(self, value: Const) -> None:
        """An attribute of a known object is read."""
        known = self._tx.wrapping.value_of(instance_dict(value.value))
        if known is not None and self._tx.effects.has_changed(known):
            raise _both(value)

    def check_dict(self, real: Any) -> None:
        """A dictionary is read for the first time."""
        if id(real) in self._written:
            raise GraphBreak(
                DEFINITION_CHANGED, "a dictionary is read that holds the attributes of a changed object"
            )


def _both(owner: Value) -> GraphBreak:
    return GraphBreak(
        DEFINITION_CHANGED, f"{owner.describe()} and its dictionary of attributes are used beside each other"
    )
