"""Keys of dictionaries: constants, and those that stand for objects."""

from __future__ import annotations

import pytest

from dynamo_capture.foundation.known_objects import is_plain_key
from dynamo_capture.values import Const, IdentityKey, is_opaque


@pytest.mark.parametrize("key", ["a", 1, 1.5, None, b"b", (1, ("a", None)), int])
def test_plain_keys(key: object) -> None:
    assert is_plain_key(key)
    assert not is_opaque(key)


def test_keys_that_stand_for_objects() -> None:
    value = Const(object())
    key = IdentityKey(value)
    assert is_opaque(key)
    assert is_opaque((1, (key,)))
    assert is_opaque(frozenset([key]))
    assert key == IdentityKey(value)
    assert key != IdentityKey(Const(value.value))
    assert not is_plain_key(key)
