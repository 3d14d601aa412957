"""Sizes from data that are known all the same, because the content that decides about them is.

    torch.repeat_interleave(x, counts)    with ``counts`` that hold 2 and 3: 5 rows
    x[mask], mask.nonzero()               with a known mask

The operation is a node like any other, and its size a symbol that is born there: the graph states what it is, for
whoever reads the graph later. From there on it is a constant.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from dynamo_capture.semantics.tensors.content import contents, data_numbers
from dynamo_capture.values import TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from fx_interface.symbols import Expr, Relation

_MOST_ELEMENTS = 2**20
"""The operation is run once on tensors of no more elements, to see how large its result is."""

_BY_FORM = frozenset({operator.getitem, torch.Tensor.repeat_interleave, torch.repeat_interleave})
"""What takes of its first argument no more than the form to tell how large its result is."""


def settle(
    tx: Context, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value], result: Value
) -> None:
    """Give the sizes of ``result``, a tensor whose size only data tell, if they follow from known contents."""
    if not isinstance(result, TensorValue) or not contents.is_of_torch(function):
        return
    origins: contents.Origins = {}
    given = [contents.plain(tx, value, origins) for value in args]
    named = {name: contents.plain(tx, value, origins) for name, value in kwargs.items()}
    if function in _BY_FORM and given[0] is contents.UNKNOWN:
        given[0] = _of_its_form(args[0])
    if any(value is contents.UNKNOWN for value in (*given, *named.values())):
        return
    if not all(isinstance(one, TensorValue) and tx.policy.is_decisive(one.source) for one in origins):
        return  # it would be that of this call only, or a guard on what decides nothing
    try:
        with torch.no_grad():
            found = function(*given, **named)
    except Exception:
        return
    _state(tx, result, tuple(found.shape), [*args, *kwargs.values()])


def _of_its_form(value: Value) -> Any:
    """A tensor without content of its own that looks like the argument."""
    if not isinstance(value, TensorValue):
        return contents.UNKNOWN
    spec = value.meta.spec
    sizes = [size for size in spec.sizes if isinstance(size, int)]
    if len(sizes) != spec.rank or math.prod(sizes) > _MOST_ELEMENTS:
        return contents.UNKNOWN
    return torch.zeros((), dtype=spec.dtype).expand(sizes)


def _state(tx: Context, result: TensorValue, sizes: tuple[int, ...], args: list[Value]) -> None:
    meta = result.meta
    if len(sizes) != meta.spec.rank:
        return
    for value in args:
        contents.rely(tx, value)
    for size, real in zip(meta.spec.sizes, sizes, strict=True):
        open_size = tx.env.simplify(size)
        if isinstance(open_size, Expr):
            relation = Relation("==", open_size, real)
            data_numbers.state(tx, relation, f"{relation} does not hold")
    strides = tuple(tx.env.simplify(stride) for stride in meta.spec.strides)
    known = replace(meta.spec, sizes=sizes, strides=strides)
    result.meta = TensorMeta.of(known, meta.requires_grad, meta.is_leaf, meta.cls, meta.is_inference)
