"""How a number of the program follows from what it reads: written down while tracing, computed again by Python.

A formula knows its value in this call, and is computed by the functions that the program called, on Python's own
integers and floats. ``FUNCTIONS`` says which functions there are; the text of a formula is a small Python program.
"""

from __future__ import annotations

import ctypes
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from fx_interface.python_runtime.own_builtins import OWN_BUILTINS
from fx_interface.source import Source

NUMBERS = (int, float)
"""The types that a formula's value may have where it goes on as a number."""
_LARGEST = 1 << 63


def single(number: float) -> float:
    """The float32 nearest to a float64."""
    return ctypes.c_float(number).value


def small(number: int) -> int:
    """An integer that 64 bits hold. OverflowError for another: sizes and graph inputs take no more."""
    if not -_LARGEST <= number < _LARGEST:
        raise OverflowError(number)
    return number


def same(one: Any, other: Any) -> bool:
    """Whether two numbers are one to a program: type, value and sign; nan is nan."""
    if type(one) is not type(other):
        return False
    return bool(one.hex() == other.hex() if type(one) is float else one == other)


def outcome(function: Callable[..., Any], *operands: Any) -> tuple[str, str] | None:
    """The class and text of what a call raises, or None."""
    try:
        function(*operands)
    except (ArithmeticError, TypeError, ValueError) as error:
        return (type(error).__name__, str(error))
    return None


def made(function: str, dtype: str, *operands: float) -> torch.Tensor:
    """A new tensor of numbers: ``torch.arange`` and such."""
    result: torch.Tensor = getattr(torch, function)(*operands, dtype=getattr(torch, dtype), device="cpu")
    return result


def holding(values: Any, dtype: str) -> torch.Tensor:
    """A small tensor whose content is known."""
    return torch.tensor(values, dtype=getattr(torch, dtype), device="cpu")


def dtype_of(name: str) -> torch.dtype:
    """A dtype by its name."""
    found: torch.dtype = getattr(torch, name)
    return found


def ran(path: str, *operands: Any) -> Any:
    """What a function of torch, or an operator, returns for small tensors and numbers."""
    function: Any = {"torch": torch, "operator": operator}[path.partition(".")[0]]
    for name in path.split(".")[1:]:
        function = getattr(function, name)
    with torch.no_grad():
        return function(*operands)


class Function(NamedTuple):
    """What a formula applies, how it is written, and whether it never raises for floats."""

    call: Callable[..., Any]
    text: str
    is_total: bool = False


_SYMBOLS = {
    "+": Function(operator.add, "({} + {})", True),
    "-": Function(operator.sub, "({} - {})", True),
    "*": Function(operator.mul, "({} * {})", True),
    "/": Function(operator.truediv, "({} / {})"),
    "//": Function(operator.floordiv, "({} // {})"),
    "%": Function(operator.mod, "({} % {})"),
    "**": Function(operator.pow, "({} ** {})"),
    "<<": Function(operator.lshift, "({} << {})"),
    ">>": Function(operator.rshift, "({} >> {})"),
    "&": Function(operator.and_, "({} & {})"),
    "|": Function(operator.or_, "({} | {})"),
    "^": Function(operator.xor, "({} ^ {})"),
    "neg": Function(operator.neg, "(-{})", True),
    "pos": Function(operator.pos, "(+{})", True),
    "~": Function(operator.invert, "(~{})"),
    "item": Function(operator.getitem, "{}[{}]", True),
    "type": Function(lambda value: type(value).__name__, "type({}).__name__", True),
}
_INTERNAL: dict[str, Callable[..., Any]] = {
    "single": single, "small": small, "outcome": outcome, "made": made, "len": len, "holding": holding, "ran": ran,
    "dtype": dtype_of,
}  # fmt: skip
_TOTAL: dict[str, Callable[..., Any]] = {
    "float": float, "abs": abs, "min": min, "max": max, "float.is_integer": float.is_integer,
    "int.bit_length": int.bit_length, "int.conjugate": int.conjugate, "float.conjugate": float.conjugate,
}  # fmt: skip
_NOT_TOTAL: dict[str, Callable[..., Any]] = {
    "int": int, "round": round, "divmod": divmod, "pow": pow,
    **{f"math.{name}": call for name, call in vars(math).items() if callable(call) and not name.startswith("_")},
}  # fmt: skip


FUNCTIONS: dict[str, Function] = {
    **_SYMBOLS,
    **{name: Function(call, f"{name}(...)") for name, call in {**_INTERNAL, **_NOT_TOTAL}.items()},
    **{name: Function(call, f"{name}(...)", True) for name, call in _TOTAL.items()},
}
"""By symbol or name: all that a formula may consist of."""
NAMES: dict[Any, str] = {call: name for name, call in {**_NOT_TOTAL, **_TOTAL}.items()}
"""The names of the functions that a program calls by name."""
SPACE: dict[str, Any] = {
    "__builtins__": OWN_BUILTINS, "math": math, "same": same, "single": single, "small": small, "outcome": outcome,
    "made": made, "holding": holding, "ran": ran, "dtype": dtype_of,
}  # fmt: skip
"""The names in the text of a formula."""


class Formula:
    """``symbol`` applied to ``operands``; without one a constant, or what is read from ``source``.

    ``is_read_early``: it follows from numbers alone, which are there before the graph runs.
    """

    __slots__ = ("is_read_early", "operands", "source", "symbol", "value")
    is_read_early: bool

    def __init__(
        self,
        value: Any,
        symbol: str = "",
        operands: tuple[Formula, ...] = (),
        source: Source | None = None,
        is_tensor: bool = False,
    ) -> None:
        self.value = value
        self.symbol = symbol
        self.operands = operands
        self.source = source
        self.is_read_early = not is_tensor and all(operand.is_read_early for operand in operands)

    @property
    def is_small(self) -> bool:
        """Whether its size is that of a float or of an integer of 64 bits."""
        return type(self.value) is float or not self.symbol or self.symbol == "small"

    @property
    def is_constant(self) -> bool:
        """Whether it is a number of the program's text."""
        return not self.symbol and self.source is None

    def __str__(self) -> str:
        text = self._text()
        return text[1:-1] if self.symbol and text.startswith("(") else text

    def _text(self) -> str:
        if self.source is not None:
            return self.source.expression
        if not self.symbol:
            return text_of(self.value)
        return _written(self.symbol, [operand._text() for operand in self.operands])


def number(value: Any) -> Formula:
    """A number of the program."""
    return Formula(value)


def apply(symbol: str, *operands: Formula | None) -> Formula | None:
    """The formula of an operation; None where an operand has none, or where Python would raise or leave the numbers."""
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    try:
        made = applied(symbol, *known)
    except (ArithmeticError, TypeError, ValueError):
        return None
    return made if type(made.value) in NUMBERS else None


def applied(symbol: str, *operands: Formula) -> Formula:
    """The formula of an operation. Raises what Python raises for the operands' values."""
    value = FUNCTIONS[symbol].call(*(operand.value for operand in operands))
    return Formula(value, symbol, operands)


def may_raise(symbol: str, operands: Sequence[Formula]) -> bool:
    """Whether an operation that gives a number in this call may raise in another."""
    if not all(operand.is_small for operand in operands):
        return True
    if symbol in ("/", "//", "%"):
        divisor = operands[1]
        return not (divisor.is_constant and divisor.value != 0)
    return not FUNCTIONS[symbol].is_total


class Text:
    """Lines of Python that compute formulas, each once. ``places``: the parameter that holds what is read."""

    def __init__(self, places: dict[Source, int]) -> None:
        self._places = places
        self._names: dict[int, str] = {}
        self.lines: list[str] = []

    def name(self, formula: Formula) -> str:
        """The variable that holds a formula's value; the lines that compute it are added."""
        known = self._names.get(id(formula))
        if known is not None:
            return known
        if formula.source is not None:
            text = f"x{self._places[formula.source]}"
        elif not formula.symbol:
            text = text_of(formula.value)
        elif formula.symbol == "outcome":
            function, *operands = formula.operands
            called = f"lambda *x: {_written(function.value, [f'x[{i}]' for i in range(len(operands))])}"
            text = self._added(f"outcome({', '.join([called, *map(self.name, operands)])})")
        else:
            text = self._added(_written(formula.symbol, [self.name(operand) for operand in formula.operands]))
        self._names[id(formula)] = text
        return text

    def _added(self, value: str) -> str:
        """The new variable of a line that computes ``value``, whose text is complete: operands come before."""
        name = f"y{len(self.lines)}"
        self.lines.append(f"{name} = {value}")
        return name


def _written(symbol: str, parts: Sequence[str]) -> str:
    text = FUNCTIONS[symbol].text
    return f"{text[:-5]}({', '.join(parts)})" if text.endswith("(...)") else text.format(*parts)


def text_of(value: Any) -> str:
    """A constant as Python text."""
    text = repr(value)
    if text in ("inf", "-inf", "nan"):
        return f"float({text!r})"
    return f"({text})" if text.startswith("-") else text


def leaves_of(formulas: Sequence[Formula]) -> dict[Source, Formula]:
    """What formulas read, by its source."""
    found: dict[Source, Formula] = {}
    seen: set[int] = set()
    pending = list(reversed(formulas))
    while pending:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        pending.extend(reversed(one.operands))
        if one.source is not None:
            found.setdefault(one.source, one)
    return found
