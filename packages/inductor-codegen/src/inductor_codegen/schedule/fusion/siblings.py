"""Reductions that load the same tensor: side by side in one pass they read it once.

    mean = sum(x, rows) / n                     ->    one kernel: a pass for the mean and the variance's first sum,
    var = sum((x - sum(x / n, rows)) ** 2, rows)      and one for its second

On a CPU a pass takes several points at a turn while little is computed at each (``codegen.cpp.loops.
reduction_streams``): sums are joined only where that stays so, which also leaves their order, and so their bits.
"""

from __future__ import annotations

from dataclasses import field

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import product
from inductor_codegen.lower.values import Lowered, Operand, Pointwise, Reduction, Value, operands_of
from inductor_codegen.schedule.fusion.groups import Group, Position

_DEPTH = 12
"""How many pointwise steps are followed to what a reduction loads."""
_MOST_STEPS = 4
"""Operations at a point of a pass up to which sums are joined on a CPU."""


@dataclass(slots=True)
class _Pass:
    """What a pass over the points computes and loads; ``is_followed``: other sums need its totals."""

    steps: set[int] = field(default_factory=set)
    loads: set[Operand] = field(default_factory=set)
    is_followed: bool = False


class Siblings:
    """The groups that hold reductions, by what these load."""

    def __init__(self, lowered: Lowered) -> None:
        self._lowered = lowered
        self._units: dict[int, list[int]] = {}
        self._loaded: dict[int, list[int]] = {}
        self._later: dict[int, bool] = {}
        self._of: dict[int, list[int]] = {}

    def add(self, reduction: Value, unit: int) -> None:
        """The group ``unit`` holds the reduction."""
        for number in self._loads(reduction):
            units = self._units.setdefault(number, [])
            if unit not in units:
                units.append(unit)

    def of(self, reduction: Value) -> list[int]:
        """The groups with a reduction that loads one of the tensors that this one loads, the last first."""
        found = {unit for number in self._loads(reduction) for unit in self._units.get(number, ())}
        return sorted(found, reverse=True)

    def may_join(self, group: Group, other: Group) -> bool:
        """Whether one pass is faster than two, where both groups run over the same points: on a GPU always."""
        if group.device != other.device:
            return False
        if group.device.type != "cpu":
            return True
        if Position.FULL in group.stored.values() or Position.FULL in other.stored.values():
            return False
        first, second = self._first_pass(group), self._first_pass(other)
        if first is None or second is None or (first.is_followed and second.is_followed):
            return False
        return len(first.loads | second.loads) == 1 and len(first.steps | second.steps) <= _MOST_STEPS

    def _first_pass(self, group: Group) -> _Pass | None:
        """What is computed for the sums of a group that need no total; None if something else is reduced, too."""
        found = _Pass()
        for number in group.reductions:
            value = self._lowered.values[number]
            formula = value.formula
            assert isinstance(formula, Reduction)
            if formula.kind != "sum" or not value.dtype.is_floating_point:
                return None
            if self._needs_total(formula.operand.source):
                found.is_followed = True
            else:
                self._follow(formula.operand, found)
        return found

    def _needs_total(self, number: int) -> bool:
        """Whether a value is computed from a total. Each pair of groups asks, so that answers are remembered."""
        found = self._later.get(number)
        if found is None:
            values = self._lowered.values
            found = any(isinstance(values[source].formula, Reduction) for source in self._behind(number))
            self._later[number] = found
        return found

    def _behind(self, number: int) -> list[int]:
        found = self._loaded.get(number)
        if found is None:
            found = self._loaded[number] = loaded_by(number, self._lowered)
        return found

    def _follow(self, operand: Operand, found: _Pass) -> None:
        """Collect the steps and loads behind an operand. What is seen through a view counts as a load of its own."""
        formula = self._lowered.values[operand.source].formula
        if operand.views or not isinstance(formula, Pointwise):
            found.loads.add(operand)
        elif operand.source not in found.steps and len(found.steps) <= _MOST_STEPS:
            found.steps.add(operand.source)
            for each in operands_of(formula):
                self._follow(each, found)

    def _loads(self, reduction: Value) -> list[int]:
        found = self._of.get(reduction.number)
        if found is None:
            found = self._of[reduction.number] = self._loads_anew(reduction)
        return found

    def _loads_anew(self, reduction: Value) -> list[int]:
        formula = reduction.formula
        if not isinstance(formula, Reduction):
            return []
        whole, values = product(formula.operand.sizes), self._lowered.values
        loaded = self._behind(formula.operand.source)
        return [number for number in loaded if product(values[number].sizes) == whole]


def loaded_by(number: int, lowered: Lowered) -> list[int]:
    """The tensors in memory that a value is computed from point by point, nearest first."""
    found: list[int] = []
    nearest, seen, values = [number], {number}, lowered.values
    for depth in range(_DEPTH, -1, -1):
        behind: list[int] = []
        for current in nearest:
            formula = values[current].formula
            if depth == 0 or type(formula) is not Pointwise:
                found.append(current)
                continue
            for operand in operands_of(formula):
                if operand.source not in seen:
                    seen.add(operand.source)
                    behind.append(operand.source)
        if not behind:
            break
        nearest = behind
    return found
