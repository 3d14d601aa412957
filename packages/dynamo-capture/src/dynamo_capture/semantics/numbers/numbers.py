"""Numbers that differ from call to call, and what the program computes from them in Python.

    x * (1 - 0.1 * i / 20)    ->    .numbers = (1 - 0.1 * i / 20,); graph(x, torch.tensor(.numbers[0]))

An integer stays in the algebra of sizes (``SymValue``) under ``+``, ``-``, ``*``, under ``//`` and ``%`` by what
is positive, small powers, ``min``, ``max`` and comparisons. All else makes a formula: of floats, and of integers
under true division, powers, bit operations and the functions of ``math``. Its value is computed by Python before
the graph runs; a float is passed as a tensor without dimensions, an integer is a symbol of its own. What the program
asks about such a number, and that computing it raised nothing, are facts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from dynamo_capture.sources.formulas import FUNCTIONS, NAMES, Formula, applied, may_raise, number
from dynamo_capture.sources.sources import ComputedSource
from dynamo_capture.values import Const, SymValue, TensorMeta, TensorValue, TupleValue, Value, boolean
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.floating import FormulaFloat, RuntimeFloat
from fx_interface.signature import InputKind
from fx_interface.symbols import Apply, Expr, IntLike, Relation, ShapeEnv, Symbol, floordiv, mod
from fx_interface.tensor_spec import TensorSpec

_APPLIED = {"floordiv": "//", "mod": "%", "min": "min", "max": "max"}
_TYPE_VARIES = frozenset({"**", "pow", "math.pow"})
"""Functions whose result may be of another type for other operands of the same types."""
_SAME_INTEGER = frozenset({"int", "round", "math.floor", "math.ceil", "math.trunc"})
"""Functions that give an integer back as it is."""
_ROUNDING_DOWN = frozenset({"int", "math.floor", "math.trunc"})
_EXACT = 2**52
"""Up to here the quotient of two integers, rounded to a float, is on the same side of every integer."""


class Numbers:
    """The computed numbers of one trace. ``made``: what replacement code computes, where it is needed."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self.made: list[Formula] = []
        self._of_symbols: dict[Symbol, Formula] = {}
        self._of_sizes: dict[Expr, Formula] = {}
        self._computed: dict[Symbol, None] = {}

    def formula(self, value: Value) -> Formula | None:
        """How a number follows from what the program reads; None for what is no number, or not known so far."""
        if value.expr is not None:
            return self._of_size(self._tx.env.simplify(value.expr))
        if isinstance(value, RuntimeFloat):
            return value.formula if value.is_unread else number(value.value)
        known = value.known_as(int, float, bool)
        return None if known is None else number(known)

    def call(self, function: Any, args: Sequence[Value]) -> Value | None:
        """A call of a function of numbers; None where it is none, or what it is called with must be known."""
        name = NAMES.get(function)
        if name is None:
            return None
        if len(args) == 1 and name in _SAME_INTEGER and args[0].expr is not None:
            return args[0]
        quotient = self._quotient(name, args[0]) if len(args) == 1 else None
        if quotient is not None:
            return quotient
        if name in ("min", "max") and not (len(args) > 1 and all(a.python_type() is float for a in args)):
            return None
        return self.compute(name, args)

    def _quotient(self, name: str, value: Value) -> Value | None:
        """``math.ceil(n / 8)``, ``math.floor(n / 8)`` or ``int(n / 8)`` of a size: one again; None elsewhere."""
        known = value.formula if isinstance(value, FormulaFloat) and value.is_unread else None
        if known is None or not (name == "math.ceil" or name in _ROUNDING_DOWN):
            return None
        operands = known.operands if known.symbol == "/" else ()
        size = next((size for size, made in self._of_sizes.items() if operands and made is operands[0]), None)
        divisor = operands[1].value if operands and operands[1].is_constant else None
        if size is None or type(divisor) is not int or divisor <= 0:
            return None
        env = self._tx.env
        if not (env.decide(Relation("<=", 0, size)) and env.decide(Relation("<=", size, _EXACT))):
            return None
        filled = size + mod(-size, divisor) if name == "math.ceil" else size
        found = floordiv(filled, divisor)
        return SymValue(found) if isinstance(found, Expr) else Const(found)

    def method(self, name: str, owner: Value, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """A method of a number, by the name that its class gives it; None as for ``call``."""
        return self.compute(name, [owner]) if name in FUNCTIONS and not (args or kwargs) else None

    def compute(self, name: str, values: Sequence[Value]) -> Value | None:
        """The number that Python computes when the code runs; None where not all of it is there before the graph."""
        formulas = [self.formula(value) for value in values]
        operands = tuple([formula for formula in formulas if formula is not None and formula.is_read_early])
        if len(operands) < len(values):
            return None
        try:
            made = applied(name, *operands)
        except (ArithmeticError, TypeError, ValueError) as error:
            return self._raise(name, operands, error)
        if name in _TYPE_VARIES:
            self._tx.facts.decide(applied("type", made), "same", number(type(made.value).__name__))
        return self.value(made)

    def tensor(self, function: str, dtype: torch.dtype, values: Sequence[Value]) -> TensorValue | None:
        """A tensor with one dimension that torch makes of numbers before the graph runs; None as for ``compute``."""
        formulas = [self.formula(value) for value in values]
        operands = [formula for formula in formulas if formula is not None and formula.is_read_early]
        if len(operands) < len(values):
            return None
        try:
            made = applied("made", number(function), number(str(dtype).removeprefix("torch.")), *operands)
        except (RuntimeError, TypeError):
            return None
        size = self.value(applied("len", made))
        spec = TensorSpec(
            (size.expr if size.expr is not None else self._tx.index(size),),
            (1,),
            dtype,
            torch.device("cpu"),
        )
        source = self._source(made)
        node = self._tx.output.placeholder(function, InputKind.USER, spec, source, made.value)
        return TensorValue(node, TensorMeta.of(spec, False, True, torch.Tensor))

    def _raise(self, name: str, operands: tuple[Formula, ...], error: Exception) -> Value:
        """The program raises; in another call it may not."""
        found = (type(error).__name__, str(error))
        self._tx.facts.fix(Formula(found, "outcome", (number(name), *operands)))
        call: Callable[..., Value] = FUNCTIONS[name].call
        return self._tx.fold(lambda: call(*(operand.value for operand in operands)))

    def value(self, made: Formula) -> Value:
        """The value of the trace for what is computed."""
        tx, found = self._tx, made.value
        if type(found) is float:
            if may_raise(made.symbol, made.operands):
                tx.facts.computed(made)
            return FormulaFloat(tx, self._source(made), made)
        if type(found) is int and -(1 << 63) <= found < 1 << 63:
            return self._integer(made)
        if type(found) is tuple:
            tx.facts.computed(made)
            return TupleValue([self.value(applied("item", made, number(i))) for i in range(len(found))])
        tx.facts.fix(made)
        return boolean(found) if type(found) is bool else Const(found)

    def _integer(self, made: Formula) -> Value:
        """A symbol for a computed integer."""
        tx = self._tx
        kept = applied("small", made)
        tx.facts.computed(kept)
        source = self._source(kept)
        expr = tx.env.create_symbol(kept.value, source, low=None)
        atom = expr.as_symbol
        assert atom is not None
        self._of_symbols[atom] = kept
        self._computed[atom] = None
        tx.output.symbol(expr, source, kept.value)
        return SymValue(expr)

    def _source(self, made: Formula) -> ComputedSource:
        self.made.append(made)
        return ComputedSource(len(self.made) - 1, made)

    def _of_size(self, size: IntLike) -> Formula | None:
        if isinstance(size, int):
            return number(size)
        found = self._of_sizes.get(size)
        if found is None:
            made = self._sum(size)
            if made is None:
                return None
            found = self._of_sizes[size] = made
        return found

    def _sum(self, size: Expr) -> Formula | None:
        total: Formula | None = None
        for monomial, coefficient in size.terms:
            factors = [self._atom(atom) for atom in monomial]
            product: Formula | None = None if coefficient == 1 and factors else number(coefficient)
            for factor in factors:
                if factor is None:
                    return None
                product = factor if product is None else applied("*", product, factor)
            assert product is not None
            total = product if total is None else applied("+", total, product)
        return total

    def _atom(self, atom: Symbol | Apply) -> Formula | None:
        if isinstance(atom, Apply):
            operands = [self._of_size(arg) for arg in atom.args]
            known = [operand for operand in operands if operand is not None]
            return applied(_APPLIED[atom.function], *known) if len(known) == len(operands) else None
        found = self._of_symbols.get(atom)
        if found is None:
            info = self._tx.env.symbols[atom]
            if info.source is None or info.hint is None:
                return None
            found = self._of_symbols[atom] = Formula(info.hint, source=info.source)
        return found

    def compare(self, symbol: str, lhs: Value, rhs: Value) -> bool | None:
        """``lhs symbol rhs`` of two numbers; from now on the trace depends on the answer. None for anything else."""
        one, other = self.formula(lhs), self.formula(rhs)
        if one is None or other is None:
            return None
        return self._tx.facts.decide(one, symbol, other)

    def settle(self) -> ShapeEnv:
        """Make what was relied on about computed integers facts; the environment without them."""
        env = self._tx.env
        if not self._computed:
            return env
        plain = ShapeEnv()
        plain.symbols = {atom: info for atom, info in env.symbols.items() if atom not in self._computed}
        for guard in env.guards:
            if guard.relation.symbols & self._computed.keys():
                self._rely_on(guard.relation)
            else:
                plain.guards.append(guard)
        return plain

    def _rely_on(self, relation: Relation) -> None:
        lhs, rhs = self._of_size(relation.lhs), self._of_size(relation.rhs)
        if lhs is not None and rhs is not None:
            self._tx.facts.decide(lhs, relation.op, rhs)
