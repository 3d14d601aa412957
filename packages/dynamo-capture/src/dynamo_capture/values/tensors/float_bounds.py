"""Between which limits a float lies that only data tell: whether Python can take its root, or a power of it.

total = 0.0
for p in parameters:
    total += p.grad.norm().item() ** 2       # a square of a float32 is a float, and not below zero
total ** 0.5                                 # so this is a float as well
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple


class Bounds(NamedTuple):
    """``least``: the float is not below it, unless it is NaN. ``largest``: its absolute value is not above it, unless
    it is infinite or NaN."""

    least: float = -math.inf
    largest: float = math.inf

    @classmethod
    def of(cls, number: float) -> Bounds:
        """Those of a number that is known."""
        return cls(number, abs(number)) if math.isfinite(number) else cls()


NO_BOUNDS: Final = Bounds()


def after(symbol: str, one: Bounds, other: Bounds) -> Bounds:
    """Those of what an operator of Python makes of two floats."""
    are_signless = one.least >= 0 and other.least >= 0
    match symbol:
        case "+":
            return Bounds(one.least + other.least, one.largest + other.largest)
        case "-":
            return Bounds(largest=one.largest + other.largest)
        case "*" if math.isfinite(one.largest) and math.isfinite(other.largest):
            return Bounds(0.0 if are_signless else -math.inf, one.largest * other.largest)
        case "*" | "/":
            return Bounds(0.0 if are_signless else -math.inf)
    return NO_BOUNDS


def after_power(base: Bounds, exponent: float) -> Bounds:
    """Those of a power, where Python gives a float."""
    is_signless = base.least >= 0 or (exponent.is_integer() and exponent % 2 == 0)
    return Bounds(0.0 if is_signless else -math.inf, _largest_power(base, exponent))


def has_power(base: Bounds, exponent: float) -> bool:
    """Whether Python surely gives a float for a power, and raises nothing."""
    if exponent == 0:
        return True
    is_real = exponent > 0 and (base.least >= 0 or exponent.is_integer())
    return is_real and math.isfinite(_largest_power(base, exponent))


def _largest_power(base: Bounds, exponent: float) -> float:
    if exponent < 0:
        return math.inf
    try:
        return float(max(1.0, base.largest) ** exponent)
    except OverflowError:
        return math.inf


__all__ = ["NO_BOUNDS", "Bounds", "after", "after_power", "has_power"]
