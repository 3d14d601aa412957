"""``max`` and ``min`` over all kinds of values, of sizes too."""

from __future__ import annotations

import sys

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.content.choices import choose
from dynamo_capture.semantics.tensors.content.conditions import as_tensor
from dynamo_capture.values import NONE, Value, is_none, size_value
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.chosen import ChosenValue
from fx_interface.symbols import Expr, maximum, minimum

_EMPTY = "iterable argument is empty" if sys.version_info >= (3, 12) else "arg is an empty sequence"


def _extreme(tx: Context, args: list[Value], kwargs: dict[str, Value], symbol: str) -> Value:
    """``max`` (``>``) or ``min`` (``<``)."""
    if len(args) > 1 and "default" in kwargs:
        raise GraphBreak(NOT_IN_PYTHON, "max() or min() of several arguments gets a default")
    key, best, sizes = kwargs.get("key", NONE), None, []
    for item in args if len(args) > 1 else args[0].one_by_one(tx):
        is_size = item.expr is not None or (not isinstance(item, ChosenValue) and item.python_type() is int)
        if best is None and is_none(key) and is_size:
            sizes.append(item)  # comparing them does nothing else
            continue
        for waiting in sizes:
            best = _better(tx, symbol, key, waiting, best)
        sizes.clear()
        best = _better(tx, symbol, key, item, best)
    if sizes:
        found = _symbolic_extreme(sizes, symbol) if any(n.expr is not None for n in sizes) else None
        if found is not None:
            return found
        for waiting in sizes:
            best = _better(tx, symbol, key, waiting, best)
    if best is not None:
        return best[1]
    if "default" in kwargs:
        return kwargs["default"]
    raise tx.raises(ValueError, f"{'max' if symbol == '>' else 'min'}() {_EMPTY}")


def _better(
    tx: Context, symbol: str, key: Value, item: Value, best: tuple[Value, Value] | None
) -> tuple[Value, Value]:
    """The one of two items, each beside what ``key`` makes of it, that ``max`` or ``min`` keeps."""
    ranked = (item if is_none(key) else key.call(tx, [item], {}), item)
    if best is None:
        return ranked
    chosen = floats.extreme(tx, symbol, best[1], item) if is_none(key) else None
    if chosen is not None:
        return chosen, chosen
    answer = tx.operators.compare(symbol, ranked[0], best[0])
    if isinstance(answer, ChosenValue):  # a tensor, or what Python says of numbers: both have the same truth
        answer = answer.yes
    if isinstance(answer, DataCondition) and not is_none(key):
        answer = as_tensor(tx, answer)
        of_floats = floats.chosen(tx, answer, ranked[0], best[0])
        one = None if of_floats is None else choose(tx, answer, item, best[1])
        if of_floats is not None and one is not None:
            return of_floats, one
    rank, one = (choose(tx, answer, mine, theirs) for mine, theirs in zip(ranked, best, strict=True))
    if rank is not None and one is not None:
        return (one if is_none(key) else rank), one
    return ranked if tx.truth(answer) else best


def _symbolic_extreme(items: list[Value], symbol: str) -> Value | None:
    numbers: list[int | Expr] = []
    for item in items:
        if item.expr is not None:
            numbers.append(item.expr)
        elif (known := item.known_as(int)) is not None:
            numbers.append(known)
        else:
            return None
    total = numbers[0]
    for number in numbers[1:]:
        total = maximum(total, number) if symbol == ">" else minimum(total, number)
    return size_value(total)


@handles(max)
def largest(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _extreme(tx, args, kwargs, ">")


@handles(min)
def smallest(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _extreme(tx, args, kwargs, "<")
