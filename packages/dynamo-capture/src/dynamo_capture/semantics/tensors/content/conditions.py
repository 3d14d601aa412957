"""Bools that only data can answer, as tensors of the graph: combined, negated, chosen by another one.

found = False
for g in gradients:
    found |= bool(g.isnan().any())      # found = logical_or(found, g.isnan().any())
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import torch

from dynamo_capture.semantics.tensors.content.choices import is_open
from dynamo_capture.semantics.tensors.content.data_numbers import truth_of
from dynamo_capture.values import FALSE, TRUE, Const, SymValue, TensorValue, TupleValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from fx_interface.symbols import indicator

_FUNCTIONS: Final[dict[str, Any]] = {
    "|": torch.logical_or,
    "&": torch.logical_and,
    "^": torch.logical_xor,
}


def is_bool(value: Value | None) -> bool:
    """Whether it is a bool, of which data may tell which one."""
    return isinstance(value, DataCondition) or (type(value) is Const and type(value.value) is bool)


def as_tensor(tx: Context, condition: DataCondition) -> TensorValue:
    """The tensor without dimensions that holds the answer."""
    if condition.tensor is None:
        number = math.prod(map(indicator, condition.relations))
        value = SymValue(number) if not isinstance(number, int) else Const(number)
        made = tx.tensors.call_function(torch.full, [TupleValue([]), value], {"dtype": Const(torch.bool)})
        condition.tensor = one_tensor(made)
    found: TensorValue = condition.tensor
    return found


def combined(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``lhs symbol rhs`` of two bools, with the graph's answer in it; None for another operator, or where the tensors
    are on several devices."""
    function = _FUNCTIONS.get(symbol)
    if function is None or not (is_bool(lhs) and is_bool(rhs)):
        return None
    if isinstance(lhs, Const):
        lhs, rhs = rhs, lhs
    if not isinstance(lhs, DataCondition):
        return None
    if isinstance(rhs, Const):
        return _beside_known(tx, symbol, lhs, rhs.value)
    assert isinstance(rhs, DataCondition)
    tensors = [as_tensor(tx, one) for one in (lhs, rhs)]
    if tensors[0].meta.spec.device != tensors[1].meta.spec.device:
        return None
    return truth_of(tx, one_tensor(tx.tensors.call_function(function, list(tensors), {})), is_new=True)


def _beside_known(tx: Context, symbol: str, condition: DataCondition, known: bool) -> Value | None:
    match symbol, known:
        case ("|", True):
            return TRUE
        case ("&", False):
            return FALSE
        case ("^", True):
            return negated(tx, condition)
    return condition


def negated(tx: Context, condition: DataCondition) -> Value | None:
    """``not condition``; None where the graph has no such answer."""
    if condition.is_number and len(condition.relations) == 1:
        return DataCondition(condition.relations[0].negated())
    made = tx.tensors.call_function(torch.logical_not, [as_tensor(tx, condition)], {})
    return truth_of(tx, one_tensor(made), is_new=True)


def opposite(tx: Context, value: Value) -> Value | None:
    """``not value`` of a bool, of which data may tell which one; None where the graph has no such answer."""
    if isinstance(value, DataCondition):
        return negated(tx, value)
    return FALSE if tx.truth(value) else TRUE


def joined(tx: Context, symbol: str, values: Sequence[Value]) -> Value | None:
    """The truth of some values combined by ``|`` or ``&``, in order; None where it is not a bool of each that data
    answer, or a known one."""
    found: Value | None = None
    for value in values:
        answer = value if is_bool(value) else asked(tx, value)
        if answer is None:
            return None
        found = answer if found is None else combined_or_known(tx, symbol, found, answer)
        if found is None:
            return None
    return found


def combined_or_known(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """As ``combined``, of two known ones too."""
    if isinstance(lhs, Const) and isinstance(rhs, Const):
        return tx.operators.binary(symbol, lhs, rhs)
    return combined(tx, symbol, lhs, rhs)


def asked(tx: Context, value: Value) -> DataCondition | None:
    """The truth of a value, if data alone tell it."""
    if isinstance(value, DataCondition):
        return value
    if not isinstance(value, TensorValue) or not is_open(value):
        return None
    return None if tx.tensors.followed.of(value) is not None else truth_of(tx, value)


def chosen(tx: Context, condition: TensorValue, yes: Value, no: Value) -> Value | None:
    """``yes if condition else no``, of two bools and a tensor with one element; None for other values."""
    if not (is_bool(yes) and is_bool(no)):
        return None
    asked = truth_of(tx, condition)
    if asked is None:
        return None
    if isinstance(yes, Const) and isinstance(no, Const):
        return yes if yes.value is no.value else asked if yes.value else negated(tx, asked)
    if isinstance(yes, Const):
        return _beside(tx, asked, no, is_chosen=yes.value)
    opposite = negated(tx, asked)
    if opposite is None:
        return None
    if isinstance(no, Const):
        return _beside(tx, opposite, yes, is_chosen=no.value)
    sides = [combined(tx, "&", *pair) for pair in ((asked, yes), (opposite, no))]
    return None if None in sides else combined(tx, "|", *[side for side in sides if side is not None])


def _beside(tx: Context, asked: Value, other: Value, *, is_chosen: bool) -> Value | None:
    """``is_chosen`` where ``asked`` is true, otherwise ``other``."""
    if is_chosen:
        return combined(tx, "|", asked, other)
    opposite = negated(tx, asked) if isinstance(asked, DataCondition) else None
    return None if opposite is None else combined(tx, "&", opposite, other)
