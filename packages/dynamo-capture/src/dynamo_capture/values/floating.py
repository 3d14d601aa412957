"""Floats that differ between calls: read when the code runs, and computed with as tensors without dimensions.

Whoever asks for the value gets it, and fixes it: from then on the compiled code holds for this value only. Arithmetic
with tensors and numbers does not ask.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.errors import GraphBreak
from dynamo_capture.float_guard import COMPARISONS, FloatCompares
from dynamo_capture.values.constant import Const
from dynamo_capture.values.tensor import TensorMeta, TensorValue
from fx_interface.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace
    from fx_interface.source import Source

SPEC = TensorSpec((), (), torch.float64, torch.device("cpu"))
"""Such a float in the graph."""


class RuntimeFloat(Const):
    """A float known only when the code runs, as long as nobody has asked for its ``value``."""

    __slots__ = ("_is_fixed", "_real", "_tx")

    def __init__(self, tx: Trace, real: float, source: Source | None) -> None:
        self._tx = tx
        self._real = real
        self.source = source
        self._is_fixed = False

    @property
    def value(self) -> Any:
        """The value in this call; from now on the trace depends on it."""
        self.fix()
        return self._real

    @property
    def is_unread(self) -> bool:
        """Whether nothing depends on the value so far."""
        return not self._is_fixed

    @property
    def hint(self) -> float:
        """The value in this call, without depending on it."""
        return self._real

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

    def compare(self, symbol: str, number: float) -> bool:
        """``value symbol number``; from now on the trace depends on the answer."""
        return COMPARISONS[symbol](self.value, number)

    def truth(self, tx: Trace) -> bool:
        return self.compare("!=", 0)


class InputFloat(RuntimeFloat):
    """A float that the program reads."""

    __slots__ = ("_tensor",)

    def __init__(self, tx: Trace, real: float, source: Source) -> None:
        super().__init__(tx, real, source)
        self._tensor: TensorValue | None = None
        tx.guards.type_is(source, float)

    def fix(self) -> None:
        if not self._is_fixed:
            assert self.source is not None
            self._tx.guards.equals(self.source, self._real)
        self._is_fixed = True

    def compare(self, symbol: str, number: float) -> bool:
        answer = COMPARISONS[symbol](self._real, number)
        if not self._is_fixed:
            assert self.source is not None
            where = self._tx.where()
            self._tx.guards.add(FloatCompares(self.source, symbol, number, answer, where=where))
        return answer

    def tensor(self) -> TensorValue:
        if self._tensor is None:
            assert self.source is not None
            node = self._tx.output.float_input(self.source, self._real, SPEC)
            self._tensor = TensorValue(node, TensorMeta.of(SPEC, False, True, torch.Tensor))
        return self._tensor


class DrawnFloat(RuntimeFloat):
    """A random number that the replacement code draws before the graph runs. What it is, nothing may depend on."""

    __slots__ = ("_tensor",)

    def __init__(self, tx: Trace, real: float, source: Source) -> None:
        super().__init__(tx, real, source)
        self._tensor: TensorValue | None = None

    def fix(self) -> None:
        raise GraphBreak("CAP211", "a random number decides what Python does")

    def tensor(self) -> TensorValue:
        if self._tensor is None:
            assert self.source is not None
            node = self._tx.output.float_input(self.source, self._real, SPEC)
            self._tensor = TensorValue(node, TensorMeta.of(SPEC, False, True, torch.Tensor))
        return self._tensor


class ComputedFloat(RuntimeFloat):
    """A float that the program computes from others."""

    __slots__ = ("_operands", "_tensor")

    def __init__(
        self, tx: Trace, real: float, operands: tuple[RuntimeFloat, ...], tensor: TensorValue
    ) -> None:
        super().__init__(tx, real, None)
        self._operands = operands
        self._tensor = tensor

    def fix(self) -> None:
        for operand in self._operands:
            operand.fix()
        self._is_fixed = True

    def tensor(self) -> TensorValue:
        return self._tensor
