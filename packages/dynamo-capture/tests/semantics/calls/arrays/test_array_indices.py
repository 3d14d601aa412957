"""Which indices of numpy's arrays mean the same for tensors."""

from __future__ import annotations

import pytest

from dynamo_capture.semantics.calls.arrays.array_indices import index_parts, is_basic, takes_one
from dynamo_capture.values import Const, ListValue, SliceValue, TupleValue


@pytest.mark.parametrize(
    "key, basic",
    [
        (Const(1), True),
        (Const((1, None, ...)), True),
        (TupleValue([Const(0), SliceValue((Const(1), Const(None), Const(2)))]), True),
        (SliceValue((Const(None), Const(None), Const(-1))), False),
        (ListValue([Const(0)]), False),
        (Const(True), False),
    ],
)
def test_slices_forward_and_integers_choose_a_part(tx, key, basic):
    assert is_basic(tx, key) is basic


def test_integers_may_be_left_out(tx):
    assert not is_basic(tx, Const((1, slice(2))), numbers=False)
    assert is_basic(tx, Const((None, slice(2))), numbers=False)


def test_as_many_integers_as_dimensions_name_one_element(tx):
    assert takes_one(tx, Const((1, 2)), 2)
    assert not takes_one(tx, Const((1,)), 2)
    assert not takes_one(tx, Const((1, slice(2))), 2)
    assert [part.as_constant() for part in index_parts(tx, Const((1, ...)))] == [1, ...]
