"""Which number a tensor of one element holds, as far as the trace can follow it: step counters and the like.

It matters where the program takes the number out (``step.item()``) and asks something about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.sources.formulas import Formula, apply, number
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_guards import lone_numbers
from fx_interface.source import Source
from fx_interface.torch_internals.function_levels import is_wrapped

_ROUNDED = {torch.float64: False, torch.float32: True}
"""The dtypes that are followed, and whether results are rounded."""
_SYMBOLS = {"pow": "**", "add": "+", "sub": "-", "mul": "*", "div": "/", "truediv": "/", "true_divide": "/"}
_COPIES = frozenset({"to", "clone", "detach", "reshape"})
_FILLED: dict[str, int | float] = {"tensor": 0, "as_tensor": 0, "full": 1, "zeros": 0.0, "ones": 1.0}
"""Functions that make tensors: what all elements are, or the position of the argument that says so."""
_FORMS: dict[str, tuple[str, bool]] = {
    **{name: (symbol, False) for name, symbol in _SYMBOLS.items()},
    **{f"{name}_": (symbol, True) for name, symbol in _SYMBOLS.items()},
    **{f"i{name}": (symbol, True) for name, symbol in _SYMBOLS.items()},
}
"""Operations of two numbers: the symbol, and whether the first is written to."""


class Followed:
    """The formulas of one trace's tensors. ``written``: small tensors that the program was given and that it writes to
    in a way that is not followed."""

    def __init__(self) -> None:
        self._known: dict[TensorValue, Formula | None] = {}
        self._read: dict[int, TensorValue] = {}
        self.written: dict[Source, None] = {}

    def of(self, tensor: TensorValue) -> Formula | None:
        """What a tensor holds now; None if that is not known."""
        if tensor in self._known:
            return self._known[tensor]
        found = _read(tensor)
        if found is not None and self._shares_memory(tensor):
            found = None
        self._known[tensor] = found
        return found

    def _shares_memory(self, tensor: TensorValue) -> bool:
        """Whether another tensor of which a number was read, by another name, has the same memory."""
        assert tensor.real is not None
        address = tensor.real.data_ptr()
        return self._read.setdefault(address, tensor) is not tensor

    def follow(
        self, name: str, args: Sequence[Value], writes: bool, tensors: Sequence[TensorValue], result: Value
    ) -> None:
        """Take note of an operation on ``tensors``."""
        if not tensors and isinstance(result, TensorValue) and is_small(result):
            self._known[result] = _made(name, args, result)
        if not any(is_small(tensor) for tensor in tensors):
            return
        form = _FORMS.get(name)
        formula = None
        if name in _COPIES and isinstance(result, TensorValue) and is_small(result):
            formula = self._copied(args[0], result)
        if form is not None and len(args) == 2 and isinstance(result, TensorValue) and is_small(result):
            formula = self._of_operation(form[0], args, result)
        if writes:
            target = result if form is not None and form[1] else None
            for tensor in tensors:
                if is_small(tensor) and tensor is not target:
                    self._forget(tensor)
            if isinstance(target, TensorValue):
                self._forget(target)
                if formula is not None and target.root is target and not target.views:
                    self._known[target] = formula
        elif formula is not None and isinstance(result, TensorValue):
            self._known[result] = formula

    def note(self, tensor: TensorValue, formula: Formula | None) -> None:
        """A tensor that the trace itself made of a float."""
        self._known[tensor] = formula

    def _copied(self, source: Value, result: TensorValue) -> Formula | None:
        is_rounded = _ROUNDED.get(result.meta.spec.dtype)
        if not isinstance(source, TensorValue) or is_rounded is None or result.meta.spec.device.type != "cpu":
            return None
        return self._operand(source, is_rounded)

    def _of_operation(self, symbol: str, args: Sequence[Value], result: TensorValue) -> Formula | None:
        is_rounded = _ROUNDED.get(result.meta.spec.dtype)
        if is_rounded is None or result.meta.spec.device.type != "cpu":
            return None
        operands = [self._operand(arg, is_rounded) for arg in args]
        computed = apply(symbol, *operands)
        return apply("single", computed) if is_rounded else computed

    def _operand(self, value: Value, is_rounded: bool) -> Formula | None:
        if isinstance(value, TensorValue):
            found = self.of(value)
            wider = is_rounded and value.meta.spec.dtype is torch.float64
        elif isinstance(value, RuntimeFloat):
            found, wider = value.formula, is_rounded
        elif (known := value.known_as(int, float)) is not None:
            found, wider = number(known), is_rounded
        else:
            return None
        return apply("single", found) if wider else found

    def _forget(self, tensor: TensorValue) -> None:
        """A tensor is written to: what it and all that share its memory hold is not known any more."""
        root = tensor.root
        for one in (root, *root.views, tensor):
            self._known[one] = None
        if root.source is not None:
            self.written[root.source] = None


def is_small(tensor: TensorValue) -> bool:
    """Whether it has one element, which may be followed."""
    sizes = tensor.meta.spec.sizes
    if sizes and sizes[-1] != 1:
        return False
    return all(type(size) is int and size == 1 for size in sizes)


def _made(name: str, args: Sequence[Value], result: TensorValue) -> Formula | None:
    """What a new tensor holds: ``torch.tensor(0.0)``, ``torch.zeros(())``."""
    is_rounded = _ROUNDED.get(result.meta.spec.dtype)
    if name not in _FILLED or is_rounded is None:
        return None
    given = _FILLED[name]
    if isinstance(given, float):
        value: Any = given
    else:
        value = args[given] if given < len(args) else None
        value = value.value if isinstance(value, Const) and not isinstance(value, RuntimeFloat) else None
    if type(value) not in (int, float):
        return None
    return apply("single", number(value)) if is_rounded else number(value)


def _read(tensor: TensorValue) -> Formula | None:
    real = tensor.real
    if real is None or tensor.source is None or tensor.root is not tensor or not is_small(tensor):
        return None
    if type(real) not in PLAIN_CLASSES or is_wrapped(real):
        return None
    if real.dtype not in _ROUNDED or real.device.type != "cpu" or tensor.views:
        return None
    found = lone_numbers([real], [])  # as the guard asks: of a part of other memory it would never hold
    return None if found is None else Formula(found[0], source=tensor.source, is_tensor=True)
