"""Layouts of values that nobody outside of a program sees: as their operands lie, so that kernels run along memory.

A pointwise result has the strides that torch would give it. Where a program reshapes a channels-last tensor (group
norm's gradient does) these are row-major, and each kernel that reads or writes the result would walk across memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import IntLike, ShapeEnv
from fx_interface.tensor_spec import contiguous_strides
from inductor_codegen.lower.layouts import seen_through
from inductor_codegen.lower.values import Lowered, Operand, Placed, Pointwise, Value, operands_of, placed_in
from inductor_codegen.lower.views import Layout, Sizes, is_one

_IMAGE = 4
"""Dimensions from which convolutions decide (``lower.images``)."""


def arrange_inner_values(lowered: Lowered, env: ShapeEnv) -> None:
    """Give pointwise values that are neither outputs nor arguments of library calls the order of dimensions in which
    all operands of their size lie, if that is one order; else rows, if one of them lies so and these are no images."""
    turned = {value.number for value in lowered.values if _is_turned(value)}
    if not turned:
        return
    seen = set(_seen_from_outside(lowered))
    for value in lowered.values:
        if value.number in seen or not isinstance(value.formula, Pointwise) or value.formula.op == "clone":
            continue
        operands = operands_of(value.formula)
        if turned.isdisjoint((value.number, *(operand.source for operand in operands))):
            continue
        strides = _common_strides(lowered, operands, value, env)
        if strides is not None:
            value.strides = strides
            (turned.add if _is_turned(value) else turned.discard)(value.number)


def _is_turned(value: Value) -> bool:
    return len(value.sizes) > 1 and value.strides != contiguous_strides(value.sizes)


def _seen_from_outside(lowered: Lowered) -> Iterable[int]:
    for output in lowered.outputs:
        if isinstance(output, Placed):
            yield output.source
    for call in lowered.calls:
        for argument in (*call.args, *(item for _, item in call.kwargs)):
            for placed in placed_in(argument):
                yield placed.source


def _common_strides(
    lowered: Lowered, operands: Iterable[Operand], value: Value, env: ShapeEnv
) -> Sizes | None:
    orders: set[tuple[int, ...]] = set()
    try:
        for operand in operands:
            source = lowered.values[operand.source]
            if _elements(source.sizes, env) < _elements(value.sizes, env):
                continue  # repeated: not what the kernel mostly reads
            layout = seen_through(source.layout, operand.views)
            if layout is None:
                return None
            orders.add(_order(layout, env))
    except UnbackedSymbolError:
        return None
    if len(orders) == 1:
        return _dense_strides(value.sizes, orders.pop())
    rows = contiguous_strides(value.sizes)
    is_image = len(value.sizes) >= _IMAGE
    return rows if not is_image and _order(Layout(value.sizes, rows, 0), env) in orders else None


def _elements(sizes: Sizes, env: ShapeEnv) -> int:
    return prod(map(env.hint, sizes))


def _order(layout: Layout, env: ShapeEnv) -> tuple[int, ...]:
    """The dimensions that are longer than 1, from the longest step to the shortest."""
    long = [dim for dim, size in enumerate(layout.sizes) if not is_one(size)]
    return tuple(sorted(long, key=lambda dim: -env.hint(layout.strides[dim])))


def _dense_strides(sizes: Sizes, order: tuple[int, ...]) -> Sizes:
    strides: list[IntLike] = list(contiguous_strides(sizes))
    step: IntLike = 1
    for dim in reversed(order):
        strides[dim] = step
        step = step * sizes[dim]
    return tuple(strides)
