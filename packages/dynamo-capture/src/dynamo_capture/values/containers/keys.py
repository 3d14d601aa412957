"""Keys of dictionaries that stand for objects of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dynamo_capture.foundation.break_kinds import UNKNOWN_HASH
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, IdentityKey, Value


class HashedKey:
    """The dictionary key that stands for an object whose class defines ``__hash__`` and ``__eq__``.

    Both are called again where the container is made, or changed, after the graph and before the trace's effects: if
    they have none, and see nothing of those, nobody can tell.
    """

    __slots__ = ("_hash", "_tx", "others", "value")

    def __init__(self, tx: Context, value: Value, hashed: int) -> None:
        self._tx = tx
        self.value = value
        self._hash = hashed
        self.others: Sequence[Any] = ()
        """Keys that it is known to be different from: those of one existing container."""

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if any(other is one for one in self.others):
            return False
        tx = self._tx
        second = other.value if isinstance(other, (HashedKey, IdentityKey)) else tx.known(other)
        with tx.effects.observed() as changed:
            is_same = tx.operators.equal_or_same(self.value, second)
        if changed:
            raise GraphBreak(UNKNOWN_HASH, f"comparing {self.value.describe()} with another key has effects")
        if tx.effects.log and not is_same:
            raise GraphBreak(UNKNOWN_HASH, f"{self.value.describe()} has the hash of another key")
        return is_same


def set_apart(keys: Sequence[Any]) -> None:
    """These are the keys of an existing container, which are different: reading it compares none of them."""
    for key in keys:
        if type(key) is HashedKey:
            key.others = keys


def is_opaque(key: Any) -> bool:
    """Whether a key stands for an object, so that a real dict cannot be asked for it."""
    if isinstance(key, (tuple, frozenset)):
        return any(map(is_opaque, key))
    return isinstance(key, (IdentityKey, HashedKey))
