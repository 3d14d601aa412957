"""The hint that Python asks for before it makes a list or a tuple of what an object gives.

list(o)             # iter(o), then o.__len__() or o.__length_hint__(), then the items
list(reversed(o))   # o.__len__() for reversed, o.__len__() for the hint that reversed gives, then the items
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import MethodDescriptorType, WrapperDescriptorType
from typing import Any

import fx_guards
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.special_results import length_from

_METHODS = ("__len__", "__length_hint__")


def ask_for_hint(tx: Context, value: Value, cls: type, names: Sequence[str] = _METHODS) -> None:
    """Ask an object of the program's class ``cls``, and raise what Python raises for its answer."""
    for name in names:
        found = fx_guards.class_lookup(cls, name)
        if name == "__len__" and isinstance(found, WrapperDescriptorType):
            return  # C knows the length
        if found is None or found is fx_guards.ABSENT or isinstance(found, MethodDescriptorType):
            continue
        try:
            answer = tx.calls.special(value, name, [])
            if name == "__len__":
                length_from(tx, answer)
                return
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), TypeError):
                raise
            continue
        if not answer.stands_for(NotImplemented):
            _check_hint(tx, tx.constant(answer))


def _check_hint(tx: Context, answer: Any) -> None:
    class Hinted:
        def __length_hint__(self) -> Any:
            return answer

    tx.fold(lambda: operator.length_hint(Hinted()))
