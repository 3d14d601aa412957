"""What each kind of value is built from, and what Python cannot build anew."""

from __future__ import annotations

import pytest

import dynamo_capture.driver.optimizer  # noqa: F401  # all of the translator, in the order that its modules need
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import (
    CallIterator,
    CellValue,
    Const,
    DictValue,
    EnumerateIterator,
    IndexIterator,
    ListIterator,
    ListValue,
    MapIterator,
    MethodValue,
    PartialValue,
    Piece,
    RangeIterator,
    SequenceIterator,
    SetValue,
    SliceValue,
    TextValue,
    TupleValue,
    Value,
    ZipIterator,
)

A, B, C = Const("a"), Const("b"), Const("c")


@pytest.mark.parametrize(
    "value, parts",
    [
        (TupleValue([A, B]), [A, B]),
        (TupleValue([]), []),
        (ListValue([B]), [B]),
        (DictValue({"a": [A, B]}), [A, B]),
        (SetValue({"a": A}), [A]),
        (CellValue(), []),
        (SliceValue((A, B, C)), [A, B, C]),
        (TextValue([Piece(A), Piece(B)]), [A, B]),
        (MethodValue(A, B), [A, B]),
        (PartialValue.of(A, [B], {"c": C}), [A, B, C]),
        (SequenceIterator([A, B, C]), [A, B, C]),
        (RangeIterator(range(3)), []),
        (EnumerateIterator(SequenceIterator([]), 0), 1),
        (ZipIterator([SequenceIterator([])], False), 1),
        (MapIterator(A, [SequenceIterator([])]), 2),
        (CallIterator(A, B), [A, B]),
        (IndexIterator(A), [A]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_parts(tx, value, parts):
    found = value.children(tx)
    assert len(found) == parts if isinstance(parts, int) else found == parts


def test_an_iterator_that_has_given_something_keeps_the_rest(tx):
    iterator = SequenceIterator([A, B, C])
    iterator.next(tx)
    assert iterator.children(tx) == [B, C]
    owner = ListValue([A])
    assert ListIterator(owner, owner).children(tx) == [owner]


def test_what_cannot_be_made_anew(tx):
    class Other(Value):
        source = None

        def python_type(self):
            return object

    with pytest.raises(GraphBreak, match="CAP240"):
        Other().children(tx)
