"""What torch computes as numpy does, on arrays and numbers of one dtype: operations of the graph.

    np.stack([x + 0.1 * v, np.sin(x)])      ->      torch.stack([x + 0.1 * v, torch.sin(x)])

An array without dimensions gives a number of numpy, as there.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.semantics.calls.arrays.array_tables import SAME, WHOLE
from dynamo_capture.values import Const, ListValue, TensorValue, TupleValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import RuntimeFloat

FLOATS = (torch.float32, torch.float64)
_INTEGERS = (torch.int32, torch.int64)


def alike(tx: Context, function: Any, args: Sequence[Value], kwargs: dict[str, Value]) -> ArrayValue | None:
    """The result of a call where torch is known to compute the same; None for any other."""
    special = _special().get(function)
    if special is not None:
        made = None if kwargs else special(tx, [tx.force(value) for value in args])
        return None if made is None else ArrayValue(tensor=made)
    same = SAME.get(function)
    if same is None or kwargs:
        return None
    operands = _operands(tx, args)
    if operands is None:
        return None
    given, dtype = operands
    if same is operator.truediv and not isinstance(given[0], TensorValue):
        given[0] = _in_memory(
            tx, given[0], dtype
        )  # torch multiplies a number by the reciprocal, which rounds twice
    if dtype in FLOATS or (function in WHOLE and dtype in _INTEGERS and all(map(_fits, given))):
        return seen(tx.tensors.call_function(same, given, {}))
    return None


def seen(made: Value) -> ArrayValue:
    """A computed tensor as what numpy gives: a number where it has no dimensions."""
    tensor = one_tensor(made)
    return ArrayValue(tensor=tensor, is_number=not tensor.meta.spec.sizes)


def _operands(tx: Context, args: Sequence[Value]) -> tuple[list[Value], torch.dtype] | None:
    """What torch takes for them, and their one dtype; None where some have another, or are no arrays and numbers."""
    values = [tx.force(value) for value in args]
    if any(
        isinstance(value, TensorValue) or (isinstance(value, ArrayValue) and value.is_known)
        for value in values
    ):
        return None
    operands = [value.as_tensor(tx) if isinstance(value, ArrayValue) else value for value in values]
    tensors = [value for value in operands if isinstance(value, TensorValue)]
    dtypes = {tensor.meta.spec.dtype for tensor in tensors}
    if len(dtypes) != 1:
        return None
    (dtype,) = dtypes
    given = [found for value in operands if (found := _as_number(value, dtype)) is not None]
    has_dims = any(tensor.meta.spec.sizes for tensor in tensors)
    keeps = has_dims or len(tensors) == len(given) or numpy_types.KEEPS_DTYPES
    return (given, dtype) if keeps and len(given) == len(operands) else None


def _as_number(value: Value, dtype: torch.dtype) -> Value | None:
    """An operand as torch takes it: numbers of numpy are Python's if they have the arrays' dtype."""
    if isinstance(value, TensorValue) or is_open_float(value) or value.known_as(int, float) is not None:
        return value
    known = value.value if isinstance(value, Const) else None
    if isinstance(known, numpy_types.SCALARS) and torch.as_tensor(known).dtype is dtype:
        return Const(known.item())  # type: ignore[attr-defined]
    return None


def is_open_float(value: Value) -> bool:
    """Whether it is a float that is read when the code runs."""
    return isinstance(value, RuntimeFloat) and value.is_open


def _fits(value: Value) -> bool:
    """Whether an operand beside integers is one, and fits every dtype."""
    known = None if is_open_float(value) else value.known_as(int)
    return isinstance(value, TensorValue) or (known is not None and -128 <= known < 128)


def _parts(tx: Context, args: Sequence[Value], ndim: int) -> list[Value] | None:
    """The tensors of a list of arrays of so many dimensions and of one dtype; None of any other."""
    parts = args[0] if len(args) == 1 else None
    if (
        not isinstance(parts, (ListValue, TupleValue))
        or parts.python_type() not in (list, tuple)
        or not parts.items
    ):
        return None
    operands = _operands(tx, parts.items)
    found = operands[0] if operands is not None and operands[1] in FLOATS else []
    fit = [value for value in found if isinstance(value, TensorValue) and len(value.meta.spec.sizes) == ndim]
    return list(fit) if found and len(fit) == len(found) else None


def _stacked(tx: Context, args: Sequence[Value]) -> TensorValue | None:
    """``np.array`` or ``np.stack`` of numbers."""
    parts = _parts(tx, args, 0)
    return (
        None if parts is None else one_tensor(tx.tensors.call_function(torch.stack, [ListValue(parts)], {}))
    )


def _joined(tx: Context, args: Sequence[Value]) -> TensorValue | None:
    """``np.concatenate`` of arrays of one dimension: those of more may have another layout."""
    parts = _parts(tx, args, 1)
    return None if parts is None else one_tensor(tx.tensors.call_function(torch.cat, [ListValue(parts)], {}))


def _chosen(tx: Context, args: Sequence[Value]) -> TensorValue | None:
    """``np.where(condition, x, y)`` in memory that has no other layout."""
    if len(args) != 3 or not isinstance(args[0], ArrayValue) or args[0].is_known:
        return None
    condition = args[0].as_tensor(tx)
    if any(value.python_type() is float for value in args[1:]) and not any(
        isinstance(value, ArrayValue) for value in args[1:]
    ):
        given: list[Value] = [_in_memory(tx, value) for value in args[1:] if value.python_type() is float]
    else:
        operands = _operands(tx, args[1:])
        given = operands[0] if operands is not None and operands[1] in FLOATS else []
    tensors = [condition, *(value for value in given if isinstance(value, TensorValue))]
    plain = all(tx.truth(tensor.call_method(tx, "is_contiguous", [], {})) for tensor in tensors)
    if len(given) != 2 or condition.meta.spec.dtype is not torch.bool or not plain:
        return None
    return one_tensor(tx.tensors.call_function(torch.where, [condition, *given], {}))


def _in_memory(tx: Context, value: Value, dtype: torch.dtype = torch.float64) -> Value:
    """A number in a tensor of its own."""
    if isinstance(value, RuntimeFloat) and value.is_open:
        return value.tensor().call_method(tx, "to", [Const(dtype)], {})
    number = Const(value.known_as(int, float))
    return tx.tensors.call_function(torch.full, [Const(()), number], {"dtype": Const(dtype)})


@functools.cache
def _special() -> dict[Any, Any]:
    if not numpy_types.INSTALLED:
        return {}
    import numpy

    return {numpy.array: _stacked, numpy.stack: _stacked, numpy.concatenate: _joined, numpy.where: _chosen}


__all__ = ["FLOATS", "alike", "is_open_float", "seen"]
