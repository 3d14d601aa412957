"""The table of guard kinds: each declared once, each a frozen record that keeps the protocol."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest

import guards
from fx_interface.errors import UserLocation
from fx_interface.guard import Guard
from fx_interface.source import LocalSource
from guards.kinds.base import short, type_name


def test_a_kind_declared_twice_names_both_places() -> None:
    class Again(guards.GuardRecord):
        kind: ClassVar[str] = "type_is"

    with pytest.raises(ValueError, match=r"TypeIs.*Again"):
        guards.guard_kind(Again)
    assert guards.KINDS["type_is"] is guards.TypeIs


def test_records_are_frozen_and_compare_without_the_users_line() -> None:
    one = guards.TypeIs(LocalSource("x"), int)
    two = guards.TypeIs(LocalSource("x"), int, where=UserLocation("model.py", 3))
    assert one == two
    assert hash(one) == hash(two)
    assert isinstance(one, Guard)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.expected = str  # type: ignore[misc]


def test_every_kind_is_slotted_and_named_after_its_key() -> None:
    for kind, cls in guards.KINDS.items():
        assert cls.kind == kind
        assert "__dict__" not in dir(cls)


def test_short_survives_a_repr_that_raises() -> None:
    class Bad:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "Bad" in short(Bad())
    assert len(short("x" * 500)) == 80
    assert type_name(int) == "int"
    assert type_name(UserLocation) == "fx_interface.errors.UserLocation"
