"""Constants: None has many values, and a constant that is read from somewhere is guarded when it is used."""

from __future__ import annotations

import typing
from typing import Any

import pytest

from dynamo_capture.values import NONE, Const, SourcedConst, is_none
from fx_interface.source import LocalSource


def test_every_value_of_none_is_none() -> None:
    assert is_none(NONE)
    assert is_none(Const(None))
    assert not is_none(Const(0))


def test_a_constant_is_guarded_at_its_first_use() -> None:
    seen: list[Any] = []
    value = SourcedConst(3, LocalSource("x"), lambda source, real: seen.append(real))
    assert value.passed_on == 3
    assert value.is_unread
    assert not seen
    assert value.value == 3
    assert value.value == 3
    assert seen == [3]
    assert not value.is_unread


def test_what_is_told_from_an_equal_object_is_handed_on() -> None:
    for known, expected in ((3, False), (range(3), True), (slice(2), True)):
        value = SourcedConst(known, LocalSource("x"), lambda source, real: None)
        assert value.is_handed_on
        assert value.value is known
        assert value.is_handed_on is expected


def test_an_object_that_cannot_be_shown_yet_is_told_by_its_class() -> None:
    unfinished = object.__new__(typing.NewType)
    with pytest.raises(AttributeError):
        repr(unfinished)
    assert Const(unfinished).describe() == "a NewType"
