"""Joined tensors on a GPU whose parts are computed where they stand, and sums of joined tensors part by part.

    cat([f(a, b), g(a, b)], 1)    ->    one kernel over a and b that writes both halves of the result

A kernel that writes a joined tensor computes every part at every point and chooses. Where the parts are computed, and
nothing but library calls and the caller read the whole, each part is a view of its memory.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch

from fx_interface.errors import UserLocation
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.lower.storage import Values, operand_of
from inductor_codegen.lower.values import (
    Cat,
    ExternalCall,
    Formula,
    Lowered,
    Operand,
    Placed,
    Pointwise,
    Reduction,
    Value,
    operands_of,
    placed_in,
)
from inductor_codegen.lower.views import Layout


def part_by_part(
    formula: Formula, name: str, spec: TensorSpec, values: Values, where: UserLocation | None
) -> Formula:
    """A conversion of a joined tensor, or a reduction that keeps the dimension along which it is joined, as the joined
    conversions or reductions of its parts, which are added to ``values``; else ``formula``."""
    match formula:
        case Pointwise("convert_dtype", (Operand() as operand,), compute):
            joined = _computed_parts(operand, values.result)
            if joined is None:
                return formula
            made: list[Formula] = [Pointwise("convert_dtype", (part,), compute) for part in joined.operands]
            dim = joined.dim
        case Reduction(kind, operand, dims):
            joined = _computed_parts(operand, values.result)
            if joined is None or joined.dim in dims:
                return formula
            made = [Reduction(kind, part, dims) for part in joined.operands]
            dim = joined.dim - sum(reduced < joined.dim for reduced in dims)
        case _:
            return formula
    parts = []
    for count, (part, source) in enumerate(zip(made, joined.operands, strict=True)):
        sizes = (*spec.sizes[:dim], source.sizes[joined.dim], *spec.sizes[dim + 1 :])
        laid = TensorSpec(sizes, contiguous_strides(sizes), spec.dtype, spec.device)
        parts.append(operand_of(values.add_value(f"{name}_{count}", laid, part, where)))
    return Cat(tuple(parts), joined.starts, dim)


def place_parts(lowered: Lowered, env: ShapeEnv) -> None:
    """Let the parts of joined tensors be computed in their memory where that is all that is read of them."""
    read = {operand.source for value in lowered.values for operand in _read_by(value)}
    whole = set(_given_away(lowered))
    for value in lowered.values:
        if not isinstance(value.formula, Cat) or value.number in read or value.number not in whole:
            continue
        joined = _computed_parts(operand_of(value), lowered)
        if joined is None or not _stand_alone(joined, lowered, whole):
            continue
        for operand, start in zip(joined.operands, joined.starts, strict=True):
            part = lowered.values[operand.source]
            part.strides = value.strides
            lowered.within[part.number] = (value.number, env.simplify(start * value.strides[joined.dim]))
        _make_call(value, joined, lowered)


def _computed_parts(operand: Operand, lowered: Lowered) -> Cat | None:
    """How a tensor on a GPU is joined, if it is, and of parts that kernels compute."""
    value = lowered.values[operand.source]
    if operand.views or value.device.type != "cuda" or not isinstance(value.formula, Cat):
        return None
    for part in value.formula.operands:
        formula = lowered.values[part.source].formula
        computed = isinstance(formula, (Pointwise, Reduction)) and not _copies(formula)
        if part.views or not computed:
            return None
    return value.formula


def _copies(formula: Formula) -> bool:
    return isinstance(formula, Pointwise) and formula.op == "clone"


def _stand_alone(joined: Cat, lowered: Lowered, whole: set[int]) -> bool:
    """Whether each part is one of its own, of the whole's dtype, and no part of something else."""
    numbers = [operand.source for operand in joined.operands]
    return (
        len(set(numbers)) == len(numbers)
        and not any(number in lowered.within or number in whole for number in numbers)
        and not any(isinstance(lowered.values[number].formula, Reduction) for number in numbers)
    )


def _make_call(value: Value, joined: Cat, lowered: Lowered) -> None:
    """The joined tensor is what a call gives, before the first call that stands behind it."""
    parts = tuple(
        Placed(operand.source, Layout(operand.sizes, value.strides, 0)) for operand in joined.operands
    )
    value.formula = None
    value.call = ExternalCall(
        torch.ops.aten.cat.default, (parts, joined.dim), (), (value.number,), False, value.where
    )
    behind = (
        place for place, call in enumerate(lowered.calls) if max(_numbers(call), default=-1) > value.number
    )
    lowered.calls.insert(next(behind, len(lowered.calls)), value.call)


def _numbers(call: ExternalCall) -> Iterator[int]:
    yield from (number for number in (*call.results, call.token) if number is not None)
    for argument in (*call.args, *(item for _, item in call.kwargs)):
        yield from (placed.source for placed in placed_in(argument))


def _read_by(value: Value) -> tuple[Operand, ...]:
    return () if value.formula is None else operands_of(value.formula)


def _given_away(lowered: Lowered) -> Iterator[int]:
    """What library calls and the caller get."""
    for output in lowered.outputs:
        if isinstance(output, Placed):
            yield output.source
    for call in lowered.calls:
        for argument in (*call.args, *(item for _, item in call.kwargs)):
            yield from (placed.source for placed in placed_in(argument))
