"""C++ text of index expressions and guards."""

from __future__ import annotations

from collections.abc import Callable

from fx_interface.symbols import Expr, IntLike
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient
from inductor_codegen.ir.scalar import Guard, Scalar

ScalarName = Callable[[Scalar], str]


def index_text(index: Index, name: ScalarName, names: Names) -> str:
    """An index expression; ``name`` gives the C++ names of scalars loaded before, ``names`` those of sizes."""
    parts = []
    for atom, coefficient in index.terms:
        text = _atom(atom, name, names)
        parts.append(text if _is(coefficient, 1) else f"{_factor(coefficient, names)} * {text}")
    if not parts or not _is(index.const, 0):
        parts.append(names.size(index.const))
    return " + ".join(parts)


def _atom(atom: Atom, name: ScalarName, names: Names) -> str:
    match atom:
        case LoopVar(loop):
            return loop
        case Loaded(scalar):
            return name(scalar)
    operator = "/" if isinstance(atom, Quotient) else "%"
    return f"(({index_text(atom.numerator, name, names)}) {operator} {_factor(atom.denominator, names)})"


def _factor(value: IntLike, names: Names) -> str:
    text = names.size(value)
    return f"({text})" if isinstance(value, Expr) and " * " in text and not text.startswith("(") else text


def _is(value: IntLike, number: int) -> bool:
    return isinstance(value, int) and value == number


def guard_text(guard: Guard, name: ScalarName, names: Names) -> str:
    """A condition on an index."""
    index = index_text(guard.index, name, names)
    parts = []
    if guard.low is not None:
        parts.append(f"({index} >= {names.size(guard.low)})")
    if guard.high is not None:
        parts.append(f"({index} < {names.size(guard.high)})")
    return " & ".join(parts) or "true"
