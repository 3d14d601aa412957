"""Copies of values."""

from __future__ import annotations

import copy

import pytest

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, ListValue, ObjectValue


class Kept:
    def __setstate__(self, state):
        pass


def test_deep_copies_keep_what_is_shared(tx, tensor):
    part = ListValue([tensor])
    made = Const(copy.deepcopy).call(tx, [ListValue([part, part])], {})
    one, other = made.items
    assert one is other
    assert one is not part
    assert one.items[0] is not tensor


def test_shallow_copies_keep_the_items(tx):
    part = ListValue([])
    made = Const(copy.copy).call(tx, [ListValue([part])], {})
    assert made.items == [part]


def test_a_protocol_of_its_own_is_python_s_business(tx):
    for function in (copy.copy, copy.deepcopy):
        with pytest.raises(GraphBreak):
            Const(function).call(tx, [ObjectValue(Kept)], {})
