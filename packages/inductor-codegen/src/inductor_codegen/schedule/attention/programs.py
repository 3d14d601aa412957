"""Programs as scalars: the graph that an operator is given as text, at a symbolic point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from fx_interface.attention.programs import program_of
from fx_interface.errors import UnsupportedProgramError
from fx_interface.symbols import ShapeEnv
from inductor_codegen.ir.index import Index
from inductor_codegen.ir.program import Buffer
from inductor_codegen.ir.scalar import Scalar, ScalarBuilder
from inductor_codegen.lower.lowering import Lowering
from inductor_codegen.lower.values import Number, Placed
from inductor_codegen.lower.views import Layout
from inductor_codegen.schedule.kernels.evaluate import Evaluator


class Unwritten(UnsupportedProgramError):
    """Why a program, or a call, is no kernel."""

    def __init__(self, why: str) -> None:
        super().__init__("IND122", why)


def scalars_of(
    text: str,
    points: Sequence[Scalar],
    operands: Sequence[tuple[str, Layout] | None],
    last: Sequence[Scalar],
    env: ShapeEnv,
    make: ScalarBuilder,
) -> list[Scalar]:
    """The results of a program whose inputs are ``points``, ``operands`` (a parameter's name and layout; None for a
    size, which the program names) and ``last``.
    """
    lowering = Lowering(env)
    lowering.run(program_of(text))
    lowered = lowering.result
    if lowered.calls:
        raise Unwritten(f"a library's operator, {lowered.calls[0].op}, is called for each score")
    numbers = {value.name: value.number for value in lowered.values}
    computed = {value.number for value in lowered.values if value.formula is not None}
    evaluator = Evaluator(lowered, env, make, computed)
    given: list[Scalar | tuple[str, Layout] | None] = [*points, *operands, *last]
    for declared, one in zip(lowered.inputs, given, strict=True):
        if not isinstance(declared, Buffer):
            continue
        number = numbers[declared.name]
        if isinstance(one, tuple):
            value = lowered.values[number]
            value.name, value.strides = one[0], one[1].strides
        elif one is not None:
            evaluator.known(number, (), one)
    found = []
    for output in lowered.outputs:
        if isinstance(output, Number):
            raise Unwritten("a program returns a size")
        if not isinstance(output, Placed) or lowered.values[output.source].sizes:
            raise Unwritten("a program returns what is no number of its own")
        found.append(evaluator.value(output.source, ()))
    return found


def kept_points(make: ScalarBuilder, points: Sequence[Index]) -> list[Scalar]:
    """The places of a point as scalars."""
    return [make.index_value(point, torch.int64) for point in points]


def operand_layouts(
    places: Sequence[int], tensors: Mapping[int, tuple[str, Layout]], count: int
) -> list[tuple[str, Layout] | None]:
    """What a program gets for its operands: those behind the ``count`` tensors are sizes."""
    return [tensors[place] if place < count else None for place in places]
