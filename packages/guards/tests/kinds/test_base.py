"""The table of guard kinds: each declared once, each a frozen record that keeps the protocol."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest
import torch

import fx_guards
from fx_guards.kinds.base import short, type_name
from fx_interface.errors import UserLocation
from fx_interface.guard import Guard
from fx_interface.source import LocalSource


def test_a_kind_declared_twice_names_both_places() -> None:
    class Again(fx_guards.GuardRecord):
        kind: ClassVar[str] = "type_is"

    with pytest.raises(ValueError, match=r"TypeIs.*Again"):
        fx_guards.guard_kind(Again)
    assert fx_guards.KINDS["type_is"] is fx_guards.TypeIs


def test_records_are_frozen_and_compare_without_the_users_line() -> None:
    one = fx_guards.TypeIs(LocalSource("x"), int)
    two = fx_guards.TypeIs(LocalSource("x"), int, where=UserLocation("model.py", 3))
    assert one == two
    assert hash(one) == hash(two)
    assert isinstance(one, Guard)
    with pytest.raises(dataclasses.FrozenInstanceError):
        one.expected = str  # type: ignore[misc]


def test_every_kind_is_slotted_and_named_after_its_key() -> None:
    for kind, cls in fx_guards.KINDS.items():
        assert cls.kind == kind
        assert "__dict__" not in dir(cls)


ASKED: list[str] = []


class _Asked(type):
    def __repr__(cls) -> str:
        ASKED.append("class")
        return "class"


class _Silent(metaclass=_Asked):
    def __repr__(self) -> str:
        ASKED.append("object")
        return "object"


def test_short_runs_no_code_of_the_program() -> None:
    plain = [1, "a", None, 2.5, [True], {"k": (3,)}, (1, 2), torch.float32, torch.Size([2])]
    assert [short(value) for value in plain] == [repr(value) for value in plain]
    name = f"{__name__}._Silent"
    assert short(_Silent()) == f"<{name} object>"
    assert short({"k": [_Silent()]}) == f"{{'k': [<{name} object>]}}"
    assert short(_Silent) == f"<class '{name}'>"
    assert "Tensor" in short(torch.ones(2))
    assert ASKED == []
    assert len(short("x" * 500)) == 80
    assert type_name(int) == "int"
    assert type_name(UserLocation) == "fx_interface.errors.UserLocation"
