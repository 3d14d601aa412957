"""What methods of tensors that capture answers itself refuse: torch is asked, with samples of what they are given."""

from __future__ import annotations

import functools
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import (
    Const,
    DictValue,
    ListValue,
    SetValue,
    SliceValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.array import ArrayValue

_PLAIN = frozenset(
    {int, float, complex, bool, str, bytes, range, type(None), type(Ellipsis), torch.dtype, torch.device}
)
_EMPTY: dict[type, type] = {ListValue: list, TupleValue: tuple, DictValue: dict, SetValue: set}
_UNKNOWN = (object,)
_RUNS_CODE = frozenset({"as_subclass"})
"""Methods that run code of a class that they are given."""


def check_arguments(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> None:
    """End the graph, so that Python raises, where torch refuses arguments of these classes, or so many."""
    if name in _RUNS_CODE:
        return
    kinds = tuple([_kind(tx.force(arg)) for arg in args])
    named = tuple([(key, _kind(tx.force(value))) for key, value in kwargs.items()])
    if is_refused(name, kinds, named):
        raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()}.{name} gets arguments that it does not take")


def _kind(value: Value) -> tuple[Any, ...]:
    """What makes the sample of an argument, and its argument; equal ones make equal samples."""
    if value.varies:
        return value.python_type(), 1
    if isinstance(value, Const):
        known = value.value
        if isinstance(known, type):
            return _known, int, type
        if type(known) in _PLAIN or isinstance(known, numpy_types.SCALARS):
            return _known, known, type(known)
        return {tuple: (tuple,), slice: (slice, None)}.get(type(known), _UNKNOWN)
    if isinstance(value, TensorValue):
        return _tensor, value.meta.spec.dtype
    if isinstance(value, SliceValue):
        return slice, None
    if isinstance(value, ArrayValue):
        return (_array,)
    made = _EMPTY.get(type(value))
    return _UNKNOWN if made is None else (made,)


def _known(value: Any, _cls: type | None = None) -> Any:
    return value


def _tensor(dtype: torch.dtype) -> torch.Tensor:
    return torch.ones(2, 2, dtype=dtype)


def _array() -> Any:
    return torch.ones(2, 2).numpy()


@functools.lru_cache(maxsize=1024)
def is_refused(
    name: str, kinds: tuple[tuple[Any, ...], ...], named: tuple[tuple[str, tuple[Any, ...]], ...]
) -> bool:
    """Whether the method of a small tensor raises TypeError for arguments of these kinds."""
    method = getattr(torch.Tensor, name, None)
    if method is None:
        return False
    try:
        given = [make(*rest) for make, *rest in kinds]
        method(torch.ones(2, 2), *given, **{key: make(*rest) for key, (make, *rest) in named})
    except TypeError:
        return True
    except Exception:
        return False
    return False
