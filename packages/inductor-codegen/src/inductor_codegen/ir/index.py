"""Index expressions: integer-affine forms over loop variables, with quotients, remainders and loaded integers
as atoms.

    index ::= const + coefficient * atom + ...          coefficients and const: int or symbolic size
    atom  ::= LoopVar | Quotient(index, n) | Remainder(index, n) | Loaded(scalar)

Quotient and Remainder appear only where the index is known to be non-negative, so that C's and Python's
division agree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike, Relation, ShapeEnv


@dataclass(frozen=True, slots=True)
class LoopVar:
    """A loop counter: ``0 <= name < extent``."""

    name: str
    extent: IntLike

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Quotient:
    """``numerator // denominator``, rounded down; the numerator is not negative."""

    numerator: Index
    denominator: IntLike

    def __str__(self) -> str:
        return f"({self.numerator})//({self.denominator})"


@dataclass(frozen=True, slots=True)
class Remainder:
    """``numerator % denominator``; the numerator is not negative."""

    numerator: Index
    denominator: IntLike

    def __str__(self) -> str:
        return f"({self.numerator})%({self.denominator})"


@dataclass(frozen=True, slots=True)
class Loaded:
    """An integer that a scalar expression computes (an index that comes from data)."""

    scalar: Any  # an ir.scalar.Scalar; that module imports this one

    def __str__(self) -> str:
        return f"[{self.scalar}]"


Atom: TypeAlias = LoopVar | Quotient | Remainder | Loaded


class Index:
    """An affine form. ``terms`` pairs atoms with non-zero coefficients, in order of first use. Immutable,
    hashable.
    """

    __slots__ = ("_hash", "const", "terms")
    const: IntLike
    terms: tuple[tuple[Atom, IntLike], ...]

    def __init__(self, const: IntLike, terms: tuple[tuple[Atom, IntLike], ...] = ()) -> None:
        self.const = const
        self.terms = terms
        self._hash = hash((const, frozenset(terms))) if len(terms) > 1 else hash((const, terms))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Index) or self._hash != other._hash or self.const != other.const:
            return False
        return self.terms == other.terms or (
            len(self.terms) == len(other.terms) and dict(self.terms) == dict(other.terms)
        )

    def __add__(self, other: Index | IntLike) -> Index:
        if not isinstance(other, Index):
            return self if _is_zero(other) else Index(self.const + other, self.terms)
        if not other.terms:
            return self + other.const
        if not self.terms:
            return other + self.const
        total = dict(self.terms)
        for atom, coefficient in other.terms:
            total[atom] = total[atom] + coefficient if atom in total else coefficient
        return Index(self.const + other.const, tuple(t for t in total.items() if not _is_zero(t[1])))

    def __sub__(self, other: Index) -> Index:
        return self + other * -1

    def __mul__(self, factor: IntLike) -> Index:
        if isinstance(factor, int):
            if factor == 1:
                return self
            if factor == 0:
                return ZERO
        return Index(self.const * factor, tuple((atom, c * factor) for atom, c in self.terms))

    def __str__(self) -> str:
        parts = [
            str(atom) if c == 1 and isinstance(c, int) else f"{_factor(c)}*{atom}" for atom, c in self.terms
        ]
        if not parts or not _is_zero(self.const):
            parts.append(str(self.const))
        return " + ".join(parts)

    __repr__ = __str__

    @property
    def as_constant(self) -> IntLike | None:
        """The value, when no atom occurs."""
        return None if self.terms else self.const

    def coefficient(self, atom: Atom) -> IntLike:
        """What ``atom`` is multiplied by at the top level; 0 if it does not occur there."""
        for found, coefficient in self.terms:
            if found == atom:
                return coefficient
        return 0

    def atoms(self) -> Iterator[Atom]:
        """Every atom, also inside quotients and remainders; not those inside loaded scalars."""
        for atom, _ in self.terms:
            yield atom
            if isinstance(atom, Quotient | Remainder):
                yield from atom.numerator.atoms()

    def variables(self) -> Iterator[LoopVar]:
        """The loop variables, those of loaded scalars excepted."""
        return (atom for atom in self.atoms() if isinstance(atom, LoopVar))

    def bounds(self, env: ShapeEnv) -> tuple[IntLike, IntLike] | None:
        """The least and the largest value, both included; None if not known."""
        low = high = self.const
        for atom, coefficient in self.terms:
            match atom:
                case LoopVar(_, extent):
                    reach: IntLike = extent - 1
                case Remainder(_, denominator):
                    reach = denominator - 1
                case Quotient(numerator, denominator):
                    inner = numerator.bounds(env)
                    if inner is None:
                        return None
                    blocks = _exact(
                        inner[1] + 1, denominator
                    )  # (n d - 1) // d is n - 1, n and d symbols, too
                    reach = inner[1] // denominator if blocks is None else blocks - 1
                case _:
                    return None
            if at_least(env, coefficient, 0):
                high = high + coefficient * reach
            elif at_least(env, -coefficient, 0):
                low = low + coefficient * reach
            else:
                return None
        return low, high


def _factor(value: IntLike) -> str:
    return str(value) if isinstance(value, int) or len(value.terms) == 1 else f"({value})"


def _is_zero(value: IntLike) -> bool:
    return isinstance(value, int) and value == 0


ZERO = Index(0)


def at_least(env: ShapeEnv, value: IntLike, bound: IntLike) -> bool:
    """Whether ``value >= bound`` is known for certain; records nothing."""
    if isinstance(value, int) and isinstance(bound, int):
        return value >= bound
    return env.known(Relation("<=", bound, value)) is True


def as_index(value: Index | Atom | IntLike) -> Index:
    """An index of one atom or of a constant."""
    if isinstance(value, Index):
        return value
    if isinstance(value, LoopVar | Quotient | Remainder | Loaded):
        return Index(0, ((value, 1),))
    return Index(value)


def variable(name: str, extent: IntLike) -> Index:
    """The index that is the loop variable itself; 0 when it has but one value."""
    return ZERO if isinstance(extent, int) and extent == 1 else as_index(LoopVar(name, extent))


def _exact(value: IntLike, divisor: IntLike) -> IntLike | None:
    """``value / divisor`` if that is an integer for certain."""
    if isinstance(value, int) and isinstance(divisor, int):
        return value // divisor if value % divisor == 0 else None
    remainder = value % divisor
    return value // divisor if isinstance(remainder, int) and remainder == 0 else None


def _split(index: Index, divisor: IntLike) -> tuple[Index, Index]:
    """``(whole, rest)`` with ``index == whole * divisor + rest``: every term that divides exactly goes to
    whole.
    """
    whole: list[tuple[Atom, IntLike]] = []
    rest: list[tuple[Atom, IntLike]] = []
    for atom, coefficient in index.terms:
        exact = _exact(coefficient, divisor)
        if exact is None:
            rest.append((atom, coefficient))
        else:
            whole.append((atom, exact))
    exact = _exact(index.const, divisor)
    whole_const, rest_const = (0, index.const) if exact is None else (exact, 0)
    if exact is None and isinstance(index.const, int) and isinstance(divisor, int):
        whole_const, rest_const = divmod(index.const, divisor)
    return Index(whole_const, tuple(whole)), Index(rest_const, tuple(rest))


def _fits(index: Index, divisor: IntLike, env: ShapeEnv) -> bool:
    bounds = index.bounds(env)
    return bounds is not None and at_least(env, bounds[0], 0) and at_least(env, divisor, bounds[1] + 1)


@dataclass(frozen=True, slots=True)
class _Units:
    """An index as ``whole * unit + rest``, where ``rest`` is less than a unit, and a divisor as ``number * unit``."""

    whole: Index
    rest: Index
    unit: IntLike
    number: IntLike


def _in_units(index: Index, divisor: IntLike, env: ShapeEnv) -> _Units | None:
    """``(6 i + j) // 24`` is ``i // 4`` where ``j < 6``, and ``(6 i + j) % 24`` is ``6 (i % 4) + j``."""
    for _, unit in index.terms:
        number = None if isinstance(unit, int) and unit == 1 else _exact(divisor, unit)
        if number is not None:
            whole, rest = _split(index, unit)
            if _fits(rest, unit, env):
                return _Units(whole, rest, unit, number)
    return None


def divide(index: Index, divisor: IntLike, env: ShapeEnv) -> Index:
    """``index // divisor`` for a non-negative index and a positive divisor."""
    if isinstance(divisor, int) and divisor == 1:
        return index
    whole, rest = _split(index, divisor)
    if _fits(rest, divisor, env):
        return whole
    rest_bounds = rest.bounds(env)
    if rest_bounds is None or not at_least(env, rest_bounds[0], 0):
        whole, rest = ZERO, index
    units = _in_units(rest, divisor, env)
    if units is not None:
        return whole + divide(units.whole, units.number, env)
    return whole + as_index(_shrink(rest, divisor))


def _shrink(rest: Index, divisor: IntLike) -> Atom:
    """(x // a) // b = x // (a * b)."""
    if len(rest.terms) == 1 and _is_zero(rest.const):
        atom, coefficient = rest.terms[0]
        if isinstance(atom, Quotient) and isinstance(coefficient, int) and coefficient == 1:
            return Quotient(atom.numerator, atom.denominator * divisor)
    return Quotient(rest, divisor)


def modulo(index: Index, divisor: IntLike, env: ShapeEnv) -> Index:
    """``index % divisor`` for a non-negative index and a positive divisor."""
    if isinstance(divisor, int) and divisor == 1:
        return ZERO
    _, rest = _split(index, divisor)
    if _fits(rest, divisor, env):
        return rest
    bounds = rest.bounds(env)
    if bounds is None or not at_least(env, bounds[0], 0):
        rest = index
    units = _in_units(rest, divisor, env)
    if units is not None:
        return modulo(units.whole, units.number, env) * units.unit + units.rest
    return as_index(Remainder(rest, divisor))


def flatten(indices: Sequence[Index], sizes: Sequence[IntLike]) -> Index:
    """The row-major position of ``indices`` in a block of ``sizes``."""
    total = ZERO
    for index, size in zip(indices, sizes, strict=True):
        total = total * size + index
    return total


def unflatten(position: Index, sizes: Sequence[IntLike], env: ShapeEnv) -> tuple[Index, ...]:
    """The inverse of ``flatten``. A block of which a size is 0 has no elements: all indices are then 0."""
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return (ZERO,) * len(sizes)
    result: list[Index] = []
    for axis in range(len(sizes) - 1, -1, -1):
        size = sizes[axis]
        if isinstance(size, int) and size == 1:
            result.append(ZERO)
        elif all(isinstance(outer, int) and outer == 1 for outer in sizes[:axis]):
            result.append(position)
            position = ZERO
        else:
            result.append(modulo(position, size, env))
            position = divide(position, size, env)
    return tuple(reversed(result))


def rejoined(index: Index) -> Index:
    """``index`` with quotient and remainder of one number in its place: ``30 * (i // 30) + i % 30`` is ``i``, and
    ``6 * (i // 6) + 2 * (i // 2 % 3) + i % 2`` too."""
    for atom, coefficient in index.terms:
        if isinstance(atom, Remainder):
            quotient = _shrink(atom.numerator, atom.denominator)
            if index.coefficient(quotient) == coefficient * atom.denominator:
                parts = as_index(atom) + as_index(quotient) * atom.denominator
                return rejoined(index - parts * coefficient + atom.numerator * coefficient)
    return index


def rewrite(index: Index, replace: Callable[[Atom], Index | None], env: ShapeEnv) -> Index:
    """``index`` with each atom replaced where ``replace`` returns something, simplified again."""
    total = Index(index.const)
    for atom, coefficient in index.terms:
        new = replace(atom)
        if new is None:
            match atom:
                case Quotient(numerator, denominator):
                    new = divide(rewrite(numerator, replace, env), denominator, env)
                case Remainder(numerator, denominator):
                    new = modulo(rewrite(numerator, replace, env), denominator, env)
                case _:
                    new = as_index(atom)
        total = total + new * coefficient
    return rejoined(total)


def size_symbols(index: Index) -> Iterator[Expr]:
    """The symbolic sizes that occur as constants, coefficients, extents or divisors."""
    for value in (index.const, *(coefficient for _, coefficient in index.terms)):
        if isinstance(value, Expr):
            yield value
    for atom, _ in index.terms:
        if isinstance(atom, Quotient | Remainder):
            if isinstance(atom.denominator, Expr):
                yield atom.denominator
            yield from size_symbols(atom.numerator)
