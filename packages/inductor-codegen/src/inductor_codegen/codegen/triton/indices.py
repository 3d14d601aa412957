"""Index expressions and sizes as Triton text. Numerators are not negative, so quotients are as in C."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fx_interface.symbols import Apply, Expr, IntLike, Symbol
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient, Remainder
from inductor_codegen.ir.scalar import Scalar


def size_text(value: IntLike) -> str:
    """A size over the kernel's size parameters, which bear their symbols' names."""
    if isinstance(value, int):
        return str(value)
    return " + ".join(_product(monomial, coefficient) for monomial, coefficient in value.terms)


def _product(monomial: tuple[Symbol | Apply, ...], coefficient: int) -> str:
    factors = [_size_atom(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, f"({coefficient})" if coefficient < 0 else str(coefficient))
    return " * ".join(factors)


def _size_atom(atom: Symbol | Apply) -> str:
    if isinstance(atom, Symbol):
        return atom.name
    lhs, rhs = (f"({size_text(argument)})" for argument in atom.args)
    match atom.function:
        case "floordiv":
            return f"({lhs} // {rhs})"
        case "mod":
            return f"({lhs} % {rhs})"
        case "min":
            return f"tl.minimum({lhs}, {rhs})"
    return f"tl.maximum({lhs}, {rhs})"


def index_text(index: Index, variables: Mapping[LoopVar, str], loaded: Callable[[Scalar], str]) -> str:
    """``index`` with each loop variable as ``variables`` says; ``loaded`` names the value of an index from data."""
    parts = [_term(atom, coefficient, variables, loaded) for atom, coefficient in index.terms]
    if not parts or not (isinstance(index.const, int) and index.const == 0):
        parts.append(_grouped(index.const))
    return " + ".join(parts)


def _grouped(value: IntLike) -> str:
    return f"({size_text(value)})" if isinstance(value, Expr) or value < 0 else str(value)


def _term(
    atom: Atom, coefficient: IntLike, variables: Mapping[LoopVar, str], loaded: Callable[[Scalar], str]
) -> str:
    match atom:
        case LoopVar():
            text = variables[atom]
        case Loaded(scalar):
            text = loaded(scalar)
        case Quotient(numerator, denominator):
            text = f"(({index_text(numerator, variables, loaded)}) // {_grouped(denominator)})"
        case Remainder(numerator, denominator):
            text = f"(({index_text(numerator, variables, loaded)}) % {_grouped(denominator)})"
    return text if isinstance(coefficient, int) and coefficient == 1 else f"{_grouped(coefficient)} * {text}"
