"""Weak references and single dispatch."""

from __future__ import annotations

import functools
import weakref

import pytest

from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.values import Const, ObjectValue


class Node:
    pass


def test_a_reference_to_an_existing_object(tx, read):
    node = read(Node(), "node")
    made = Const(weakref.ref).call(tx, [node], {})
    assert made.call(tx, [], {}) is node
    assert tx.hash_key(made) == weakref.ref(node.real)


def test_an_object_has_one_reference(tx, read):
    node, other = read(Node(), "node"), read(Node(), "other")
    made = Const(weakref.ref).call(tx, [node], {})
    assert Const(weakref.ref).call(tx, [node], {}) is made
    assert not tx.operators.same(Const(weakref.ref).call(tx, [other], {}), made)


def test_references_that_are_not_followed(tx, read):
    with pytest.raises(GraphBreak):
        Const(weakref.ref).call(tx, [ObjectValue(Node)], {})
    with pytest.raises(UserRaise) as raised:
        Const(weakref.ref).call(tx, [read([], "items")], {})
    assert raised.value.value.python_type() is TypeError


def test_the_implementation_for_a_class(tx):
    @functools.singledispatch
    def name(value):
        return "object"

    @name.register
    def of_int(value: int):
        return "int"

    assert Const(name.dispatch).call(tx, [Const(bool)], {}).as_constant() is of_int
    assert "Length" in [type(record).__name__ for record in tx.guards.records]
