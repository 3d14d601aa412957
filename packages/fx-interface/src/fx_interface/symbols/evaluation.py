"""Symbolic integers with values, or other integers, in place of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fx_interface.symbols.expr import Apply, Expr, IntLike, Symbol, floordiv, mod
from fx_interface.symbols.extremes import maximum, minimum


def evaluate(value: IntLike, values: Mapping[Symbol, int]) -> int:
    """The integer that ``value`` has when each symbol has the given value; KeyError names a missing symbol."""
    if isinstance(value, int):
        return value
    total = 0
    for monomial, coefficient in value.terms:
        product = coefficient
        for atom in monomial:
            product *= values[atom] if isinstance(atom, Symbol) else _evaluate_apply(atom, values)
        total += product
    return total


def _evaluate_apply(atom: Apply, values: Mapping[Symbol, int]) -> int:
    lhs, rhs = (evaluate(arg, values) for arg in atom.args)
    match atom.function:
        case "floordiv":
            return lhs // rhs
        case "mod":
            return lhs % rhs
        case "min":
            return min(lhs, rhs)
    return max(lhs, rhs)


_FUNCTIONS: dict[str, Callable[[IntLike, IntLike], IntLike]] = {
    "floordiv": floordiv,
    "mod": mod,
    "min": minimum,
    "max": maximum,
}


_NONE: Mapping[Apply, IntLike] = {}


def substitute(
    value: IntLike, replacements: Mapping[Symbol, IntLike], computed: Mapping[Apply, IntLike] = _NONE
) -> IntLike:
    """``value`` with symbols replaced, and what is ``computed`` of symbols by what is known of it, normalised again."""
    if isinstance(value, int) or not (
        value.symbols & replacements.keys() or (computed and _has_computed(value))
    ):
        return value
    total: IntLike = 0
    for monomial, coefficient in value.terms:
        product: IntLike = coefficient
        for atom in monomial:
            if isinstance(atom, Symbol):
                product = product * replacements.get(atom, Expr((((atom,), 1),)))
            else:
                lhs, rhs = (substitute(arg, replacements, computed) for arg in atom.args)
                made = _FUNCTIONS[atom.function](lhs, rhs)
                product = product * (_known(made, computed) if computed else made)
        total = total + product
    return total


def _has_computed(value: Expr) -> bool:
    return any(isinstance(atom, Apply) for monomial, _ in value.terms for atom in monomial)


def _known(value: IntLike, computed: Mapping[Apply, IntLike]) -> IntLike:
    """``value`` with what is known of its atoms; that is made of symbols alone."""
    if isinstance(value, int) or not _has_computed(value):
        return value
    total: IntLike = 0
    for monomial, coefficient in value.terms:
        product: IntLike = coefficient
        for atom in monomial:
            known = computed.get(atom) if isinstance(atom, Apply) else None
            product = product * (Expr((((atom,), 1),)) if known is None else known)
        total = total + product
    return total


def computed_in(zero: IntLike) -> tuple[Apply, IntLike] | None:
    """An expression is 0: what is computed in it, if that occurs once, by its own symbols."""
    terms = zero.terms if isinstance(zero, Expr) else ()
    for monomial, _ in terms:
        if len(monomial) == 1 and isinstance(monomial[0], Apply) and monomial[0].divides:
            return computed_in(zero * monomial[0].divides)  # which is what it is a quotient of
    found = [(m[0], c) for m, c in terms if len(m) == 1 and isinstance(m[0], Apply)]
    if len(found) != 1 or abs(found[0][1]) != 1 or any(len(monomial) > 1 for monomial, _ in terms):
        return None
    ((atom, sign),) = found
    one = Expr((((atom,), 1),))
    value = one - zero * sign
    is_known = isinstance(value, int) or (value.symbols <= one.symbols and not _has_computed(value))
    return (atom, value) if is_known else None
