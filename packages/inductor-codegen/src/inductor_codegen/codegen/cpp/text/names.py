"""The names of one kernel: of what it computes, and of sizes that follow from its parameters.

    for (i < size_floordiv(s0 + (-1), 2)) ... in0[64 * size_floordiv(s0 + (-1), 2) * i ...]
    ->  const int64_t n1 = size_floordiv((s0 + (-1)), 2);  const int64_t n2 = 64 * n1;   before the loops

Written once, a size is compiled once: the kernels of a dynamic resnet take the compiler a third less time.
"""

from __future__ import annotations

from fx_interface.symbols import Apply, Expr, IntLike, Symbol

_DIVISIONS = ("floordiv", "mod")


class Names:
    """Mutable; grows while the kernel is written. ``sizes``: the text of each named size, in order of use."""

    def __init__(self) -> None:
        self._count = 0
        self._known: dict[Expr | Apply, str] = {}
        self.sizes: dict[str, str] = {}

    def new(self, prefix: str) -> str:
        """A name that nothing has."""
        self._count += 1
        return f"{prefix}{self._count}"

    def size(self, value: IntLike) -> str:
        """An integer over size parameters: a number, a parameter, or the name of what is computed before the loops."""
        if isinstance(value, int):
            return str(value) if value >= 0 else f"({value})"
        atom = value.as_symbol
        if atom is not None:
            return atom.name
        if not may_be_early(value):
            return self._sum(value)
        return self._known.get(value) or self._name(value, self._sum(value))

    def declarations(self) -> list[str]:
        """The lines that compute the named sizes."""
        return [f"const int64_t {name} = {text};" for name, text in self.sizes.items()]

    def _name(self, value: Expr | Apply, text: str) -> str:
        name = self._known[value] = f"n{len(self.sizes)}"
        self.sizes[name] = text
        return name

    def _sum(self, value: Expr) -> str:
        terms = [self._term(monomial, coefficient) for monomial, coefficient in value.terms]
        return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"

    def _term(self, monomial: tuple[Symbol | Apply, ...], coefficient: int) -> str:
        factors = [atom.name if isinstance(atom, Symbol) else self._applied(atom) for atom in monomial]
        if coefficient != 1 or not factors:
            factors.insert(0, str(coefficient) if coefficient >= 0 else f"({coefficient})")
        return " * ".join(factors)

    def _applied(self, atom: Apply) -> str:
        found = self._known.get(atom)
        if found is not None:
            return found
        lhs, rhs = (self.size(arg) for arg in atom.args)
        text = f"size_{atom.function}({lhs}, {rhs})"
        return self._name(atom, text) if _is_early(atom) else text


def may_be_early(value: IntLike) -> bool:
    """Whether computing a size cannot fault even where no loop needs it: it divides by positive numbers only."""
    if isinstance(value, int):
        return True
    return all(
        isinstance(atom, Symbol) or _is_early(atom) for monomial, _ in value.terms for atom in monomial
    )


def _is_early(atom: Apply) -> bool:
    lhs, rhs = atom.args
    divides = atom.function in _DIVISIONS and not (isinstance(rhs, int) and rhs > 0)
    return not divides and may_be_early(lhs) and may_be_early(rhs)
