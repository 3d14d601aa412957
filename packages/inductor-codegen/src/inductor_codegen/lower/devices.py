"""What kernels read of tensors on another device.

Eager lets a kernel of a GPU read tensors without dimensions that lie on the CPU (``torch.tensor(2.0)`` in a model), and
moves indices to the GPU. Here such a tensor has a twin on the GPU:

    scale = sqrt(fill(192.0))   # cpu          scale_there = sqrt(fill(192.0))   # cuda, computed where it is read
    x = given(3.0)              # cpu   ->     x_there = fill(number of x)       # a number that kernels are given
    n = given(3)                # cpu          n_there = fill(fill(0), n)        # a launch that takes the number along
    place = given([4, 5])       # cpu          place_there = copy(place)         # waits for the GPU, as in eager

So does what a program moves there without dimensions (``torch.tensor(2.0).to(x.device)``; decompositions move such an
operand, too): of a number that is known or given, nothing is copied, and nothing waits.

What is read on the CPU as well stays there too, and is computed by kernels of the CPU; what those read of the GPU is
copied.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch

from fx_interface.dialects import prims
from fx_interface.errors import UserLocation
from fx_interface.tensor_spec import TensorSpec, contiguous_strides
from inductor_codegen.ir.program import FloatInput
from inductor_codegen.lower.formulas import formula_of
from inductor_codegen.lower.storage import Values, operand_of
from inductor_codegen.lower.values import (
    STRIDED_DTYPES,
    ExternalCall,
    Fill,
    Formula,
    Iota,
    Number,
    Operand,
    Pointwise,
    RuntimeFloat,
    Value,
    operands_of,
)

aten = torch.ops.aten


class Twins:
    """Owner of the values of one graph that have been brought to another device."""

    def __init__(self, values: Values) -> None:
        self._values = values
        self._made: dict[tuple[int, torch.device], Value] = {}
        self._light: list[bool] = []

    def brought(self, argument: Any, device: torch.device, where: UserLocation | None) -> Any:
        """The argument of a primitive that computes on ``device``, with its operands there."""
        if isinstance(argument, tuple):
            return tuple(self.brought(item, device, where) for item in argument)
        if not isinstance(argument, Operand):
            return argument
        if self._values.result.values[argument.source].device == device:
            return argument
        for number in self._missing(argument.source, device):
            self._made[number, device] = self._twin(self._values.result.values[number], device, where)
        return self._there(argument, device)

    def moved(
        self, operand: Operand, spec: TensorSpec, name: str, where: UserLocation | None
    ) -> Operand | None:
        """What a move of a tensor without dimensions from the CPU to a GPU gives: a copy of its twin, computed where it
        is read. None for other moves."""
        source = self._values.result.values[operand.source]
        goes = source.device.type == "cpu" and spec.device.type != "cpu"
        if source.sizes or spec.sizes or not goes or not {source.dtype, spec.dtype} <= STRIDED_DTYPES:
            return None
        twin = self.brought(operand, spec.device, where)
        if spec.dtype is twin.dtype:
            formula = formula_of(prims.clone, spec, (twin,), {})
        else:
            formula = formula_of(prims.convert_dtype, spec, (twin, spec.dtype), {})
        return operand_of(self._values.add_value(name, spec, formula, where))

    def _there(self, operand: Operand, device: torch.device) -> Operand:
        return replace(operand, source=self._made[operand.source, device].number)

    def _missing(self, number: int, device: torch.device) -> list[int]:
        """What has no twin yet of a value and of what its twin is computed from, in topological order."""
        found: set[int] = set()
        pending = [number]
        while pending:
            number = pending.pop()
            if number not in found and (number, device) not in self._made:
                found.add(number)
                formula = self._values.result.values[number].formula
                if isinstance(formula, Pointwise) and self._is_light(number):
                    pending += [operand.source for operand in operands_of(formula)]
        return sorted(found)

    def _is_light(self, number: int) -> bool:
        """Whether a value is computed from numbers alone, and cheaply."""
        values, known = self._values.result.values, self._light
        for value in values[len(known) : number + 1]:
            match value.formula:
                case Fill() | Iota():
                    known.append(True)
                case Pointwise() as formula if not value.sizes:
                    known.append(all(known[operand.source] for operand in operands_of(formula)))
                case _:
                    known.append(_is_number(value))
        return known[number]

    def _twin(self, source: Value, device: torch.device, where: UserLocation | None) -> Value:
        formula = source.formula
        if _is_number(source):
            return self._add(source, device, Fill(RuntimeFloat(self._number(source))), where)
        if formula is not None and self._is_light(source.number):
            if isinstance(formula, Pointwise):
                args = [self._there(arg, device) if isinstance(arg, Operand) else arg for arg in formula.args]
                formula = replace(formula, args=tuple(args))
            return self._add(source, device, formula, where)
        if source.sizes or device.type == "cpu":
            return self._copied(source, device, where)
        return self._told(source, device, where)

    def _number(self, source: Value) -> str:
        """The float that an input holds, by name."""
        result, name = self._values.result, f"{source.name}_number"
        while any(isinstance(given, FloatInput) and given.name == name for given in result.inputs):
            name += "_"
        result.numbers[name] = source.name
        return name

    def _told(self, source: Value, device: torch.device, where: UserLocation | None) -> Value:
        """The number of a tensor without dimensions, as an argument of a launch: nothing waits, and nothing that is
        written to the tensor later is seen."""
        base = self._add(source, device, Fill(Number(0)), where)
        return self._called(source, device, aten.fill.Tensor, (operand_of(base), operand_of(source)), where)

    def _copied(self, source: Value, device: torch.device, where: UserLocation | None) -> Value:
        kwargs = (("device", device),)
        return self._called(source, device, aten._to_copy.default, (operand_of(source),), where, kwargs)

    def _add(
        self, source: Value, device: torch.device, formula: Formula | None, where: UserLocation | None
    ) -> Value:
        spec = TensorSpec(source.sizes, contiguous_strides(source.sizes), source.dtype, device)
        return self._values.add_value(f"{source.name}_there", spec, formula, where or source.where)

    def _called(
        self,
        source: Value,
        device: torch.device,
        op: torch._ops.OpOverload,
        operands: tuple[Operand, ...],
        where: UserLocation | None,
        kwargs: tuple[tuple[str, object], ...] = (),
    ) -> Value:
        placed = tuple(
            self._values.place(operand, where, contiguous_strides(operand.sizes)) for operand in operands
        )
        made = self._add(source, device, None, where)
        made.call = ExternalCall(op, placed, kwargs, (made.number,), False, where)
        self._values.result.calls.append(made.call)
        return made


def _is_number(value: Value) -> bool:
    """Whether it is an input that holds a float, which can be read when the graph is called."""
    given = value.formula is None and value.call is None and value.device.type == "cpu"
    return given and not value.sizes and value.dtype in (torch.float32, torch.float64)
