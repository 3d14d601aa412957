"""Operators over values."""

from __future__ import annotations

import operator

import pytest

from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.values import Const, ListValue, ObjectValue, TensorValue, TupleValue


def test_constants_are_computed(tx):
    assert tx.operators.binary("+", Const(2), Const(3)).as_constant() == 5
    assert tx.operators.compare("<", Const(2), Const(3)).as_constant() is True
    assert tx.operators.unary("-", Const(2)).as_constant() == -2


def test_what_python_raises_the_program_raises(tx):
    with pytest.raises(UserRaise) as raised:
        tx.operators.binary("/", Const(1), Const(0))
    assert raised.value.value.python_type() is ZeroDivisionError


def test_tensors_make_nodes(tx, tensor):
    made = tx.operators.binary("*", tensor, Const(2))
    assert isinstance(made, TensorValue)
    assert made.node.target is operator.mul


def test_lists_are_extended_in_place(tx):
    items = ListValue([Const(1)])
    assert tx.operators.binary("+=", items, TupleValue([Const(2)])) is items
    assert [item.as_constant() for item in items.items] == [1, 2]


def test_identity_of_objects_on_two_paths_is_guarded(tx, read):
    one, other = read([], "a"), read([], "b")
    before = len(tx.guards.records)
    assert not tx.operators.same(one, other)
    assert type(tx.guards.records[before]).__name__ == "DistinctObjects"


def test_an_object_with_its_own_comparison_is_asked_before_a_tensor(tx, tensor):
    class Asked:
        def __eq__(self, other):
            return "asked"

    assert tx.operators.compare("==", ObjectValue(Asked), tensor).as_constant() == "asked"
    with pytest.raises(GraphBreak):
        tx.operators.compare("==", tensor, ObjectValue(Asked))
