"""Floating-point numbers that torch's C++ code computes from symbolic sizes: nodes behind ``torch.SymFloat``.

A derivative formula divides by a number of elements; with symbolic sizes that is ``FloatExpr("/", (2.0, s0 - 1))``. A
question about such a number, or a use that needs the number itself, fixes the sizes in it to their values.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, IntLike, Relation, RelationOp, ShapeEnv, floordiv

FloatLike: TypeAlias = "float | IntLike | FloatExpr"

FUNCTIONS: dict[str, Callable[..., float]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    "sqrt": math.sqrt,
}
"""What is computed, in Python's floating-point arithmetic."""


@dataclass(frozen=True, slots=True)
class FloatExpr:
    """``function`` (a key of ``FUNCTIONS``) of numbers, of which one at least is symbolic."""

    function: str
    args: tuple[FloatLike, ...]


def fixed(value: FloatLike, specialize: Callable[[IntLike], int]) -> float:
    """The number, with every size in it as ``specialize`` gives it."""
    if isinstance(value, FloatExpr):
        return FUNCTIONS[value.function](*(fixed(arg, specialize) for arg in value.args))
    return float(specialize(value)) if isinstance(value, Expr) else float(value)


_LARGEST_PART = 1 << 20
"""Numerators and denominators up to here leave room for sizes below 2^31 in the 53 bits of a float."""


def floor_of_product(size: IntLike, factor: float) -> IntLike | None:
    """``floor(float(size) * factor)``, rounded as floats are, by integers alone; None where integers would not do.

    1.5 -> 3 * size // 2

    Let ``factor`` be p / q * (1 + d) with small p and q. Where size * p / q is no integer it is at least 1 / q away
    from one, much more than rounding moves the product. Where it is an integer k, the product is k * (1 + d): never
    below k for d >= 0, and rounded to k for |d| <= 2^-54, half of the distance between floats below k at the least.
    0.7 has a larger d: 90 * 0.7 is 62.99999999999999.
    """
    if not 0 < factor < _LARGEST_PART:
        return 0 if factor == 0 else None
    from fractions import Fraction  # with decimal numbers: few programs scale sizes

    half_a_step = Fraction(1, 1 << 54)
    exact = Fraction(factor)
    near = exact.limit_denominator(_LARGEST_DENOMINATOR)
    error = exact / near - 1 if near else Fraction(-1)
    if near.numerator > _LARGEST_PART or not -half_a_step <= error <= 2 * half_a_step:
        return None
    return floordiv(size * near.numerator, near.denominator)


_LARGEST_DENOMINATOR = 1000


def _binary(symbol: str, swapped: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: FloatNode, other: Any) -> FloatNode:
        return self._of(symbol, *((other, self) if swapped else (self, other)))

    return method


def whole(value: FloatLike) -> IntLike | None:
    """The integer that a float is whatever the sizes are, in the algebra of sizes; None if it may have a fraction.

    Sizes and their products are below 2^53, so that such floats are exact: 4.0 * s0 - 1.0 -> 4 * s0 - 1.
    """
    if isinstance(value, FloatExpr):
        compute = _OF_INTEGERS.get(value.function)
        args = [whole(arg) for arg in value.args] if compute is not None else [None]
        return None if compute is None or None in args else compute(*args)
    if isinstance(value, Expr):
        return value
    return int(value) if float(value).is_integer() else None


_OF_INTEGERS: dict[str, Callable[..., Any]] = {name: FUNCTIONS[name] for name in ("+", "-", "*", "neg")}


def _comparison(
    compare: Callable[[float, float], bool], relation: RelationOp, swapped: bool = False
) -> Callable[[Any, Any], Any]:
    def method(self: FloatNode, other: Any) -> Any:
        one, two = whole(self.value), whole(other.value)
        if one is not None and two is not None:
            return self.table.node(Relation(relation, *((two, one) if swapped else (one, two))))
        return self.table.node(
            compare(self.guard_float("", 0), fixed(other.value, self.table.env.specialize))
        )

    return method


class SizeTable(Protocol):
    """One trace's symbolic sizes, as far as numbers computed from them need it."""

    env: ShapeEnv

    def node(self, value: IntLike | Relation, /) -> Any:
        """A node of an integer or of a yes-or-no question."""


class FloatNode:
    """What the C++ side of ``SymFloat`` calls."""

    __slots__ = ("table", "value")

    def __init__(self, value: FloatLike, table: SizeTable) -> None:
        self.value = value
        self.table = table

    @property
    def shape_env(self) -> Any:
        """The environment that decides."""
        return self.table.env

    is_int = is_bool = is_nested_int = is_constant = lambda self: False
    is_float = is_symbolic = lambda self: True
    maybe_as_int = constant_int = constant_bool = constant_float = nested_int = lambda self: None

    def maybe_as_float(self) -> float | None:
        """The number, if it is not symbolic."""
        return self.value if isinstance(self.value, float) else None

    def wrap_float(self, number: float) -> FloatNode:
        """A constant as a node."""
        return FloatNode(number, self.table)

    wrap_int = wrap_float

    def clone(self) -> FloatNode:
        """The node itself: nodes are never modified."""
        return self

    def _of(self, function: str, *args: Any) -> FloatNode:
        values = tuple(arg.value for arg in args)
        if all(isinstance(value, float | int) for value in values):
            return FloatNode(FUNCTIONS[function](*values), self.table)
        return FloatNode(FloatExpr(function, values), self.table)

    add, sub, mul = _binary("+"), _binary("-"), _binary("*")
    truediv = float_truediv = _binary("/")
    pow = float_pow = _binary("**")

    def neg(self) -> FloatNode:
        """``-self``."""
        return self._of("neg", self)

    def sym_sqrt(self) -> FloatNode:
        """The square root."""
        return self._of("sqrt", self)

    def sym_float(self) -> FloatNode:
        """Itself."""
        return self

    def floor(self) -> Any:
        """The greatest integer that is not greater: a formula for the product of a size and a number."""
        formula = self._floor_formula()
        if formula is None:
            formula = math.floor(self.guard_float("", 0))
        return self.table.node(formula)

    def trunc(self) -> Any:
        """The integer without what is behind the point; sizes are not negative."""
        formula = self._floor_formula()
        return self.table.node(math.trunc(self.guard_float("", 0)) if formula is None else formula)

    def ceil(self) -> Any:
        """The least integer that is not less."""
        return self.table.node(math.ceil(self.guard_float("", 0)))

    def _floor_formula(self) -> IntLike | None:
        value = self.value
        if not isinstance(value, FloatExpr) or value.function != "*":
            return None
        size, factor = value.args if isinstance(value.args[0], Expr) else value.args[::-1]
        if not isinstance(size, Expr) or isinstance(factor, (Expr, FloatExpr)):
            return None
        low = self.table.env.bounds(size).low
        return floor_of_product(size, float(factor)) if low is not None and low >= 0 else None

    eq, ne = _comparison(operator.eq, "=="), _comparison(operator.ne, "!=")
    lt, le = _comparison(operator.lt, "<"), _comparison(operator.le, "<=")
    gt, ge = _comparison(operator.gt, "<", swapped=True), _comparison(operator.ge, "<=", swapped=True)

    def guard_float(self, file: str, line: int) -> float:
        """The number for this compilation: its sizes are fixed to their values."""
        return fixed(self.value, self.table.env.specialize)

    def float_(self) -> float:
        """As ``guard_float``."""
        return self.guard_float("", 0)

    def __str__(self) -> str:
        return str(self.value)


def float_from_torch(value: torch.SymFloat) -> FloatLike:
    """What is behind a ``torch.SymFloat`` of ours."""
    found: FloatLike = value.node.value
    return found
