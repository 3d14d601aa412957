"""Floats that are known only when the code runs: read then, and computed with as tensors without dimensions.

Those that differ between calls, and those that are taken out of tensors. Whoever asks for the value of one that the
program reads gets it, and fixes it: from then on the compiled code holds for this value only. Arithmetic with tensors
and numbers does not ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.errors import GraphBreak, NotConstant
from dynamo_capture.float_guard import FloatCompares
from dynamo_capture.formulas import COMPARISONS, Formula, number
from dynamo_capture.values.constant import Const
from dynamo_capture.values.tensor import TensorMeta, TensorValue
from fx_interface.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace
    from fx_interface.source import Source

SPEC = TensorSpec((), (), torch.float64, torch.device("cpu"))
"""Such a float in the graph."""


class RuntimeFloat(Const):
    """A float known only when the code runs, as long as nobody has asked for its ``value``.

    ``formula``: how it follows from what the program reads, if that is known; ``is_positive``: it is, whatever is read.
    """

    __slots__ = ("_is_fixed", "_tx", "formula", "is_positive")

    def __init__(
        self, tx: Trace, source: Source | None, formula: Formula | None, is_positive: bool = False
    ) -> None:
        self._tx = tx
        self.source = source
        self.formula = formula
        self.is_positive = is_positive
        self._is_fixed = False

    @property
    def value(self) -> Any:
        """The value in this call; from now on the trace depends on it. NotConstant where no guard could say so."""
        self.fix()
        assert self.formula is not None
        return self.formula.value

    @property
    def is_unread(self) -> bool:
        """Whether nothing depends on the value so far."""
        return not self._is_fixed

    def fix(self) -> None:
        """Depend on the value."""
        self._is_fixed = True

    def tensor(self) -> TensorValue:
        """The float in the graph."""
        raise NotImplementedError

    def python_type(self) -> type:
        return float

    def identity(self) -> object:
        return self

    def compare(self, symbol: str, other: RuntimeFloat | int | float) -> bool:
        """``value symbol other``; from now on the trace depends on the answer."""
        theirs = other.formula if isinstance(other, RuntimeFloat) else number(other)
        if self.formula is None or theirs is None:
            raise NotConstant(self)
        return self._tx.facts.decide(self.formula, symbol, theirs)

    def truth(self, tx: Trace) -> bool:
        return self.compare("!=", 0)


class InputFloat(RuntimeFloat):
    """A float that the program reads."""

    __slots__ = ("_tensor",)

    def __init__(self, tx: Trace, real: float, source: Source) -> None:
        super().__init__(tx, source, Formula(real, source=source))
        self._tensor: TensorValue | None = None
        tx.guards.type_is(source, float)

    def fix(self) -> None:
        if not self._is_fixed:
            assert self.source is not None
            assert self.formula is not None
            self._tx.guards.equals(self.source, self.formula.value)
        self._is_fixed = True

    def compare(self, symbol: str, other: RuntimeFloat | int | float) -> bool:
        if isinstance(other, RuntimeFloat):
            return super().compare(symbol, other)
        assert self.formula is not None
        answer = COMPARISONS[symbol](self.formula.value, other)
        if not self._is_fixed:
            assert self.source is not None
            where = self._tx.where()
            self._tx.guards.add(FloatCompares(self.source, symbol, other, answer, where=where))
        return answer

    def tensor(self) -> TensorValue:
        if self._tensor is None:
            assert self.source is not None
            assert self.formula is not None
            node = self._tx.output.float_input(self.source, self.formula.value, SPEC)
            self._tensor = TensorValue(node, TensorMeta.of(SPEC, False, True, torch.Tensor))
            self._tx.tensors.followed.note(self._tensor, self.formula)
        return self._tensor


class DrawnFloat(RuntimeFloat):
    """A random number, ``drawn`` in this call, that the replacement code draws before the graph runs.

    What it is, nothing may depend on.
    """

    __slots__ = ("_tensor", "drawn")

    def __init__(self, tx: Trace, real: float, source: Source) -> None:
        super().__init__(tx, source, None)
        self._tensor: TensorValue | None = None
        self.drawn = real

    def fix(self) -> None:
        raise GraphBreak("CAP211", "a random number decides what Python does")

    def compare(self, symbol: str, other: RuntimeFloat | int | float) -> bool:
        self.fix()
        raise AssertionError

    def tensor(self) -> TensorValue:
        if self._tensor is None:
            assert self.source is not None
            node = self._tx.output.float_input(self.source, self.drawn, SPEC)
            self._tensor = TensorValue(node, TensorMeta.of(SPEC, False, True, torch.Tensor))
        return self._tensor


class ComputedFloat(RuntimeFloat):
    """A float that the program computes from others, ``operands``, or takes out of a tensor: then there are none."""

    __slots__ = ("_operands", "_tensor")

    def __init__(
        self,
        tx: Trace,
        formula: Formula | None,
        operands: tuple[RuntimeFloat, ...],
        tensor: TensorValue,
        is_positive: bool = False,
    ) -> None:
        super().__init__(tx, None, formula, is_positive)
        self._operands = operands
        self._tensor = tensor

    def fix(self) -> None:
        if self.formula is None or not self._operands:
            raise NotConstant(self)
        for operand in self._operands:
            operand.fix()
        self._is_fixed = True

    def tensor(self) -> TensorValue:
        return self._tensor

    def describe(self) -> str:
        return "a float that is computed when the code runs"
