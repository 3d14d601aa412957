"""Integers among indices that are open: ``x[i, :, j:]`` where ``i`` and ``j`` differ from call to call, came out of
tensors, or are such tensors.

Torch takes such an index as Python's integer: it asks for the number. Here each of them is a ``select`` of its
dimension, the last one first, and what is left of the key indexes that view. A slice with bounds from data is cut
before; torch leaves others open by itself.

    x[i, :, j:] -> aten.slice(x, 2, j).select(0, i)[:, :]
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.content import data_numbers
from dynamo_capture.values import (
    Const,
    ListValue,
    SliceValue,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    one_tensor,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import RangeList
from dynamo_capture.values.containers.ranges import SymRange
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import RuntimeFloat
from fx_interface.symbols import Expr, Relation

FUNCTIONS = (operator.getitem, operator.setitem)
"""Reading and writing by an index."""
_EVERYTHING = Const(slice(None))
_MASKS = (torch.bool, torch.uint8)
_PLAIN = (int, float, complex, slice, type(None), type(...), tuple)


def without_open_integers(tx: Context, owner: TensorValue, key: Value) -> tuple[TensorValue, Value | None]:
    """A view of ``owner`` with the open integers among the indices selected, and the rest of the key: None where
    nothing is left of it. The same tensor and key where there are none, or a dimension cannot be told."""
    items = [tx.force(item) for item in key.items] if isinstance(key, TupleValue) else [key]
    ranges = {place: _bounds(item) for place, item in enumerate(items) if _bounds(item)}
    for place, bounds in ranges.items():
        items[place] = _places(tx, bounds)
    if ranges:
        key = TupleValue(items) if isinstance(key, TupleValue) else items[0]
    if key.expr is not None and not owner.meta.spec.sizes:  # torch tells the number
        tx.fold(lambda: torch.zeros((), device="cpu")[tx.integer(key)])
    if any(_is_refused(tx, item) for item in items):
        raise GraphBreak(
            UNTRACEABLE, "an index is a text, or of another kind that torch warns of or looks into"
        )
    lists = [place for place, item in enumerate(items) if _is_open_list(tx, item)]
    for place in lists:
        items[place] = _tensor_of(tx, items[place])
    if lists:
        key = TupleValue(items) if isinstance(key, TupleValue) else items[0]
    numbers = {place: item for place, item in enumerate(items) if _may_be_number(tx, item)}
    slices = {place: item for place, item in enumerate(items) if _has_open_bounds(tx, item)}
    varying = {
        place: number
        for place, item in enumerate(items)
        if place not in numbers and (number := _open_integer(item)) is not None
    }
    dims = _dimensions(items, len(owner.meta.spec.sizes)) if numbers or slices or varying else None
    if dims is None:
        return owner, key
    sizes = owner.meta.spec.sizes
    numbers |= {place: item for place, item in varying.items() if _exists(tx, item, sizes[dims[place]])}
    for place, item in slices.items():
        owner = _cut(tx, owner, dims[place], item)
        items[place] = _EVERYTHING
    taken = {place: _number(tx, item) for place, item in numbers.items()}
    for place in sorted(taken, reverse=True):
        if taken[place] is not None:
            found = owner.call_method(tx, "select", [Const(dims[place]), taken[place]], {})  # type: ignore[list-item]
            assert isinstance(found, TensorValue)
            owner = found
    rest = [item for place, item in enumerate(items) if taken.get(place) is None]
    return owner, TupleValue(rest) if rest else None


def checked(function: Any, args: Sequence[Value], known: list[TensorValue]) -> list[TensorValue]:
    """The tensors whose content is ``known``. A graph break where one is a mask, which becomes a bool, and what is
    stored by it has another dtype: ``x[True] = y`` converts it, and ``x[torch.tensor(True)] = y`` is refused."""
    if function is operator.setitem and any(one.meta.spec.dtype in _MASKS for one in known):
        dtypes = {one.meta.spec.dtype for one in (args[0], args[2]) if isinstance(one, TensorValue)}
        if len(dtypes) > 1:
            raise GraphBreak(UNTRACEABLE, "a tensor of another dtype is stored by a mask")
    return known


def with_tensors(tx: Context, value: Value) -> Value:
    """An index, or what is stored there, with tensors in place of numpy's arrays: torch takes arrays nowhere else."""
    if isinstance(value, ArrayValue):
        return value.as_tensor(tx)
    if isinstance(value, TupleValue) and any(isinstance(tx.force(item), ArrayValue) for item in value.items):
        return TupleValue([with_tensors(tx, tx.force(item)) for item in value.items], value.cls)
    return value


def _is_refused(tx: Context, item: Value, within: bool = False) -> bool:
    """Whether an index is none that torch takes as what it is in Python: of a text and of another sequence it warns
    first, a number or array of numpy it refuses, rounds or (``within`` a list) takes for a mask by its class, and a
    list of other things than numbers it takes for a tuple."""
    if isinstance(item, ListValue):
        return any(_is_refused(tx, tx.force(part), within=True) for part in item.items)
    if within and not isinstance(item, (Const, SymValue)):
        return True
    if isinstance(item, ArrayValue):
        dtype = item.as_tensor(tx).meta.spec.dtype
        return dtype.is_floating_point or dtype.is_complex
    if not isinstance(item, Const) or isinstance(item, RuntimeFloat):
        return False
    if isinstance(item.value, numpy_types.SCALARS):
        return item.value.dtype.kind in ("bufc" if within else "fc")  # type: ignore[attr-defined]
    return not isinstance(item.value, (int, float) if within else _PLAIN)


def _bounds(item: Value) -> list[Value]:
    """The bounds of the range that an index is, or of which it is the list; none for another index."""
    if isinstance(item, RangeList) and item.is_unread:
        return list(item.range.bounds)
    if isinstance(item, SymRange):
        return list(item.bounds)
    known = item.known_as(range)
    return [] if known is None else [Const(known.start), Const(known.stop), Const(known.step)]


def _places(tx: Context, bounds: list[Value]) -> Value:
    """The tensor that torch makes of a range, of which it asks no mode of the program."""
    options: dict[str, Value] = {"dtype": Const(torch.int64), "device": Const(torch.device("cpu"))}
    with tx.tensors.modes.without(len(tx.tensors.modes.active)):
        return tx.tensors.call_function(torch.arange, bounds, options)


def _is_open_list(tx: Context, item: Value) -> bool:
    """Whether an index is a list of integers, some of which are open: torch makes a tensor of it."""
    if not isinstance(item, ListValue):
        return False
    parts = [tx.force(part) for part in item.items]
    known = all(part.expr is not None or part.known_as(int) is not None for part in parts)
    return known and any(part.expr is not None for part in parts)


def _tensor_of(tx: Context, item: Value) -> Value:
    """What torch makes of a list of integers, of which it asks no mode of the program."""
    options: dict[str, Value] = {"dtype": Const(torch.int64), "device": Const(torch.device("cpu"))}
    with tx.tensors.modes.without(len(tx.tensors.modes.active)):
        return Const(torch.tensor).call(tx, [item], options)


def _has_open_bounds(tx: Context, item: Value) -> bool:
    """Whether a slice begins or ends where only data tell."""
    if not isinstance(item, SliceValue):
        return False
    start, stop, step = map(tx.force, item.bounds)
    known = isinstance(step, Const) and (step.value is None or type(step.value) is int)
    return known and (_may_be_number(tx, start) or _may_be_number(tx, stop))


def _cut(tx: Context, owner: TensorValue, dim: int, item: Value) -> TensorValue:
    assert isinstance(item, SliceValue)
    bounds = [tx.force(bound) for bound in item.bounds]
    start, stop = (_number(tx, bound) or bound for bound in bounds[:2])
    step = bounds[2] if bounds[2].as_constant() is not None else Const(1)
    args = [owner, Const(dim), start, stop, step]
    return one_tensor(tx.tensors.call_function(torch.ops.aten.slice.Tensor, args, {}))


def _may_be_number(tx: Context, item: Value) -> bool:
    """Whether an index is one integer from data."""
    if item.expr is not None:
        return tx.env.is_from_data(item.expr)
    if not isinstance(item, TensorValue) or item.meta.spec.sizes or item.meta.spec.dtype is torch.uint8:
        return False
    content = item.content
    if content is not None:
        return isinstance(content, SymValue) and tx.env.is_from_data(content.expr)
    return data_numbers.is_one_integer(item)


def _open_integer(item: Value) -> SymValue | None:
    """The integer that an index is, or that a tensor without dimensions holds, if it varies."""
    if isinstance(item, TensorValue) and not item.meta.spec.sizes:
        item = item.content if isinstance(item.content, SymValue) else item
    return item if isinstance(item, SymValue) else None


def _exists(tx: Context, item: SymValue, size: int | Expr) -> bool:
    """Whether an integer that varies is an index of a dimension of this size; torch words what it says of others."""
    if tx.env.is_from_data(size):
        return False
    if tx.decide(Relation("<=", 0, item.expr)):
        return tx.decide(Relation("<", item.expr, size))
    return tx.decide(Relation("<=", 0, item.expr + size))


def _number(tx: Context, item: Value) -> Value | None:
    if isinstance(item, TensorValue):
        return item.content if isinstance(item.content, SymValue) else data_numbers.take_out(tx, item)
    return item


def _dimensions(items: list[Value], rank: int) -> list[int] | None:
    """The dimension of the tensor at which each index stands; None where an index is none of the usual ones."""
    widths: list[Any] = [item.index_width() for item in items]
    if None in widths:
        return None
    known = sum(width for width in widths if width is not ...)
    if known > rank or widths.count(...) > 1:
        return None
    dims, dim = [], 0
    for width in widths:
        dims.append(dim)
        dim += rank - known if width is ... else width
    return dims
