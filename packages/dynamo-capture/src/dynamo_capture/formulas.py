"""How a float of the program follows from what it reads: written down while tracing, computed again by a guard.

A formula knows its value in this call. Where the program asks something about that value (is it zero, is it greater
than five), the answer decides what is captured, and becomes a fact that is checked before the code runs again.
"""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable, Sequence
from typing import Any

from fx_interface.source import Source


def single(number: float) -> float:
    """The float32 nearest to a float64."""
    return ctypes.c_float(number).value


_FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "+": (operator.add, "{} + {}"),
    "-": (operator.sub, "{} - {}"),
    "*": (operator.mul, "{} * {}"),
    "/": (operator.truediv, "{} / {}"),
    "**": (operator.pow, "{} ** {}"),
    "neg": (operator.neg, "-{}"),
    "single": (single, "single({})"),
}
"""By symbol: the function, and how it is written."""


class Formula:
    """``symbol`` applied to ``operands``; without a symbol a number, or what is read from ``source``."""

    __slots__ = ("is_tensor", "operands", "source", "symbol", "value")

    def __init__(
        self,
        value: float,
        symbol: str = "",
        operands: tuple[Formula, ...] = (),
        source: Source | None = None,
        is_tensor: bool = False,
    ) -> None:
        self.value = value
        self.symbol = symbol
        self.operands = operands
        self.source = source
        self.is_tensor = is_tensor


def number(value: float) -> Formula:
    """A number of the program."""
    return Formula(value)


def apply(symbol: str, *operands: Formula | None) -> Formula | None:
    """The formula of an operation; None where an operand has none, or where Python would raise or leave the floats."""
    function = _FUNCTIONS[symbol][0]
    known = [operand for operand in operands if operand is not None]
    if len(known) < len(operands):
        return None
    try:
        value = function(*(operand.value for operand in known))
    except (ArithmeticError, ValueError):
        return None
    return Formula(value, symbol, tuple(known)) if type(value) in (float, int) else None


COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}


class Facts:
    """Answers that one trace relies on. Facts about the same values read are one program."""

    def __init__(self) -> None:
        self._groups: dict[
            tuple[int, ...], tuple[list[Formula], list[tuple[Formula, str, Formula, bool]]]
        ] = {}
        self._leaves: dict[int, tuple[int, ...]] = {}
        self._kept: list[Formula] = []
        self.read: dict[Source, Formula] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def decide(self, lhs: Formula, symbol: str, rhs: Formula) -> bool:
        """``lhs symbol rhs``; from now on the trace depends on the answer."""
        answer = COMPARISONS[symbol](lhs.value, rhs.value)
        leaves = self._read_by(lhs, rhs)
        if leaves:
            key = tuple(map(id, leaves))
            self._groups.setdefault(key, (leaves, []))[1].append((lhs, symbol, rhs, answer))
        return answer

    def _read_by(self, *formulas: Formula) -> list[Formula]:
        found: dict[int, Formula] = {}
        pending = list(formulas)
        seen: set[int] = set()
        while pending:
            one = pending.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            pending.extend(one.operands)
            if one.source is not None:
                found[id(one)] = one
                self.read[one.source] = one
        return list(found.values())

    def programs(self) -> tuple[tuple[str, tuple[tuple[int, ...], ...]], ...]:
        """Python functions of what is read, each with the positions (in ``read``) that it is called with."""
        places = {source: place for place, source in enumerate(self.read)}
        made: dict[str, list[tuple[int, ...]]] = {}
        for leaves, facts in self._groups.values():
            text = _program(leaves, facts)
            positions = tuple(places[leaf.source] for leaf in leaves if leaf.source is not None)
            made.setdefault(text, []).append(positions)
        return tuple((text, tuple(calls)) for text, calls in made.items())


def _program(leaves: Sequence[Formula], facts: Sequence[tuple[Formula, str, Formula, bool]]) -> str:
    """The text of ``def holds(...)``: True where every fact holds."""
    names = {id(leaf): f"x{place}" for place, leaf in enumerate(leaves)}
    lines: list[str] = []
    tests = [
        f"({_name(lhs, names, lines)} {symbol} {_name(rhs, names, lines)}) is {answer}"
        for lhs, symbol, rhs, answer in facts
    ]
    parameters = ", ".join(f"x{place}" for place in range(len(leaves)))
    body = [*lines, "return " + " and ".join(dict.fromkeys(tests))]
    return "\n    ".join([f"def holds({parameters}):", *body])


def _name(formula: Formula, names: dict[int, str], lines: list[str]) -> str:
    """The variable that holds a formula's value; the lines that compute it are added."""
    known = names.get(id(formula))
    if known is not None:
        return known
    if not formula.symbol:
        text = repr(formula.value)
        if text in ("inf", "-inf", "nan"):
            text = f"float({text!r})"
    else:
        parts = [_name(operand, names, lines) for operand in formula.operands]
        text = f"y{len(lines)}"
        lines.append(f"{text} = {_FUNCTIONS[formula.symbol][1].format(*parts)}")
    names[id(formula)] = text
    return text
