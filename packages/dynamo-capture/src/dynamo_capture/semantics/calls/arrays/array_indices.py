"""Indices of numpy's arrays: which mean the same for tensors."""

from __future__ import annotations

import torch

from dynamo_capture.values import Const, SliceValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.array import ArrayValue


def index_parts(tx: Context, key: Value) -> list[Value]:
    key = tx.force(key)
    if isinstance(key, TupleValue):
        return key.unpack(tx)
    known = key.known_as(tuple)
    return [key] if known is None else [Const(part) for part in known]


def is_basic(tx: Context, key: Value, numbers: bool = True) -> bool:
    """Whether an index only chooses a part of an array in its memory, by slices forward and (``numbers``) integers."""
    for part in index_parts(tx, key):
        known = (
            part.as_slice(tx)
            if isinstance(part, SliceValue)
            else part.value
            if isinstance(part, Const)
            else 0
        )
        is_integer = part.python_type() is int
        if type(known) is slice:
            if known.step is not None and not (type(known.step) is int and known.step > 0):
                return False
        elif not (known is None or known is ... or (is_integer and numbers)):
            return False
    return True


def is_fixed(tx: Context, key: Value) -> bool:
    """Whether all numbers of a basic index are known."""
    parts = index_parts(tx, key)
    bounds = [bound for part in parts if isinstance(part, SliceValue) for bound in part.bounds]
    numbers = [part for part in parts if not isinstance(part, SliceValue)]
    return all(tx.is_constant(tx.force(number)) for number in (*bounds, *numbers))


def takes_one(tx: Context, key: Value, ndim: int) -> bool:
    """Whether an index of integers alone names one element, which numpy gives as a number."""
    parts = index_parts(tx, key)
    return len(parts) == ndim and all(part.python_type() is int for part in parts)


def is_mask(tx: Context, key: Value) -> bool:
    key = tx.force(key)
    return isinstance(key, ArrayValue) and key.as_tensor(tx).meta.spec.dtype is torch.bool
