"""``torch.Size(...)``: a tuple of integers, of which what is none is asked for its ``__index__``."""

from __future__ import annotations

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import Const, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context


@handles(torch.Size)
def make_size(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    items = [tx.force(item) for item in args[0].unpack(tx)] if args else []
    if all(map(tx.is_constant, items)):
        return TupleValue(list(map(Const, tx.fold(lambda: torch.Size(map(tx.constant, items))))), torch.Size)
    for place, item in enumerate(items):
        kind = item.python_type()
        if issubclass(kind, (int, torch.SymInt)) and kind is not bool:
            continue
        if has_member(kind, "__index__") and not _is_no_index(item):
            raise GraphBreak(NOT_IN_PYTHON, f"torch.Size() of {item.describe()}")
        text = f"torch.Size() takes an iterable of 'int' (item {place} is '{message_name(kind)}')"
        raise tx.raises(TypeError, text)
    return TupleValue(items, torch.Size)


def _is_no_index(value: Value) -> bool:
    """Whether a tensor has a dtype that ``__index__`` refuses."""
    if not isinstance(value, TensorValue):
        return False
    dtype = value.meta.spec.dtype
    return dtype.is_floating_point or dtype.is_complex
