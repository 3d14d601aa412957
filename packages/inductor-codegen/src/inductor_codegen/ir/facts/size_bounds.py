"""Which symbolic sizes are not negative, by what their symbols are at least and by what a quotient is at most.

s0 + 1 - 2 * ((s0 + 1) // 2)   is not, for any s0;      s0 // 2 - 1   is not where s0 >= 2
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fx_interface.symbols import Apply, Expr, IntLike, ShapeEnv, Symbol, substitute, symbol


def is_natural_size(value: IntLike, least: Mapping[str, int]) -> bool:
    """Whether ``value >= 0`` for all symbols that are at least ``least``; False where that is not found out."""
    bound = value
    scale = 1  # value >= bound / scale
    while isinstance(bound, Expr):
        found = next(_quotients(bound), None)
        if found is None:
            break
        quotient, coefficient, numerator, divisor = (
            found  # numerator - divisor < divisor * quotient <= numerator
        )
        rest = bound - coefficient * quotient
        bound = rest * divisor + coefficient * (numerator if coefficient < 0 else numerator - (divisor - 1))
        scale *= divisor
    bound = bound + (scale - 1)  # an integer above -1 is not negative
    if isinstance(bound, int):
        return bound >= 0
    names = [atom.name for atom in bound.symbols]
    if not all(name in least for name in names):
        return False
    shifted = substitute(bound, {Symbol(name): symbol(name) + least[name] for name in names})
    return (isinstance(shifted, int) and shifted >= 0) or (isinstance(shifted, Expr) and _only_adds(shifted))


def _only_adds(value: Expr) -> bool:
    """Whether an expression has but products of natural numbers to add."""
    return all(
        coefficient > 0 and all(isinstance(atom, Symbol) for atom in monomial)
        for monomial, coefficient in value.terms
    )


def _quotients(value: Expr) -> Iterator[tuple[Expr, int, IntLike, int]]:
    """Terms that are multiples of a quotient by a number: the quotient, its factor, what is divided, and by what."""
    for monomial, coefficient in value.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if isinstance(atom, Apply) and atom.function == "floordiv":
            numerator, divisor = atom.args
            if isinstance(divisor, int) and divisor > 0:
                yield Expr((((atom,), 1),)), coefficient, numerator, divisor


def least_of(name: str, env: ShapeEnv) -> int | None:
    """What a size is at least by its range and by the relations that a compilation relies on; None if not known."""
    known = env.symbols.get(Symbol(name))
    if known is None or known.hint is None:  # of a size from data some is checked later only
        return None
    bounds = [known.range.low]
    for guard in env.guards:
        relation = guard.relation
        if relation.op in ("<", "<="):
            bounds.append(_least_by(relation.rhs - relation.lhs - (relation.op == "<"), name))
    return max((bound for bound in bounds if bound is not None), default=None)


def _least_by(natural: IntLike, name: str) -> int | None:
    """What a symbol is at least where ``natural``, which is a multiple of it and a number, is not negative."""
    terms = dict(natural.terms) if isinstance(natural, Expr) else {}
    factor, constant = terms.pop((Symbol(name),), 0), terms.pop((), 0)
    return None if terms or factor <= 0 else -(constant // factor)
