"""Sums, products and the like of objects that data choose and autograd follows: torch computes them behind the graph.

    loss = 0
    for score in scores:
        loss += max(0, 1 - score)       # choose(c, 1 - score, 0), and the sum of those when the graph has run
    return loss / n

None of these operations raises, and nothing of the graph depends on them: of tensors without dimensions and numbers.
"""

from __future__ import annotations

from typing import Any, Final

import torch

from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.values import Const, SymValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.operator_methods import BINARY, BinaryOperator
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.values.tensors.late import LateTensor
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.symbols import Relation

_OPERATORS: Final = frozenset({"+", "-", "*", "/", "+=", "-=", "*=", "/="})
_MOST: Final = 128
"""So many operations are computed behind one graph, each by a call of torch."""
_NUMBERS: Final = (int, float)


def binary(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> LateTensor | None:
    """``lhs symbol rhs``, computed when the graph has run; None where the graph computes it, or it cannot be late."""
    if row.symbol not in _OPERATORS or not _is_late(lhs, rhs) or not _may_be_late(tx):
        return None
    function = row.function
    if row.plain is not None and not isinstance(lhs, LateTensor):
        if isinstance(lhs, (TensorValue, ChosenValue)):
            return None  # it writes to what the graph may read
        function = BINARY[row.plain].function
    if not all(map(_is_scalar, (lhs, rhs))) or len(set(_devices(lhs, rhs))) > 1:
        return None
    if row.symbol in ("/", "/=") and not _is_divisor(tx, rhs):
        return None
    made = LateTensor(function, (lhs, rhs))
    tx.effects.late.append(made)
    return made


def _is_late(lhs: Value, rhs: Value) -> bool:
    """Whether what autograd follows is not to be computed for each object: one operand is late, or is followed and
    stands beside another that data choose, or perhaps is a number."""
    if isinstance(lhs, LateTensor) or isinstance(rhs, LateTensor):
        return True
    chosen = [value for value in (lhs, rhs) if isinstance(value, ChosenValue)]
    candidates = [one for value in chosen for one in value.candidates()]
    if not any(isinstance(one, TensorValue) and one.meta.requires_grad for one in candidates):
        return False
    return len(chosen) == 2 or not all(isinstance(one, TensorValue) for one in candidates)


def _may_be_late(tx: Context) -> bool:
    """Whether torch computes the same behind the graph as here, and autograd follows it."""
    if isinstance(tx.output, Body) or tx.output.is_transformed or tx.levels or tx.tensors.modes:
        return False
    is_followed = torch.is_grad_enabled() and not torch.is_inference_mode_enabled()
    return is_followed and len(tx.effects.late) < _MOST


def _is_scalar(value: Value) -> bool:
    """Whether it is a number, or a plain tensor of one, whichever object data choose."""
    if isinstance(value, ChosenValue):
        return all(map(_is_scalar, value.candidates()))
    if isinstance(value, TensorValue):
        spec, cls = value.meta.spec, value.meta.cls
        return (
            type(value) is TensorValue
            and not spec.sizes
            and spec.dtype.is_floating_point
            and cls in PLAIN_CLASSES
        )
    if isinstance(value, (LateTensor, SymValue, RuntimeFloat)):
        return True
    return isinstance(value, Const) and value.python_type() in _NUMBERS


def _devices(*values: Value) -> list[Any]:
    found = []
    for value in values:
        if isinstance(value, TensorValue):
            found.append(value.meta.spec.device)
        elif isinstance(value, ChosenValue):
            found += _devices(*value.candidates())
        elif isinstance(value, LateTensor):
            found += _devices(*value.operands)
    return found


def _is_divisor(tx: Context, value: Value) -> bool:
    """Whether Python may divide by a number."""
    if value.expr is not None:
        return tx.env.known(Relation("<", 0, value.expr)) is True
    return not isinstance(value, (LateTensor, TensorValue, ChosenValue)) and floats.is_nonzero(value)
