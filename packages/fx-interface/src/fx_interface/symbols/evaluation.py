"""Symbolic integers with values, or other integers, in place of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fx_interface.symbols.expr import Apply, Expr, IntLike, Symbol, floordiv, maximum, minimum, mod


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


def substitute(value: IntLike, replacements: Mapping[Symbol, IntLike]) -> IntLike:
    """``value`` with symbols replaced, normalised again."""
    if isinstance(value, int) or not (value.symbols & replacements.keys()):
        return value
    total: IntLike = 0
    for monomial, coefficient in value.terms:
        product: IntLike = coefficient
        for atom in monomial:
            if isinstance(atom, Symbol):
                product = product * replacements.get(atom, Expr((((atom,), 1),)))
            else:
                lhs, rhs = (substitute(arg, replacements) for arg in atom.args)
                product = product * _FUNCTIONS[atom.function](lhs, rhs)
        total = total + product
    return total
