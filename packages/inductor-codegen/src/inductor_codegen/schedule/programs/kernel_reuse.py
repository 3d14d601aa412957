"""Kernel reuse: groups that compute the same from values laid out alike share one kernel, which is then built
once.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import assert_never

from inductor_codegen.lower.values import (
    Argument,
    Cat,
    Depthwise,
    Fill,
    Formula,
    Gather,
    Iota,
    Lowered,
    Number,
    Operand,
    Pad,
    Pointwise,
    Reduction,
    RuntimeFloat,
    Value,
)
from inductor_codegen.schedule.fusion.groups import Group


class GroupKey:
    """What a group's kernel depends on. ``values`` lists the group's values and inputs in the order in which
    ``key`` numbers them, ``floats`` the names of the floats that it is given.
    """

    __slots__ = ("_lowered", "_numbers", "floats", "key", "values")

    def __init__(self, group: Group, lowered: Lowered) -> None:
        self._lowered = lowered
        self._numbers: dict[int, int] = {}
        self.values: list[Value] = []
        self.floats: list[str] = []
        outer = group.domain.outer
        parts: list[Hashable] = [tuple(group.domain.dims), None if outer is None else tuple(outer)]
        for number in sorted(group.members):
            value = lowered.values[number]
            position = tuple(sorted(known.value for known in group.members[number]))
            assert value.formula is not None
            formula = self._formula(value.formula)
            own = self._number(number)
            parts.append((own, position, value.dtype, value.sizes, formula, number in group.reductions))
        for number, stands in sorted(group.stored.items()):
            value = lowered.values[number]
            parts.append((self._number(number), stands, value.strides))
        inputs = [(n, lowered.values[m]) for m, n in self._numbers.items() if m not in group.members]
        parts.append(tuple((n, value.sizes, value.strides, value.dtype) for n, value in inputs))
        self.key: Hashable = tuple(parts)

    def _number(self, number: int) -> int:
        found = self._numbers.get(number)
        if found is None:
            found = self._numbers[number] = len(self.values)
            self.values.append(self._lowered.values[number])
        return found

    def _operand(self, operand: Operand) -> Hashable:
        return self._number(operand.source), operand.views

    def _argument(self, arg: Argument) -> Hashable:
        match arg:
            case Operand():
                return self._operand(arg)
            case Number(value):
                return type(value).__name__, repr(value) if isinstance(value, float) else value
            case RuntimeFloat(name):
                if name not in self.floats:
                    self.floats.append(name)
                return "float", self.floats.index(name)
        assert_never(arg)

    def _formula(self, formula: Formula) -> Hashable:
        match formula:
            case Pointwise(op, args, compute):
                return op, compute, tuple(map(self._argument, args))
            case Fill(value):
                return "fill", self._argument(value)
            case Iota(start, step):
                return "iota", start, step
            case Pad(operand, low, value):
                return "pad", self._operand(operand), low, self._argument(Number(value))
            case Cat(operands, starts, dim):
                return "cat", tuple(map(self._operand, operands)), starts, dim
            case Gather(operand, indices, index_dims, rest, wraps):
                listed = tuple(None if index is None else self._operand(index) for index in indices)
                return "gather", self._operand(operand), listed, index_dims, rest, wraps
            case Reduction(kind, operand, dims):
                return kind, self._operand(operand), dims
            case Depthwise(image, weight, bias, windows, transposed):
                added = None if bias is None else self._operand(bias)
                return "depthwise", self._operand(image), self._operand(weight), added, windows, transposed
        assert_never(formula)
