"""C++ text of sizes, index expressions and guards."""

from __future__ import annotations

from collections.abc import Callable

from fx_interface.symbols import Apply, Expr, IntLike, Symbol
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient
from inductor_codegen.ir.scalar import Guard, Scalar

ScalarName = Callable[[Scalar], str]


def size_text(value: IntLike) -> str:
    """An integer over size parameters."""
    if isinstance(value, int):
        return str(value) if value >= 0 else f"({value})"
    terms = [_term(monomial, coefficient) for monomial, coefficient in value.terms]
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"


def _term(monomial: tuple[Symbol | Apply, ...], coefficient: int) -> str:
    factors = [atom.name if isinstance(atom, Symbol) else _applied(atom) for atom in monomial]
    if coefficient != 1 or not factors:
        factors.insert(0, str(coefficient) if coefficient >= 0 else f"({coefficient})")
    return " * ".join(factors)


def _applied(atom: Apply) -> str:
    lhs, rhs = (size_text(arg) for arg in atom.args)
    return f"size_{atom.function}({lhs}, {rhs})"


def index_text(index: Index, name: ScalarName) -> str:
    """An index expression; ``name`` gives the C++ names of scalars loaded before."""
    parts = []
    for atom, coefficient in index.terms:
        text = _atom(atom, name)
        parts.append(text if _is(coefficient, 1) else f"{_factor(coefficient)} * {text}")
    if not parts or not _is(index.const, 0):
        parts.append(size_text(index.const))
    return " + ".join(parts)


def _atom(atom: Atom, name: ScalarName) -> str:
    match atom:
        case LoopVar(loop):
            return loop
        case Loaded(scalar):
            return name(scalar)
    operator = "/" if isinstance(atom, Quotient) else "%"
    return f"(({index_text(atom.numerator, name)}) {operator} {_factor(atom.denominator)})"


def _factor(value: IntLike) -> str:
    text = size_text(value)
    return f"({text})" if isinstance(value, Expr) and " * " in text and not text.startswith("(") else text


def _is(value: IntLike, number: int) -> bool:
    return isinstance(value, int) and value == number


def guard_text(guard: Guard, name: ScalarName) -> str:
    """A condition on an index."""
    index = index_text(guard.index, name)
    parts = []
    if guard.low is not None:
        parts.append(f"({index} >= {size_text(guard.low)})")
    if guard.high is not None:
        parts.append(f"({index} < {size_text(guard.high)})")
    return " & ".join(parts) or "true"
