"""Numbers of numpy that only data tell, beside tensors: torch takes them as Python's numbers of the same value.

x * table[step]    with ``table`` an array    ->    x * table[step].item()
"""

from __future__ import annotations

from typing import Protocol

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.arguments.scalars import takes_numbers
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.array import ArrayValue

_AS_PYTHONS = frozenset(
    {
        torch.float16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
    }
)
"""The dtypes of numbers whose ``item()`` is a float or an integer of Python with the same value."""
_REFUSING = frozenset({"setitem"})
"""What asks for a number of Python, and refuses some of numpy's."""


class Call(Protocol):
    """A tensor operation."""

    args: list[Value]
    kwargs: dict[str, Value]

    @property
    def name(self) -> str:
        """The last part of the name."""


def tensor_of(tx: Context, value: Value) -> TensorValue | None:
    """The tensor that holds a number of numpy, if that has the value of a float or an integer of Python."""
    if not isinstance(value, ArrayValue) or not value.is_number:
        return None
    tensor = value.as_tensor(tx)
    return tensor if tensor.meta.spec.dtype in _AS_PYTHONS else None


def python_number(tx: Context, value: Value) -> Value:
    """The number of Python that a number of numpy is to torch; anything else as it is."""
    tensor = tensor_of(tx, value)
    if tensor is None:
        return value
    with tx.tensors.modes.without(len(tx.tensors.modes.active)):
        return tensor.call_method(tx, "item", [], {})


def beside_tensors(tx: Context, *operands: Value) -> list[Value] | None:
    """The operands of an operator, numbers of numpy as Python's, if one is a tensor; None if nothing changes."""
    if not any(isinstance(value, TensorValue) for value in operands):
        return None
    found = [python_number(tx, value) for value in operands]
    return None if any(isinstance(value, ArrayValue) for value in found) else found


def replaced(tx: Context, call: Call) -> None:
    """Numbers of numpy among the arguments of an operation on numbers become Python's."""
    if not any(isinstance(value, ArrayValue) for value in (*call.args, *call.kwargs.values())):
        return
    if takes_numbers(call.name) and call.name not in _REFUSING:
        call.args = [python_number(tx, value) for value in call.args]
        call.kwargs = {name: python_number(tx, value) for name, value in call.kwargs.items()}


def stored(tx: Context, value: Value) -> Value:
    """What ``tensor[key] = value`` writes; a graph break for a number or array of numpy that torch refuses there."""
    value = tx.force(value)
    known = value.value if isinstance(value, Const) and not value.is_open else None
    is_number = isinstance(known, numpy_types.SCALARS) or (isinstance(value, ArrayValue) and value.is_number)
    kind = value.python_type() if is_number else None
    if isinstance(value, ArrayValue) and not is_number:
        raise GraphBreak(UNTRACEABLE, "an array of numpy is stored in a tensor, which torch refuses")
    if kind is not None and not issubclass(kind, (float, complex, numpy_types.INTEGERS)):
        raise GraphBreak(
            UNTRACEABLE, f"a {kind.__name__} of numpy is stored in a tensor, which torch refuses"
        )
    return value.as_tensor(tx) if isinstance(value, ArrayValue) else value
