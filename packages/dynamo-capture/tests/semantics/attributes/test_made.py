"""Attributes of values that the trace made."""

from __future__ import annotations

import collections

import pytest

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.values import BuiltinMethod, Const, ListValue, TupleValue

Pair = collections.namedtuple("Pair", "one other")


def test_fields_of_named_tuples(tx):
    assert TupleValue([Const(1), Const(2)], Pair).get_attr(tx, "other").as_constant() == 2


def test_methods_of_containers(tx):
    found = ListValue([]).get_attr(tx, "append")
    assert isinstance(found, BuiltinMethod)
    assert found.name == "append"


def test_what_containers_do_not_have(tx):
    with pytest.raises(UserRaise) as raised:
        ListValue([]).get_attr(tx, "size")
    assert raised.value.value.python_type() is AttributeError
