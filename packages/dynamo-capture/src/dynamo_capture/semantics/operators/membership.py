"""``x in values`` of a list or tuple, where only data tell whether a tensor equals another value."""

from __future__ import annotations

import torch

from dynamo_capture.semantics.tensors.content import conditions
from dynamo_capture.semantics.tensors.content.choices import is_open
from dynamo_capture.semantics.tensors.content.data_numbers import truth_of
from dynamo_capture.values import FALSE, TRUE, ListValue, TensorValue, TupleValue, Value, boolean
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition

_MOST_TENSORS = 16
"""So many comparisons are put into a graph at most."""


def contained(tx: Context, owner: Value, item: Value, negated: bool) -> Value:
    """``item in owner``, or ``not in``."""
    found = _by_data(tx, owner, item)
    if found is None:
        return boolean(owner.contains(tx, item) != negated)
    if isinstance(found, DataCondition):
        opposite = conditions.negated(tx, found) if negated else found
        return boolean(tx.truth(found) != negated) if opposite is None else opposite
    return boolean(tx.truth(found) != negated)


def _by_data(tx: Context, owner: Value, item: Value) -> Value | None:
    """The answer where tensors of one element are compared and their content is not known; None elsewhere.

    The comparisons are made in order, up to one that is known to be true. They have no effects.
    """
    if not isinstance(owner, (ListValue, TupleValue)) or owner.python_type() not in (list, tuple):
        return None
    parts = owner.unpack(tx)
    if not any(is_open(value) for value in (item, *parts)) or len(parts) > _MOST_TENSORS:
        return None
    if not all(isinstance(value, TensorValue) or tx.is_constant(value) for value in (item, *parts)):
        return None
    open_ones: list[TensorValue] = []
    for part in parts:
        if tx.operators.same(part, item):
            return TRUE
        equal = tx.operators.compare("==", part, item)
        if isinstance(equal, TensorValue) and is_open(equal):
            open_ones.append(equal)
        elif tx.truth(equal):
            return TRUE
    if not open_ones:
        return FALSE
    flat = [one.call_method(tx, "reshape", [TupleValue([])], {}) for one in open_ones]
    total = flat[0]
    for one in flat[1:]:
        total = tx.tensors.call_function(torch.logical_or, [total, one], {})
    assert isinstance(total, TensorValue)
    return truth_of(tx, total, is_new=True)
