"""Expressions that recorded equalities make 0, and what other expressions are because of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fx_interface.symbols.evaluation import substitute
from fx_interface.symbols.expr import Apply, Expr, IntLike, Symbol, floordiv
from fx_interface.symbols.extremes import as_remainder, without_factor, without_quotient


class ZeroFacts:
    """The facts of one environment, with those ``replacements`` of its symbols that hold when it is asked.

    What the facts say after replacements is computed once: ``refresh`` is called when those have changed.
    """

    def __init__(self) -> None:
        self._facts: set[Expr] = set()
        self._replaced: list[IntLike] = []
        self._quotients: list[tuple[Apply, Expr, int]] = []
        self._whole: set[IntLike] = set()

    def __bool__(self) -> bool:
        return bool(self._facts)

    def __iter__(self) -> Iterator[Expr]:
        return iter(self._facts)

    def add(self, zero: Expr, replacements: Mapping[Symbol, IntLike]) -> None:
        """An expression is 0."""
        self._facts.add(as_remainder(zero))
        self.refresh(replacements)

    def refresh(self, replacements: Mapping[Symbol, IntLike]) -> None:
        """Symbols are known by others now."""
        self._replaced = [without_factor(substitute(fact, replacements)) for fact in self._facts]
        self._quotients = [found for zero in self._replaced if (found := _quotient_in(zero)) is not None]
        self._whole.clear()

    def whole(self, value: IntLike) -> IntLike:
        """``value`` with ``a`` for ``b * (a // b)`` where ``a % b`` is known to be 0."""
        for atom, lhs, rhs in self._quotients:
            if isinstance(value, Expr) and any(atom in monomial for monomial, _ in value.terms):
                value = without_quotient(value, lhs, rhs)
        return value

    def make_zero(self, difference: Expr) -> bool:
        """Whether ``difference`` is 0 because of the facts."""
        rest = without_factor(self.whole(difference))
        if not self._whole:
            self._whole.update(self.whole(zero) for zero in self._replaced)
        return rest == 0 or rest in self._whole or -rest in self._whole


def _quotient_in(zero: IntLike) -> tuple[Apply, Expr, int] | None:
    """Of ``a % b``, with a number ``b``: ``a // b``, ``a`` and ``b``. None for what is no remainder, and where the
    quotient is more than one atom."""
    monomial = zero.terms[0][0] if isinstance(zero, Expr) and len(zero.terms) == 1 else ()
    remainder = monomial[0] if len(monomial) == 1 else None
    if not isinstance(remainder, Apply) or remainder.function != "mod":
        return None
    lhs, rhs = remainder.args
    quotient = floordiv(lhs, rhs)
    if not isinstance(lhs, Expr) or not isinstance(rhs, int) or not isinstance(quotient, Expr):
        return None
    terms = quotient.terms
    atom = terms[0][0][0] if len(terms) == 1 and len(terms[0][0]) == 1 and terms[0][1] == 1 else None
    return (atom, lhs, rhs) if isinstance(atom, Apply) else None
