"""Attributes of objects, in Python's order."""

from __future__ import annotations

import pytest

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.values import Const, MethodValue, ObjectValue


class Point:
    kind = "point"

    def __init__(self):
        self.x = 1

    @property
    def double(self):
        return self.x * 2

    def norm(self):
        return self.x


def test_what_an_object_has(tx, read):
    value = read(Point())
    assert value.get_attr(tx, "x").as_constant() == 1
    assert value.get_attr(tx, "kind").as_constant() == "point"
    assert value.get_attr(tx, "double").as_constant() == 2
    assert isinstance(value.get_attr(tx, "norm"), MethodValue)


def test_what_the_trace_has_written_is_read(tx, read):
    value = read(Point())
    value.set_attr(tx, "x", Const(5))
    assert value.get_attr(tx, "double").as_constant() == 10


def test_what_is_missing(tx):
    with pytest.raises(UserRaise) as raised:
        ObjectValue(Point).get_attr(tx, "z")
    assert raised.value.value.python_type() is AttributeError
