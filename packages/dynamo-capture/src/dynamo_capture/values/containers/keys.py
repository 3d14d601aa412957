"""Keys of dictionaries that stand for objects of the program."""

from __future__ import annotations

from typing import Any

from dynamo_capture.values.base import Context, Value


class IdentityKey:
    """The dictionary key that stands for an object hashed by identity."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(id(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IdentityKey) and other.value is self.value


class HashedKey:
    """The dictionary key that stands for an object whose class defines ``__hash__`` and ``__eq__``."""

    __slots__ = ("_hash", "_tx", "value")

    def __init__(self, tx: Context, value: Value, hashed: int) -> None:
        self._tx = tx
        self.value = value
        self._hash = hashed

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, (HashedKey, IdentityKey)):
            return self._tx.operators.equal_or_same(self.value, other.value)
        return self._tx.operators.equal_or_same(self.value, self._tx.known(other))


def is_opaque(key: Any) -> bool:
    """Whether a key stands for an object, so that a real dict cannot be asked for it."""
    if isinstance(key, (tuple, frozenset)):
        return any(map(is_opaque, key))
    return isinstance(key, (IdentityKey, HashedKey))
