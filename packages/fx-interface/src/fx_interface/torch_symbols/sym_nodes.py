"""Symbolic sizes as torch sees them: nodes behind ``torch.SymInt`` and ``torch.SymBool`` over the stack's own algebra.

torch's C++ code computes with sizes through these objects while a function is traced. Arithmetic builds ``Expr``s; a
question with a yes-or-no answer stays symbolic until C++ must know it, and is then decided by the ``ShapeEnv``, which
records what was relied on.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

from fx_interface.symbols import (
    Expr,
    IntLike,
    Relation,
    RelationOp,
    ShapeEnv,
    floordiv,
    maximum,
    minimum,
    mod,
)
from fx_interface.symbols.conditions import AllOf, AnyOf, Condition, Not, decide, expect, hinted, known
from fx_interface.tensor_spec import TensorSpec
from fx_interface.torch_symbols.sym_floats import FloatExpr, FloatNode


class SizeTable:
    """One trace's symbolic sizes: the environment, and every node and answer made so far.

    C++ asks the same few questions of every tensor that it makes, so answers are looked up by the operands.
    """

    __slots__ = ("answers", "computed", "env", "extents", "numbers")

    def __init__(self, env: ShapeEnv) -> None:
        self.env = env
        self.computed: dict[tuple[str, Any, Any], SymNode] = {}
        self.answers: dict[Condition, bool] = {}
        self.numbers: dict[Expr, Any] = {}
        self.extents: dict[tuple[tuple[IntLike, ...], tuple[IntLike, ...]], IntLike] = {}

    def node(self, value: IntLike | Condition) -> SymNode:
        """A node of this table."""
        return SymNode(value, self)

    def to_torch(self, value: IntLike) -> Any:
        """An ``int`` as it is, an ``Expr`` as a ``torch.SymInt``."""
        if type(value) is int:
            return value
        assert isinstance(value, Expr)
        found = self.numbers.get(value)
        if found is None:
            found = torch.SymInt(SymNode(value, self))  # type: ignore[no-untyped-call]
            self.numbers[value] = found
        return found

    def wrapper(
        self, cls: type[torch.Tensor], spec: TensorSpec, requires_grad: bool = False, offset: IntLike = 0
    ) -> Any:
        """A tensor of the class ``cls`` that has the sizes and strides of ``spec``, and no memory.

        It says that it begins at the element ``offset`` of its memory.

        Torch would ask for each product and sum to know how much memory that is; told so, it is done in a third of
        the time.
        """
        sizes: Any = spec.sizes
        strides: Any = spec.strides
        memory = None  # quicker left to torch
        if not spec.is_static or isinstance(offset, Expr):
            sizes = [self.to_torch(n) for n in sizes]
            strides = [self.to_torch(n) for n in strides]
            memory = self.to_torch((self.memory(spec.sizes, spec.strides) + offset) * spec.dtype.itemsize)
        return _make_wrapper(
            cls,
            sizes,
            strides=strides,
            dtype=spec.dtype,
            device=spec.device,
            requires_grad=requires_grad,
            storage_size=memory,
            storage_offset=None if isinstance(offset, int) and not offset else self.to_torch(offset),
        )

    def memory(self, sizes: tuple[IntLike, ...], strides: tuple[IntLike, ...]) -> IntLike:
        """How many elements lie between the first and the last of a tensor, both included; 0 if surely empty."""
        found = self.extents.get((sizes, strides))
        if found is None:
            found = 0 if 0 in sizes else 1
            for size, stride in zip(sizes, strides, strict=True) if found else ():
                found = found + (size - 1) * stride
            self.extents[sizes, strides] = found
        return found

    def evaluate_sym_node(
        self, node: SymNode, size_oblivious: bool = False, fallback_value: bool | None = None
    ) -> Any:
        """The value behind a node, as torch's Python code asks for it: ``fallback_value`` where only data can tell."""
        if not node.is_bool():
            return self.env.specialize(node.value)
        return self.decide(node.value) if fallback_value is None else node.decided_or(fallback_value)

    def _maybe_evaluate_static(self, condition: Condition, **options: Any) -> bool | None:
        """The answer where ranges settle it; torch's ``statically_known_true`` asks by this name."""
        return known(condition, self.env)

    def decide(self, condition: Condition) -> bool:
        """The answer for this compilation; what it rests on is recorded in the environment."""
        found = self.answers.get(condition)
        if found is None:
            found = self.answers[condition] = decide(condition, self.env)
        return found


_INTEGERS = (Expr, int)
_make_wrapper = torch.Tensor._make_wrapper_subclass


class SymNode:
    """What the C++ side of ``SymInt`` and ``SymBool`` calls. ``value`` is an ``IntLike`` or a ``Condition``."""

    __slots__ = ("table", "value")
    _hint = None  # torch would take it for the answer

    def __init__(self, value: Any, table: SizeTable) -> None:
        self.value = value
        self.table = table

    @property
    def shape_env(self) -> SizeTable:
        """Whom torch's Python code asks about nodes."""
        return self.table

    # What kind of number it is.

    def is_int(self) -> bool:
        """Whether this is an integer."""
        return type(self.value) in _INTEGERS

    def is_bool(self) -> bool:
        """Whether this is a truth value."""
        return type(self.value) not in _INTEGERS

    def is_float(self) -> bool:
        """Never: sizes are integers."""
        return False

    def is_nested_int(self) -> bool:
        """Never: nested tensors are not traced."""
        return False

    def is_symbolic(self) -> bool:
        """Whether C++ must go through this node."""
        return True

    def is_constant(self) -> bool:
        """Whether the value is known without asking the environment."""
        return isinstance(self.value, int)

    def maybe_as_int(self) -> int | None:
        """The integer, if it is not symbolic."""
        return self.value if type(self.value) is int else None

    constant_int = maybe_as_int

    def constant_bool(self) -> bool | None:
        """The truth value, if it is not symbolic."""
        return self.value if type(self.value) is bool else None

    constant_float = nested_int = nested_int_coeff = maybe_as_float = lambda self: None

    def has_hint(self) -> bool:
        """Whether the value seen while compiling is known."""
        env = self.table.env
        return not isinstance(self.value, Expr) or all(
            env.symbols[atom].hint is not None for atom in self.value.symbols
        )

    @property
    def expr(self) -> Any:
        """The expression, by the name under which other code looks for it."""
        return self.value

    @property
    def hint(self) -> int:
        """The value seen while compiling."""
        return self.table.env.hint(self.value)

    def wrap_int(self, number: int) -> SymNode:
        """A constant as a node."""
        return SymNode(number, self.table)

    wrap_bool = wrap_int

    def clone(self) -> SymNode:
        """The node itself: nodes are never modified."""
        return self

    # Arithmetic.

    def _computed(self, name: str, function: Callable[[Any, Any], Any], other: SymNode) -> SymNode:
        key = (name, self.value, other.value)
        found = self.table.computed.get(key)
        if found is None:
            found = self.table.computed[key] = self._of(function(self.value, other.value))
        return found

    def _of(self, value: Any) -> SymNode:
        return SymNode(value, self.table)

    def add(self, other: SymNode) -> SymNode:
        """``self + other``."""
        return self._computed("add", operator.add, other)

    def sub(self, other: SymNode) -> SymNode:
        """``self - other``."""
        return self._computed("sub", operator.sub, other)

    def mul(self, other: SymNode) -> SymNode:
        """``self * other``."""
        return self._computed("mul", operator.mul, other)

    def int_floordiv(self, other: SymNode) -> SymNode:
        """``self // other``."""
        return self._computed("floordiv", floordiv, other)

    floordiv = int_floordiv

    def mod(self, other: SymNode) -> SymNode:
        """``self % other``, as Python has it."""
        return self._computed("mod", mod, other)

    def neg(self) -> SymNode:
        """``-self``."""
        return self._of(0 - self.value)

    def pos(self) -> SymNode:
        """``+self``."""
        return self

    def sym_min(self, other: SymNode) -> SymNode:
        """The smaller of two."""
        return self._computed("min", minimum, other)

    def sym_max(self, other: SymNode) -> SymNode:
        """The larger of two."""
        return self._computed("max", maximum, other)

    def sym_sum(self, terms: Sequence[SymNode]) -> SymNode:
        """The sum of all ``terms``."""
        total: IntLike = 0
        for term in terms:
            total = total + term.value
        return self._of(total)

    def sym_float(self) -> FloatNode:
        """The integer as a floating-point number."""
        return FloatNode(self.value, self.table)

    def int_truediv(self, other: SymNode) -> FloatNode:
        """``self / other``."""
        return FloatNode(FloatExpr("/", (self.value, other.value)), self.table)

    truediv = float_truediv = int_truediv

    def pow(self, other: SymNode) -> FloatNode:
        """``self ** other`` as a floating-point number."""
        return FloatNode(FloatExpr("**", (self.value, other.value)), self.table)

    float_pow = pow

    # Questions.

    def _relation(self, op: RelationOp, other: SymNode) -> SymNode:
        key = (op, self.value, other.value)
        found = self.table.computed.get(key)
        if found is None:
            relation = Relation(op, self.value, other.value)
            answer = self.table.env.known(relation)
            found = self.table.computed[key] = self._of(relation if answer is None else answer)
        return found

    def eq(self, other: SymNode) -> SymNode:
        """``self == other``."""
        return self._relation("==", other)

    def ne(self, other: SymNode) -> SymNode:
        """``self != other``."""
        return self._relation("!=", other)

    def lt(self, other: SymNode) -> SymNode:
        """``self < other``."""
        return self._relation("<", other)

    def le(self, other: SymNode) -> SymNode:
        """``self <= other``."""
        return self._relation("<=", other)

    def gt(self, other: SymNode) -> SymNode:
        """``self > other``."""
        return other._relation("<", self)

    def ge(self, other: SymNode) -> SymNode:
        """``self >= other``."""
        return other._relation("<=", self)

    def sym_and(self, other: SymNode) -> SymNode:
        """Both hold."""
        return self._of(AllOf((self.value, other.value)))

    and_ = sym_and

    def sym_or(self, other: SymNode) -> SymNode:
        """At least one holds."""
        return self._of(AnyOf((self.value, other.value)))

    or_ = sym_or

    def sym_not(self) -> SymNode:
        """It does not hold."""
        return self._of(Not(self.value))

    # Decisions.

    def guard_bool(self, file: str, line: int) -> bool:
        """The truth value for this compilation, recorded as relied on."""
        return self.table.decide(self.value)

    bool_ = lambda self: self.table.decide(self.value)  # noqa: E731

    def guard_int(self, file: str, line: int) -> int:
        """The integer for this compilation: the size is fixed to it."""
        return self.table.env.specialize(self.value)

    def int_(self) -> int:
        """As ``guard_int``."""
        return self.table.env.specialize(self.value)

    def guard_size_oblivious(self, file: str, line: int) -> bool:
        """As ``guard_bool``: symbols of sizes are at least 2 already."""
        return self.table.decide(self.value)

    def guard_or_false(self, file: str, line: int) -> bool:
        """Whether it surely holds; if neither is certain, decided like any other question when hints exist."""
        return self.decided_or(False)

    def guard_or_true(self, file: str, line: int) -> bool:
        """Like ``guard_or_false`` with True where nothing is known."""
        return self.decided_or(True)

    def decided_or(self, default: bool) -> bool:
        """The answer, decided like any other question where hints exist; ``default`` where only data can tell."""
        answer = known(self.value, self.table.env)
        if answer is not None:
            return answer
        return self.table.decide(self.value) if hinted(self.value, self.table.env) else default

    def statically_known_true(self, file: str, line: int) -> bool:
        """Whether ranges alone settle that it holds."""
        return known(self.value, self.table.env) is True

    def expect_true(self, file: str, line: int) -> bool:
        """Require it to hold, at run time if only data can tell."""
        return expect(self.value, self.table.env)

    expect_size = guard_bool

    def __str__(self) -> str:
        return str(self.value)

    __repr__ = __str__

    def _graph_repr(self) -> str:
        return str(self.value)


SymNode.str = SymNode.__str__  # type: ignore[attr-defined]
"""Torch's C++ code composes messages with it, some of them before anything is wrong."""


def from_torch(value: Any) -> IntLike:
    """The ``int`` or ``Expr`` behind an ``int`` or ``torch.SymInt``."""
    if isinstance(value, torch.SymInt):
        found: IntLike = value.node.value
        return found
    return int(value)
