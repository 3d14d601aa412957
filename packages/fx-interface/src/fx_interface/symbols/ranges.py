"""Ranges of integers, and interval arithmetic: between which bounds an expression of symbols surely lies."""

from __future__ import annotations

from collections.abc import Callable

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols.expr import Apply, IntLike, Symbol


@dataclass(frozen=True, slots=True)
class Range:
    """The integers from ``low`` to ``high``, both included; ``None`` is unbounded."""

    low: int | None = 0
    high: int | None = None


def bounds(value: IntLike, range_of: Callable[[Symbol], Range]) -> Range:
    """A range that surely contains ``value``; ``range_of`` gives those of symbols."""
    if isinstance(value, int):
        return Range(value, value)
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in value.terms:
        product = Range(1, 1)
        for atom in monomial:
            product = _multiply(product, _atom_bounds(atom, range_of))
        product = _multiply(Range(coefficient, coefficient), product)
        low = None if low is None or product.low is None else low + product.low
        high = None if high is None or product.high is None else high + product.high
    return Range(low, high)


def _atom_bounds(atom: Symbol | Apply, range_of: Callable[[Symbol], Range]) -> Range:
    if isinstance(atom, Symbol):
        return range_of(atom)
    lhs, rhs = (bounds(arg, range_of) for arg in atom.args)
    match atom.function:
        case "min":
            highs = [r.high for r in (lhs, rhs) if r.high is not None]
            low = None if lhs.low is None or rhs.low is None else min(lhs.low, rhs.low)
            return Range(low, min(highs) if highs else None)
        case "max":
            lows = [r.low for r in (lhs, rhs) if r.low is not None]
            high = None if lhs.high is None or rhs.high is None else max(lhs.high, rhs.high)
            return Range(max(lows) if lows else None, high)
        case "mod" if rhs.low is not None and rhs.low > 0:
            return Range(0, None if rhs.high is None else rhs.high - 1)
        case "floordiv" if rhs.low is not None and rhs.low > 0 and lhs.low is not None and lhs.low >= 0:
            low = 0 if rhs.high is None else lhs.low // rhs.high
            if atom.divides:  # without a remainder
                low = -(-lhs.low // atom.divides)
            return Range(low, None if lhs.high is None else lhs.high // rhs.low)
    return Range(None, None)


def larger(lhs: int | None, rhs: int | None) -> int | None:
    """The larger one of two bounds, of which None is none."""
    return rhs if lhs is None else lhs if rhs is None else max(lhs, rhs)


def smaller(lhs: int | None, rhs: int | None) -> int | None:
    """The smaller one of two bounds, of which None is none."""
    return rhs if lhs is None else lhs if rhs is None else min(lhs, rhs)


def _multiply(lhs: Range, rhs: Range) -> Range:
    if lhs.low is not None and lhs.high is not None and rhs.low is not None and rhs.high is not None:
        corners = [a * b for a in (lhs.low, lhs.high) for b in (rhs.low, rhs.high)]
        return Range(min(corners), max(corners))
    if lhs.low is not None and lhs.low >= 0 and rhs.low is not None and rhs.low >= 0:
        both = lhs.high is not None and rhs.high is not None
        return Range(lhs.low * rhs.low, lhs.high * rhs.high if both else None)  # type: ignore[operator]
    if lhs.low is not None and lhs.low == lhs.high and lhs.low < 0:
        flipped = _multiply(Range(-lhs.low, -lhs.low), rhs)
        return Range(
            None if flipped.high is None else -flipped.high, None if flipped.low is None else -flipped.low
        )
    return Range(None, None)
