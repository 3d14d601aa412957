"""Where a line of a Triton kernel stands: once a row or once a block of points, and under which mask.

A scope owns the names of the values computed in it. A value that does not depend on the inner loops is computed in the
row scope, before the loop over the points; one that depends on these alone in a scope of one row, beside the points, or
each thread would load it for all its rows (five numbers of a point, in the gradient of a layer norm). Every value has
its scope's block shape, so that pointers and masks agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from functools import cache

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.codegen.triton.formulas import BOOLEAN, DOUBLE, INTEGER, POINTWISE, TYPES, constant
from inductor_codegen.codegen.triton.indices import index_text, size_text
from inductor_codegen.errors import unsupported
from inductor_codegen.ir.index import Index, LoopVar
from inductor_codegen.ir.scalar import (
    Apply,
    Constant,
    FloatValue,
    Guard,
    Guarded,
    IndexValue,
    Kept,
    Load,
    Scalar,
    Total,
    loaded_scalars,
    operands,
)

LINE = "l"
"""Behind a loop variable's name: the variable without a dimension of rows."""
_HALF = (torch.float16, torch.bfloat16)
_EXACT_IN_HALF = ("convert_dtype", "clone", "where")


_CONTRACTED = (torch.float32, torch.float64)
"""Dtypes in which a product and a difference become one instruction, unless the difference is said to be rounded alone.
Of ``x * y - amax(x * y)`` that would leave what the product was rounded by, and an exponential makes anything of it. A
sum with a number that is negated, ``amax(x * y) + -(x * y)``, is such a difference too."""


def _is_difference_of_product(node: Apply) -> bool:
    """Whether a node subtracts, or adds the negative of something, and a product is among its operands."""
    products = [_is_product(operand) for operand in node.args]
    return any(products) and (node.op == "sub" or (node.op == "add" and any(map(_is_negated, node.args))))


def _is_product(scalar: Scalar) -> bool:
    while isinstance(scalar, Apply) and scalar.op == "neg":
        (scalar,) = scalar.args
    return isinstance(scalar, Apply) and scalar.op == "mul"


def _is_negated(scalar: Scalar) -> bool:
    """Whether a number is the negative of another, as far as the node and the factors of a product say."""
    match scalar:
        case Apply("neg"):
            return True
        case Apply("mul", args):
            return any(map(_is_negated, args))
        case Constant(value):
            return value < 0
    return False


@dataclass
class Names:
    """Counts names for one kernel, so that none is used twice."""

    used: int = 0

    def fresh(self, prefix: str) -> str:
        """A new name."""
        self.used += 1
        return f"{prefix}{self.used}"


@dataclass
class Scope:
    """One block shape and mask. ``outer`` is the row scope, whose values may be used here; None for the row itself.
    ``beside`` is the scope of one row of points, for values that are the same in each."""

    names: Names
    mask: str
    zero: str
    variables: Mapping[LoopVar, str]
    kept: Mapping[int, Scalar]
    outer: Scope | None = None
    guarded: bool = False
    lines: list[str] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)
    subscopes: dict[tuple[tuple[Guard, ...], bool], Scope] = field(default_factory=dict)
    beside: Scope | None = None
    answers: dict[int, bool | None] = field(default_factory=dict)
    """What ``_is_of_points`` has answered."""

    def value(self, scalar: Scalar) -> str:
        """The name of ``scalar``'s value, computed now if it is not yet."""
        if isinstance(scalar, Total):
            return f"total{scalar.accumulator}"
        if isinstance(scalar, Kept):
            return self.value(self.kept[scalar.slot])
        if self.outer is not None and not self.guarded and not self._varies(scalar):
            return self.outer.value(scalar)
        if self.beside is not None and self._is_of_points(scalar):
            self.beside.lines = self.lines
            return self.beside.value(scalar)
        found = self.values.get(id(scalar))
        if found is None:
            text = self._text(scalar)
            found = self.names.fresh("t")
            self.lines.append(f"{found} = {text}")
            self.values[id(scalar)] = found
        return found

    def address(self, index: Index) -> str:
        """``index`` as a block of the scope's shape."""
        text = index_text(index, self.variables, lambda scalar: f"{self.value(scalar)}.to(tl.int64)")
        return f"{text} + {self.zero}"

    def is_of_row(self, scalar: Scalar) -> bool:
        """Whether a value is the same at all points of a row."""
        return self.outer is not None and not self._varies(scalar)

    def _varies(self, scalar: Scalar) -> bool:
        assert self.outer is not None
        if any(variable not in self.outer.variables for variable in _variables(scalar)):
            return True
        if isinstance(scalar, Kept):
            return self._varies(self.kept[scalar.slot])
        return any(self._varies(operand) for operand in operands(scalar))

    def _is_of_points(self, scalar: Scalar) -> bool | None:
        """Whether a value depends on the inner loops and on nothing of the rows; None if on neither."""
        assert self.beside is not None
        key = id(scalar)
        if key not in self.answers:
            found: list[bool | None] = [variable in self.beside.variables for variable in _variables(scalar)]
            found += [self._is_of_points(operand) for operand in operands(scalar)]
            if isinstance(scalar, Kept):
                found.append(self._is_of_points(self.kept[scalar.slot]))
            known = [answer for answer in found if answer is not None]
            self.answers[key] = False if isinstance(scalar, Total) else all(known) if known else None
        return self.answers[key]

    def _text(self, scalar: Scalar) -> str:
        match scalar:
            case Load(buffer, index, dtype):
                loaded = f"tl.load({buffer} + ({self.address(index)}), {self.mask}, other=0)"
                return f"({loaded} != 0)" if dtype == torch.bool else loaded
            case Constant(value, dtype):
                return constant(value, dtype)
            case IndexValue(index, dtype):
                return f"({self.address(index)}).to({TYPES[dtype]})"
            case FloatValue(name, dtype):
                return f"tl.full([1, 1], {name}, {TYPES[dtype]})"
            case Guarded(guards, body, other, _):
                return self._guarded(guards, body, other)
            case Apply():
                return self._apply(scalar)
        raise AssertionError(scalar)

    def _guarded(self, guards: tuple[Guard, ...], body: Scalar, other: Scalar) -> str:
        inside = self.subscopes.get((guards, True))
        if inside is None:
            condition = self.names.fresh("g")
            self.lines.append(
                f"{condition} = {self.mask} & {' & '.join(self._guard(guard) for guard in guards)}"
            )
            inside = self._under(condition, (guards, True))
        if _is_zero_beside(body, other):
            return inside.value(body)
        outside = self
        if _loads(other):
            found = self.subscopes.get((guards, False))
            if found is None:
                condition = self.names.fresh("g")
                self.lines.append(f"{condition} = {self.mask} & ~{inside.mask}")
                found = self._under(condition, (guards, False))
            outside = found
        return f"tl.where({inside.mask}, {inside.value(body)}, {outside.value(other)})"

    def _under(self, condition: str, key: tuple[tuple[Guard, ...], bool]) -> Scope:
        """The scope of what is computed only where ``condition`` holds."""
        made = Scope(
            self.names,
            condition,
            self.zero,
            self.variables,
            self.kept,
            self.outer,
            guarded=True,
            lines=self.lines,
        )
        self.subscopes[key] = made
        return made

    def _guard(self, guard: Guard) -> str:
        index = self.address(guard.index)
        tests = []
        if guard.low is not None:
            tests.append(f"({index} >= {size_text(guard.low)})")
        if guard.high is not None:
            tests.append(f"({index} < {size_text(guard.high)})")
        return " & ".join(tests) or f"({index} == {index})"

    def _apply(self, node: Apply) -> str:
        arguments = [self.value(argument) for argument in node.args]
        computing = node.args[-1].dtype if node.args else node.dtype
        if node.op == "convert_dtype":
            return _converted(arguments[0], computing, node.dtype)
        table = _table(computing)
        if node.op in ("wrap_index", "check_index"):
            return self._checked_index(node.op == "wrap_index", *arguments)
        if node.op not in table:
            raise unsupported("IND121", f"the primitive {node.op!r} has no Triton text", None)
        if computing in _HALF and node.op not in _EXACT_IN_HALF:
            arguments = [f"{argument}.to(tl.float32)" for argument in arguments]
            result = table[node.op].format(*arguments, type="tl.float32")
            return f"({result}).to({TYPES[node.dtype]})"
        if computing in _CONTRACTED and _is_difference_of_product(node):
            return f"libdevice.{node.op}_rn({', '.join(arguments)})"
        return table[node.op].format(*arguments, type=TYPES[node.dtype])

    def _checked_index(self, wraps: bool, index: str, extent: str) -> str:
        """An index from data, from the end if it ``wraps`` and is negative. Out of range is a device-side assertion and
        reads element 0."""
        moved, inside = self.names.fresh("t"), self.names.fresh("g")
        self.lines += [
            f"{moved} = tl.where({index} < 0, {index} + {extent}, {index})"
            if wraps
            else f"{moved} = {index}",
            f"{inside} = ({moved} >= 0) & ({moved} < {extent})",
            f'tl.device_assert({inside} | ~{self.mask}, "index out of range in self")',
        ]
        return f"tl.where({inside}, {moved}, 0)"


@dataclass
class PointLine(Scope):
    """One row of points, which is loaded by ``_load_line`` where it is loaded at their own places."""

    def _text(self, scalar: Scalar) -> str:
        if not isinstance(scalar, Load) or any(loaded_scalars(scalar.index)):
            return super()._text(scalar)
        names = {variable: name + LINE for variable, name in self.variables.items()}
        place = index_text(scalar.index, names, self.value)
        loaded = f"_load_line({scalar.buffer}, {place} + lzero, lmask, XBLOCK)"
        return f"({loaded} != 0)" if scalar.dtype == torch.bool else loaded


@cache
def _table(computing: torch.dtype) -> dict[str, str]:
    """The texts of operations that compute in a dtype."""
    if computing.is_floating_point:
        return {**POINTWISE, **DOUBLE} if computing == torch.float64 else POINTWISE
    return {**POINTWISE, **INTEGER, **(BOOLEAN if computing == torch.bool else {})}


def _is_zero_beside(body: Scalar, other: Scalar) -> bool:
    """Whether a load, which gives zero where its mask does not hold, is all of what is chosen by that."""
    return (
        isinstance(body, Load) and isinstance(other, Constant) and repr(other.value) in ("0", "0.0", "False")
    )


def _loads(scalar: Scalar) -> bool:
    return isinstance(scalar, (Load, Kept)) or any(map(_loads, operands(scalar)))


def _converted(value: str, before: torch.dtype, after: torch.dtype) -> str:
    if after == torch.bool:
        return f"({value} != 0)"
    if before.is_floating_point and after in (torch.uint8, torch.int8, torch.int16):
        return f"{value}.to(tl.int32).to({TYPES[after]})"
    return f"{value}.to({TYPES[after]})"


def _variables(scalar: Scalar) -> Iterator[LoopVar]:
    match scalar:
        case Load(index=index) | IndexValue(index=index):
            yield from index.variables()
        case Guarded(guards=guards):
            for guard in guards:
                yield from guard.index.variables()
