"""A tensor anywhere in the arguments makes a function of torch an operation."""

from __future__ import annotations

import pytest

from dynamo_capture.semantics.calls.participants import has_tensor, takes_part
from dynamo_capture.values import Const, DictValue, ListValue, SetValue, TupleValue


class Taking:
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


@pytest.mark.parametrize(
    "around",
    [
        lambda value: value,
        lambda value: TupleValue([Const(1), ListValue([value])]),
        lambda value: DictValue({"a": [Const("a"), TupleValue([value])]}),
    ],
)
def test_it_is_found_in_structures(tx, tensor, around):
    assert has_tensor(tx, [Const(1), around(tensor)], {})
    assert has_tensor(tx, [], {"key": around(tensor)})
    assert not has_tensor(tx, [around(Const(2))], {})


def test_sets_are_not_looked_into(tx, tensor):
    assert not has_tensor(tx, [SetValue({1: tensor})], {})


def test_an_object_with_torch_function_takes_part_by_position(tx, read):
    taking = read(Taking())
    assert takes_part(tx, [taking], {})
    assert not takes_part(tx, [Const(1)], {"key": taking})
