"""``x.view(n, -1, 4)`` where only data tell ``n``: the size that is left open, as a formula.

Torch refuses such a shape where ``n`` is 0, since any size would do: that ``n`` is not 0 is checked in the graph.
"""

from __future__ import annotations

from dynamo_capture.semantics.tensors.content.data_numbers import state
from dynamo_capture.values import (
    ListValue,
    TensorValue,
    TupleValue,
    Value,
    size_of,
    size_value,
)
from dynamo_capture.values.base import Context
from fx_interface.symbols import IntLike, Relation, floordiv

NAMES = frozenset({"view", "reshape"})


def with_all_sizes(tx: Context, args: list[Value]) -> list[Value]:
    """The arguments of ``view`` or ``reshape`` without a -1, where only data tell what it stands for."""
    if len(args) < 2 or not isinstance(args[0], TensorValue):
        return args
    shape = args[1]
    packed = isinstance(shape, (TupleValue, ListValue))
    items = [tx.force(item) for item in (shape.items if packed else args[1:])]  # type: ignore[attr-defined]
    sizes = [size_of(item) for item in items]
    if any(size is None for size in sizes) or sizes.count(-1) != 1:
        return args
    known: IntLike = 1
    for size in sizes:
        if size != -1:
            known = known * size  # type: ignore[operator]
    if not tx.env.is_from_data(known):
        return args
    numel = args[0].meta.spec.numel
    left = floordiv(numel, known)
    some = Relation("<", 0, known)
    if left * known != numel or tx.env.known(some) is False:
        return args
    if tx.env.known(some) is None:
        state(tx, some, "cannot reshape tensor of 0 elements into a shape with -1 for any size")
    items[sizes.index(-1)] = size_value(left)
    return [args[0], TupleValue(items)] if packed else [args[0], *items]
