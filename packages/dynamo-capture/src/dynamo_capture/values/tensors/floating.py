"""Floats that are known only when the code runs: read then, and computed with as tensors without dimensions.

Those that differ between calls, what follows from them and from integers that differ, and those that are taken out of
tensors. Whoever asks for the value of one that the program reads gets it, and fixes it: from then on the compiled code
holds for this value only. Arithmetic with tensors and numbers does not ask.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.guard_kinds.floats import FloatCompares
from dynamo_capture.sources.formulas import FUNCTIONS, Formula, number
from dynamo_capture.sources.number_facts import COMPARISONS
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.functions import BuiltinMethod
from dynamo_capture.values.tensors.float_bounds import NO_BOUNDS, Bounds
from dynamo_capture.values.tensors.tensor import TensorMeta, TensorValue
from fx_interface.source import Source
from fx_interface.tensor_spec import TensorSpec

SPEC = TensorSpec((), (), torch.float64, torch.device("cpu"))
"""Such a float in the graph."""


class RuntimeFloat(Const):
    """A float known only when the code runs, as long as nobody has asked for its ``value``.

    ``formula``: how it follows from what the program reads, if that is known; ``is_positive``: it is, whatever is read.
    """

    __slots__ = ("_tensor", "_tx", "formula", "is_open", "is_positive", "varies")

    def __init__(
        self, tx: Context, source: Source | None, formula: Formula | None, is_positive: bool = False
    ) -> None:
        self._tx = tx
        self._tensor: TensorValue | None = None
        self.source = source
        self.formula = formula
        self.is_positive = is_positive
        self.is_open = self.varies = True

    def python_type(self) -> type:
        return float

    @property
    def value(self) -> Any:
        """The value in this call; from now on the trace depends on it. NotConstant where no guard could say so."""
        self.fix()
        assert self.formula is not None
        return self.formula.value

    @property
    def is_unread(self) -> bool:
        """Whether nothing depends on the value so far."""
        return self.is_open

    @property
    def is_handed_on(self) -> bool:
        """Whether it goes where it goes as it is."""
        return self.is_open

    @property
    def can_be_fixed(self) -> bool:
        """Whether a guard can say that the value is the same."""
        return self.formula is not None

    def fix(self) -> None:
        """Depend on the value."""
        self.is_open = self.varies = False

    def tensor(self) -> TensorValue:
        """The float in the graph."""
        if self._tensor is None:
            assert self.source is not None
            node = self._tx.output.float_input(self.source, self.in_this_call(), SPEC)
            self._tensor = TensorValue(node, TensorMeta.of(SPEC, False, True, torch.Tensor))
            if self.formula is not None:
                self._tx.tensors.followed.note(self._tensor, self.formula)
        return self._tensor

    def in_this_call(self) -> float:
        """The value, for whoever does not depend on it."""
        assert self.formula is not None
        return float(self.formula.value)

    def identity(self) -> object:
        return self

    def compare(self, symbol: str, other: RuntimeFloat | int | float) -> bool:
        """``value symbol other``; from now on the trace depends on the answer."""
        theirs = other.formula if isinstance(other, RuntimeFloat) else number(other)
        if self.formula is None or theirs is None:
            raise NotConstant(self)
        return self._tx.facts.decide(self.formula, symbol, theirs)

    def truth(self, tx: Context) -> bool:
        return self.compare("!=", 0)

    def get_attr(self, tx: Context, name: str) -> Value:
        return BuiltinMethod(self, name) if f"float.{name}" in FUNCTIONS else super().get_attr(tx, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        computed = tx.numbers.method(f"float.{name}", self, args, kwargs) if self.is_unread else None
        return computed if computed is not None else super().call_method(tx, name, args, kwargs)


class InputFloat(RuntimeFloat):
    """A float that the program reads."""

    __slots__ = ()

    def __init__(self, tx: Context, real: float, source: Source) -> None:
        super().__init__(tx, source, Formula(real, source=source))
        tx.guards.type_is(source, float)

    def fix(self) -> None:
        if self.is_open:
            assert self.source is not None
            assert self.formula is not None
            self._tx.guards.equals(self.source, self.formula.value)
        self.is_open = self.varies = False

    def compare(self, symbol: str, other: RuntimeFloat | int | float) -> bool:
        if isinstance(other, RuntimeFloat):
            return super().compare(symbol, other)
        assert self.formula is not None
        answer = COMPARISONS[symbol](self.formula.value, other)
        if self.is_open:
            assert self.source is not None
            where = self._tx.where()
            self._tx.guards.add(FloatCompares(self.source, symbol, other, answer, where=where))
        return answer


class FormulaFloat(RuntimeFloat):
    """A float that follows from numbers alone: computed before the graph runs. ``source`` says how."""

    __slots__ = ()

    def fix(self) -> None:
        if self.is_open:
            assert self.formula is not None
            self._tx.facts.fix(self.formula)
        self.is_open = self.varies = False

    def describe(self) -> str:
        return f"the float {self.formula}"


class DrawnFloat(RuntimeFloat):
    """A random number, ``drawn`` in this call, that the replacement code draws before the graph runs.

    What it is, nothing may depend on.
    """

    __slots__ = ("drawn",)

    def __init__(self, tx: Context, real: float, source: Source) -> None:
        super().__init__(tx, source, None)
        self.drawn = real

    def in_this_call(self) -> float:
        return self.drawn

    def fix(self) -> None:
        raise GraphBreak(UNKNOWN_VALUE, "a random number decides what Python does")

    def compare(self, symbol: str, other: RuntimeFloat | int | float) -> bool:
        self.fix()
        raise AssertionError


class LateFloat(RuntimeFloat):
    """``function(*operands)`` of floats that only data tell, which Python computes when the graph has run: what is only
    logged, or returned. The graph has no such float."""

    __slots__ = ("function", "operands")

    def __init__(self, tx: Context, function: Callable[..., float], operands: tuple[Value, ...]) -> None:
        super().__init__(tx, None, None)
        self.function = function
        self.operands = operands

    def children(self, tx: Context) -> list[Value]:
        return list(self.operands)

    def tensor(self) -> TensorValue:
        raise GraphBreak(UNKNOWN_VALUE, f"{self.describe()} is not known in the graph")

    def fix(self) -> None:
        raise NotConstant(self)

    def describe(self) -> str:
        return f"what {self.function.__name__} gives when the graph has run"


class ComputedFloat(RuntimeFloat):
    """A float that the program computes from others, ``operands``, or takes out of a tensor: then there are none.
    ``bounds``: what is known of it without data."""

    __slots__ = ("_operands", "bounds")

    def __init__(
        self,
        tx: Context,
        formula: Formula | None,
        operands: tuple[RuntimeFloat, ...],
        tensor: TensorValue,
        is_positive: bool = False,
        bounds: Bounds = NO_BOUNDS,
    ) -> None:
        super().__init__(tx, None, formula, is_positive)
        self.bounds = bounds
        self._operands = operands
        self._tensor = tensor

    @property
    def can_be_fixed(self) -> bool:
        known = self.formula is not None and bool(self._operands)
        return known and all(operand.can_be_fixed for operand in self._operands)

    def fix(self) -> None:
        if not self.can_be_fixed:
            raise NotConstant(self)
        for operand in self._operands:
            operand.fix()
        self.is_open = self.varies = False

    def describe(self) -> str:
        return "a float that is computed when the code runs"
