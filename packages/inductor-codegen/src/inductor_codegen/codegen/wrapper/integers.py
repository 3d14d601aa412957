"""Integer expressions over sizes as C++ text, with Python's floor division and remainder."""

from __future__ import annotations

from collections.abc import Iterable

from fx_interface.symbols import Apply, Expr, IntLike, Symbol

_FUNCTIONS = {"floordiv": "fx_floordiv", "mod": "fx_mod", "min": "fx_min", "max": "fx_max"}


def integer(value: IntLike) -> str:
    """``value`` as an int64_t expression; compound ones are in parentheses.

    2*s0 - 1 -> (2 * s0 - 1)
    """
    if isinstance(value, int):
        return _literal(value)
    text = ""
    for monomial, coefficient in value.terms:
        factors = [_atom(atom) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, _literal(abs(coefficient)))
        product = " * ".join(factors)
        if text:
            text += f" {'-' if coefficient < 0 else '+'} {product}"
        else:
            text = f"-{product}" if coefficient < 0 else product
    plain = len(value.terms) == 1 and "*" not in text and "-" not in text
    return text if plain else f"({text})"


def integers(values: Iterable[IntLike]) -> str:
    """The values separated by commas."""
    return ", ".join(integer(value) for value in values)


def is_static(values: Iterable[IntLike]) -> bool:
    """Whether no value is symbolic."""
    return Expr not in map(type, values)


def _literal(value: int) -> str:
    if -(1 << 31) < value < (1 << 31):
        return str(value)
    return f"({value + 1}LL - 1)" if value == -(1 << 63) else f"{value}LL"


def _atom(atom: Symbol | Apply) -> str:
    if isinstance(atom, Symbol):
        return symbol_name(atom)
    lhs, rhs = atom.args
    return f"{_FUNCTIONS[atom.function]}({integer(lhs)}, {integer(rhs)})"


def symbol_name(symbol: Symbol) -> str:
    """The C++ variable that holds a symbol's value."""
    return f"n_{symbol.name}"
