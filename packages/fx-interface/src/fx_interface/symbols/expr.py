"""Symbolic integers: interned, normalised sums of products over symbols, floor division, modulo, minimum and maximum.

A size is ``IntLike``: a plain ``int`` or an ``Expr``. Arithmetic never builds an ``Expr`` for a constant, so
``isinstance(x, int)`` tells static from symbolic. Equal expressions are the same object, so ``is`` and ``==`` agree and
hashing costs nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from math import gcd
from typing import ClassVar, TypeAlias, Union

IntLike: TypeAlias = Union[int, "Expr"]


class Symbol:
    """An atom: an unknown integer, known by its name only. Range and hint live in a ``ShapeEnv``."""

    __slots__ = ("_key", "name")
    _interned: ClassVar[dict[str, Symbol]] = {}
    _key: tuple[str, str]
    name: str

    def __new__(cls, name: str) -> Symbol:
        found = cls._interned.get(name)
        if found is None:
            made = object.__new__(cls)
            made.name = name
            made._key = ("0", name)
            found = cls._interned.setdefault(name, made)
        return found

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[type[Symbol], tuple[str]]:
        return (Symbol, (self.name,))


class Apply:
    """An atom: one of ``floordiv``, ``mod``, ``min``, ``max`` applied to two integers that do not simplify further."""

    __slots__ = ("_key", "args", "divides", "function")
    _interned: ClassVar[dict[tuple[str, IntLike, IntLike], Apply]] = {}
    _key: tuple[str, str]
    function: str
    args: tuple[IntLike, IntLike]
    divides: int
    """The divisor of a quotient without a remainder, so that ``divides`` times it is the dividend; else 0."""

    def __new__(cls, function: str, lhs: IntLike, rhs: IntLike) -> Apply:
        key = (function, lhs, rhs)
        found = cls._interned.get(key)
        if found is None:
            made = object.__new__(cls)
            made.function = function
            made.args = (lhs, rhs)
            made._key = ("1", f"{function}({lhs}, {rhs})")
            is_whole = function == "floordiv" and isinstance(rhs, int) and mod(lhs, rhs) == 0
            made.divides = rhs if is_whole and isinstance(rhs, int) else 0
            found = cls._interned.setdefault(key, made)
        return found

    def __repr__(self) -> str:
        lhs, rhs = self.args
        match self.function:
            case "floordiv":
                return f"({lhs})//({rhs})"
            case "mod":
                return f"({lhs})%({rhs})"
        return f"{self.function}({lhs}, {rhs})"

    def __reduce__(self) -> tuple[type[Apply], tuple[str, IntLike, IntLike]]:
        return (Apply, (self.function, *self.args))


Atom: TypeAlias = Symbol | Apply
Monomial: TypeAlias = tuple[Atom, ...]
"""A product of atoms, sorted; the empty product is the constant 1."""


_REMEMBERED = 4096
"""Of so many sums and products each the results are kept: a compilation asks for the same strides again and again."""

_LONGEST_QUOTIENT = 64
"""Terms after which a division is given up."""


def _monomial_key(monomial: Monomial) -> tuple[int, tuple[tuple[str, str], ...]]:
    return (-len(monomial), tuple(atom._key for atom in monomial))


class Expr:
    """A sum of integer multiples of monomials, in canonical order; never a constant (that is a plain ``int``).

    There is one object for each such sum, so equality and hash are those of objects.
    """

    __slots__ = ("_symbols", "terms")
    _interned: ClassVar[dict[tuple[tuple[Monomial, int], ...], Expr]] = {}
    terms: tuple[tuple[Monomial, int], ...]
    _symbols: frozenset[Symbol] | None

    def __new__(cls, terms: tuple[tuple[Monomial, int], ...]) -> Expr:
        found = cls._interned.get(terms)
        if found is None:
            made = object.__new__(cls)
            made.terms = terms
            made._symbols = None
            found = cls._interned.setdefault(terms, made)
        return found

    def __reduce__(self) -> tuple[Callable[..., IntLike], tuple[object, ...]]:
        return (_from_terms, (self.terms,))

    def __deepcopy__(self, memo: object) -> Expr:
        return self

    def __bool__(self) -> bool:
        raise TypeError(f"the truth of the symbolic integer {self} is not known; ask a ShapeEnv")

    def __add__(self, other: IntLike) -> IntLike:
        return _add(self, other, 1) if isinstance(other, (int, Expr)) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: IntLike) -> IntLike:
        return _add(self, other, -1) if isinstance(other, (int, Expr)) else NotImplemented

    def __rsub__(self, other: int) -> IntLike:
        return _add(-self, other, 1) if isinstance(other, int) else NotImplemented

    def __neg__(self) -> IntLike:
        return Expr(tuple((m, -c) for m, c in self.terms))

    def __mul__(self, other: IntLike) -> IntLike:
        if other == 1:
            return self
        return _mul(self, other) if isinstance(other, (int, Expr)) else NotImplemented

    __rmul__ = __mul__

    def __floordiv__(self, other: IntLike) -> IntLike:
        return floordiv(self, other)

    def __rfloordiv__(self, other: int) -> IntLike:
        return floordiv(other, self)

    def __mod__(self, other: IntLike) -> IntLike:
        return mod(self, other)

    def __rmod__(self, other: int) -> IntLike:
        return mod(other, self)

    def __repr__(self) -> str:
        parts: list[str] = []
        for monomial, coefficient in self.terms:
            product = "*".join(str(atom) for atom in monomial)
            if not monomial:
                text = str(abs(coefficient))
            elif abs(coefficient) == 1:
                text = product
            else:
                text = f"{abs(coefficient)}*{product}"
            if parts:
                parts.append(f" {'-' if coefficient < 0 else '+'} {text}")
            else:
                parts.append(f"-{text}" if coefficient < 0 else text)
        return "".join(parts)

    @property
    def symbols(self) -> frozenset[Symbol]:
        """Every symbol that occurs anywhere in the expression."""
        if self._symbols is None:
            self._symbols = frozenset(_atom_symbols(atom for monomial, _ in self.terms for atom in monomial))
        return self._symbols

    @property
    def as_symbol(self) -> Symbol | None:
        """The symbol, when the expression is exactly one."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Symbol):
                return monomial[0]
        return None


def _atom_symbols(atoms: Iterable[Atom]) -> Iterable[Symbol]:
    for atom in atoms:
        if isinstance(atom, Symbol):
            yield atom
        else:
            for arg in atom.args:
                if isinstance(arg, Expr):
                    yield from arg.symbols


def symbol(name: str) -> Expr:
    """The expression that consists of the symbol ``name``."""
    return Expr((((Symbol(name),), 1),))


def _terms(value: IntLike) -> tuple[tuple[Monomial, int], ...]:
    if isinstance(value, Expr):
        return value.terms
    return (((), int(value)),) if value else ()


def _from_terms(terms: Iterable[tuple[Monomial, int]]) -> IntLike:
    ordered = tuple(sorted((t for t in terms if t[1]), key=lambda t: _monomial_key(t[0])))
    if not ordered:
        return 0
    if len(ordered) == 1 and not ordered[0][0]:
        return ordered[0][1]
    return Expr(ordered)


@functools.lru_cache(maxsize=_REMEMBERED)
def _add(lhs: IntLike, rhs: IntLike, sign: int) -> IntLike:
    if isinstance(rhs, int) and not rhs:
        return lhs
    total = dict(_terms(lhs))
    for monomial, coefficient in _terms(rhs):
        total[monomial] = total.get(monomial, 0) + sign * coefficient
    return _without_whole_quotients(_from_terms(total.items()))


def _times(value: IntLike, factor: int) -> IntLike:
    """A multiple: the same monomials in the same order."""
    if isinstance(value, int) or not factor:
        return factor and value * factor
    return (
        value
        if factor == 1
        else _without_whole_quotients(Expr(tuple([(m, c * factor) for m, c in value.terms])))
    )


@functools.lru_cache(maxsize=_REMEMBERED)
def _mul(lhs: IntLike, rhs: IntLike) -> IntLike:
    for one, other in ((lhs, rhs), (rhs, lhs)):
        if isinstance(one, int):
            return _times(other, one)
    total: dict[Monomial, int] = {}
    for left, a in _terms(lhs):
        for right, b in _terms(rhs):
            product = (
                tuple(sorted(left + right, key=lambda atom: atom._key)) if left and right else left or right
            )
            total[product] = total.get(product, 0) + a * b
    return _without_whole_quotients(_from_terms(total.items()))


def _without_whole_quotients(value: IntLike) -> IntLike:
    """``value`` with ``a`` for ``k * (a // k)`` where that leaves no remainder: 64 * ((n + (-n) % 64) // 64)."""
    if isinstance(value, int):
        return value
    for monomial, coefficient in value.terms:
        for position, atom in enumerate(monomial):
            if isinstance(atom, Apply) and atom.divides and coefficient % atom.divides == 0:
                others = _from_terms(
                    [(monomial[:position] + monomial[position + 1 :], coefficient // atom.divides)]
                )
                rest = _from_terms([term for term in value.terms if term[0] is not monomial])
                return _add(rest, _mul(others, atom.args[0]), 1)
    return value


def atom_of(function: str, lhs: IntLike, rhs: IntLike) -> Expr:
    """An operation that does not simplify further."""
    return Expr((((Apply(function, lhs, rhs),), 1),))


@functools.lru_cache(maxsize=_REMEMBERED)
def _divide_exactly(lhs: IntLike, rhs: IntLike) -> IntLike | None:
    """``lhs / rhs`` where it is a polynomial, as in (4*s0*s1 + 2*s0) / (2*s0) = 2*s1 + 1; else None.

    Long division: terms are kept in an order that products respect, so the first term of a product is the product of
    the first terms.
    """
    if rhs == 0:
        return None
    factors, scale = _terms(rhs)[0]
    quotient: list[tuple[Monomial, int]] = []
    rest = lhs
    while rest != 0:
        monomial, coefficient = _terms(rest)[0]
        remaining = list(monomial)
        for factor in factors:
            if factor not in remaining:
                return None
            remaining.remove(factor)
        if coefficient % scale or len(quotient) == _LONGEST_QUOTIENT:
            return None
        quotient.append((tuple(remaining), coefficient // scale))
        rest = rest - _mul(_from_terms(quotient[-1:]), rhs)
    return _from_terms(quotient)


def floordiv(lhs: IntLike, rhs: IntLike) -> IntLike:
    """Python's ``lhs // rhs``; the divisor must not be zero."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs // rhs
    exact = _divide_exactly(lhs, rhs)
    if exact is not None:
        return exact
    common = _common_factor(lhs, rhs)
    if common != 1:
        return floordiv(floordiv(lhs, common), floordiv(rhs, common))
    if isinstance(rhs, int) and isinstance(lhs, Expr):
        whole = _from_terms((m, c // rhs) for m, c in lhs.terms if c % rhs == 0 or not m)
        if whole != 0:
            rest = _from_terms((m, c if m else c % rhs) for m, c in lhs.terms if c % rhs)
            return whole + floordiv(rest, rhs)
    return atom_of("floordiv", lhs, rhs)


def mod(lhs: IntLike, rhs: IntLike) -> IntLike:
    """Python's ``lhs % rhs``; the divisor must not be zero."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs % rhs
    if _divide_exactly(lhs, rhs) is not None:
        return 0
    if isinstance(rhs, int) and isinstance(lhs, Expr):
        lhs = _congruent(lhs, rhs)
        if isinstance(lhs, int):
            return lhs % rhs
    common = _common_factor(lhs, rhs)
    if common != 1:
        return common * mod(floordiv(lhs, common), floordiv(rhs, common))
    return atom_of("mod", lhs, rhs)


def _common_factor(lhs: IntLike, rhs: IntLike) -> IntLike:
    """What both are a multiple of, of a divisor that is a product: 5*s0 of 10*s0*s1 + 5*s0 and 15*s0*s2."""
    if not isinstance(lhs, Expr) or len(_terms(rhs)) != 1:
        return 1
    ((factors, scale),) = _terms(rhs)
    shared = gcd(scale, *(coefficient for _, coefficient in lhs.terms))
    common: list[Atom] = []
    left = [list(monomial) for monomial, _ in lhs.terms]
    for factor in factors:
        if all(factor in monomial for monomial in left):
            common.append(factor)
            for monomial in left:
                monomial.remove(factor)
    return _from_terms([(tuple(common), shared)])


def _congruent(value: IntLike, divisor: int) -> IntLike:
    """What leaves the same remainder: coefficients are remainders themselves, and ``a`` stands for ``a % b`` where that
    divisor is a multiple of this, as in (n + (64 - n % 64) % 64) % 64."""
    for monomial, coefficient in _terms(value):
        for position, atom in enumerate(monomial):
            known = atom.args[1] if isinstance(atom, Apply) and atom.function == "mod" else None
            if isinstance(atom, Apply) and isinstance(known, int) and known % divisor == 0:
                others = _from_terms([(monomial[:position] + monomial[position + 1 :], coefficient)])
                rest = _from_terms([term for term in _terms(value) if term[0] is not monomial])
                return _congruent(_add(rest, _mul(others, atom.args[0]), 1), divisor)
    return _from_terms([(m, c % divisor) for m, c in _terms(value)])
