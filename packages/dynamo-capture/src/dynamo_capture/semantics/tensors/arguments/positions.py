"""Positions that a function of torch takes in a tensor and reads in C: numbers from data, read here instead."""

from __future__ import annotations

import torch

from dynamo_capture.semantics.tensors.content.data_numbers import is_one_integer, list_of, state, take_out
from dynamo_capture.values import Const, SymValue, TensorValue, Value, size_of
from dynamo_capture.values.base import Context
from fx_interface.symbols import Expr, IntLike, Relation, maximum, minimum


def narrow(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``torch.narrow(x, dim, start, length)`` where only data tell the start; None for other arguments.

    The start is counted from the front, and what torch requires of it is checked in the graph.
    """
    given = dict(zip(("input", "dim", "start", "length"), args, strict=False)) | kwargs
    owner, dim, start, length = (given.get(name) for name in ("input", "dim", "start", "length"))
    if not isinstance(owner, TensorValue) or not isinstance(dim, Const) or type(dim.value) is not int:
        return None
    sizes, extent = owner.meta.spec.sizes, size_of(length)
    if len(given) != 4 or extent is None or not -len(sizes) <= dim.value < len(sizes):
        return None
    if isinstance(start, TensorValue) and start.content is None and not start.meta.spec.rank:
        start = take_out(tx, start)
    if start is None or start.expr is None or not tx.env.is_from_data(start.expr):
        return None
    first: IntLike = start.expr
    size = sizes[dim.value]
    if tx.env.known(Relation("<=", 0, first)) is None:
        first = first + size * maximum(minimum(0 - first, 1), 0)
    required = (Relation("<=", 0, first), Relation("<=", first + extent, size))
    if False in map(tx.env.known, required) or not isinstance(first, Expr):
        return None  # torch raises
    for relation in required:
        if tx.env.known(relation) is None:
            state(tx, relation, f"narrow: start or length is out of range ({relation} does not hold)")
    assert length is not None
    return tx.tensors.call_function(torch.narrow, [owner, dim, SymValue(first), length], {})


def tensor_split(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``torch.tensor_split(x, indices)`` where the indices are in a tensor; None for other arguments."""
    if len(args) < 2 or not isinstance(indices := args[1], TensorValue) or indices.content is not None:
        return None
    numbers = None if is_one_integer(indices) and not indices.meta.spec.rank else list_of(tx, indices)
    return (
        None
        if numbers is None
        else tx.tensors.call_function(torch.tensor_split, [args[0], numbers, *args[2:]], kwargs)
    )
