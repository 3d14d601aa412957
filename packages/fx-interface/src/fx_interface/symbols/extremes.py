"""The least and the largest of symbolic integers, their product, and quotients that are known to be whole."""

from __future__ import annotations

from collections.abc import Iterable
from math import gcd

from fx_interface.symbols.expr import Apply, Expr, IntLike, atom_of, floordiv


def without_quotient(value: IntLike, lhs: IntLike, rhs: IntLike) -> IntLike:
    """``value`` with ``lhs`` for ``rhs * (lhs // rhs)``, which it is. Of divisors that are known."""
    quotient = floordiv(lhs, rhs)
    terms = quotient.terms if isinstance(quotient, Expr) and isinstance(value, Expr) else ()
    if not isinstance(rhs, int) or len(terms) != 1 or len(terms[0][0]) != 1 or terms[0][1] != 1:
        return value
    (atom,) = terms[0][0]
    made: IntLike = value
    for monomial, coefficient in value.terms if isinstance(value, Expr) else ():
        if atom in monomial and coefficient % rhs == 0:
            others = list(monomial)
            others.remove(atom)
            product: IntLike = coefficient // rhs
            for other in others:
                product = product * Expr((((other,), 1),))
            made = made + product * (lhs - rhs * quotient)
    return value if made is value else without_quotient(made, lhs, rhs)  # of its powers one at a time


def without_factor(value: IntLike) -> IntLike:
    """What is 0 where ``value`` is: without the number that all its coefficients are multiples of."""
    if isinstance(value, int):
        return value
    common = gcd(*(coefficient for _, coefficient in value.terms))
    return (
        value if common == 1 else Expr(tuple([(m, coefficient // common) for m, coefficient in value.terms]))
    )


def as_remainder(value: Expr) -> Expr:
    """``lhs % rhs`` for ``lhs - rhs * (lhs // rhs)``, or the opposite, where the divisor is known; else ``value``."""
    for monomial, coefficient in value.terms:
        quotient = monomial[0] if len(monomial) == 1 else None
        if isinstance(quotient, Apply) and quotient.function == "floordiv":
            lhs, rhs = quotient.args
            whole = rhs * Expr((((quotient,), 1),))
            if isinstance(rhs, int) and abs(coefficient) == rhs and value in (lhs - whole, whole - lhs):
                return atom_of("mod", lhs, rhs)
    return value


def minimum(lhs: IntLike, rhs: IntLike) -> IntLike:
    """The smaller of two integers."""
    return _extreme("min", lhs, rhs)


def maximum(lhs: IntLike, rhs: IntLike) -> IntLike:
    """The larger of two integers."""
    return _extreme("max", lhs, rhs)


def product(sizes: Iterable[IntLike]) -> IntLike:
    """All of them multiplied: of a tensor's sizes, the number of its elements."""
    total: IntLike = 1
    for size in sizes:
        total = total * size
    return total


def _extreme(function: str, lhs: IntLike, rhs: IntLike) -> IntLike:
    difference = lhs - rhs
    if isinstance(difference, int):
        smaller, larger = (lhs, rhs) if difference <= 0 else (rhs, lhs)
        return smaller if function == "min" else larger
    first, second = sorted((lhs, rhs), key=str)
    return atom_of(function, first, second)
