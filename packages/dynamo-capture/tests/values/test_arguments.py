"""Values as arguments of operations."""

from __future__ import annotations

import numpy
import pytest
import torch

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, ListValue, ObjectValue, TupleValue


def test_what_the_memo_tells_apart(tx, read):
    def key(value):
        return value.frozen(tx, [])

    assert key(Const(1)) != key(Const(1.0)) != key(Const(True))
    assert key(Const(0.0)) != key(Const(-0.0))
    assert key(ListValue([Const(1)])) != key(TupleValue([Const(1)]))
    assert key(read(torch.ones(2), "a")) == key(read(torch.zeros(2), "b"))


def test_numbers_of_numpy_are_plain_in_the_graph(tx):
    found = Const(numpy.int64(3)).argument(tx)
    assert found == 3
    assert type(found) is int
    bounds = Const(slice(None, numpy.int32(2))).argument(tx)
    assert type(bounds.stop) is int


def test_what_cannot_be_passed(tx):
    with pytest.raises(GraphBreak) as reason:
        ObjectValue(object).argument(tx)
    assert reason.value.code == "CAP207"
