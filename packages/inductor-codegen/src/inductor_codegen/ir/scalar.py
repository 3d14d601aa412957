"""Scalar expressions: what a kernel computes at one point of its loops, as a pure graph of interned nodes.

    scalar ::= Load(buffer, index) | Constant | IndexValue(index) | FloatValue(name)
             | Apply(op, scalars) | Guarded(guards, scalar, other) | Total(accumulator) | Kept(slot)

Within one ``ScalarBuilder`` equal expressions are one object, so identity is equality.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike
from inductor_codegen.ir.index import Index, Loaded
from inductor_codegen.ir.numbers import converted_number


@dataclass(frozen=True, slots=True, eq=False)
class Load:
    """The element of ``buffer`` at ``index`` (in elements from its first)."""

    buffer: str
    index: Index
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.buffer}[{self.index}]"


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A number of the dtype; one of float32 is yet to be rounded."""

    value: bool | int | float
    dtype: torch.dtype

    def __str__(self) -> str:
        return repr(self.value)


@dataclass(frozen=True, slots=True, eq=False)
class IndexValue:
    """An index expression as a value of an integer dtype."""

    index: Index
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"<{self.index}>"


@dataclass(frozen=True, slots=True, eq=False)
class FloatValue:
    """A run-time Python float, by the name of its kernel parameter, rounded to ``dtype``."""

    name: str
    dtype: torch.dtype

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True, eq=False)
class Apply:
    """A pointwise operation; ``op`` is a primitive's name. Arguments have the dtype that the operation
    computes in.
    """

    op: str
    args: tuple[Scalar, ...]
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"{self.op}({', '.join(map(str, self.args))})"


@dataclass(frozen=True, slots=True)
class Guard:
    """``low <= index < high``; a bound that is None is not checked."""

    index: Index
    low: IntLike | None
    high: IntLike | None

    def __str__(self) -> str:
        low = "" if self.low is None else f"{self.low} <= "
        high = "" if self.high is None else f" < {self.high}"
        return f"{low}{self.index}{high}"


@dataclass(frozen=True, slots=True, eq=False)
class Guarded:
    """``body`` where all guards hold, else ``other``; memory that ``body`` loads is not touched elsewhere."""

    guards: tuple[Guard, ...]
    body: Scalar
    other: Scalar
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"if({' and '.join(map(str, self.guards))}; {self.body}; {self.other})"


@dataclass(frozen=True, slots=True, eq=False)
class Total:
    """The result of the kernel's reduction number ``accumulator``, once its pass is over."""

    accumulator: int
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"total{self.accumulator}"


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """A value that an earlier pass kept for the same point of the inner loops."""

    slot: int
    dtype: torch.dtype

    def __str__(self) -> str:
        return f"kept{self.slot}"


Scalar: TypeAlias = Load | Constant | IndexValue | FloatValue | Apply | Guarded | Total | Kept


def operands(node: Scalar) -> tuple[Scalar, ...]:
    """The scalars that ``node`` is computed from directly, those inside indices first."""
    match node:
        case Load(index=index) | IndexValue(index=index):
            return tuple(loaded_scalars(index))
        case Apply(args=args):
            return args
        case Guarded(guards, body, other):
            inside = tuple(scalar for guard in guards for scalar in loaded_scalars(guard.index))
            return (*inside, body, other)
    return ()


def loaded_scalars(index: Index) -> Iterator[Scalar]:
    """The scalars that occur as atoms of ``index``."""
    if index.terms:
        for atom in index.atoms():
            if isinstance(atom, Loaded):
                yield atom.scalar


class ScalarBuilder:
    """Makes scalars, each different one once."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[object, Scalar] = {}

    def load(self, buffer: str, index: Index, dtype: torch.dtype) -> Scalar:
        key = (buffer, index, dtype)
        return self._made.get(key) or self._made.setdefault(key, Load(buffer, index, dtype))

    def constant(self, value: bool | int | float, dtype: torch.dtype) -> Scalar:
        """The number that ``value`` is in ``dtype``; compilers round to float32, from a text that is shorter."""
        value = float(value) if dtype is torch.float32 else converted_number(value, dtype)
        key = (repr(value), dtype)
        return self._made.get(key) or self._made.setdefault(key, Constant(value, dtype))

    def index_value(self, index: Index, dtype: torch.dtype) -> Scalar:
        if not index.terms and isinstance(index.const, int):
            return self.constant(index.const, dtype)
        key = (index, dtype)
        return self._made.get(key) or self._made.setdefault(key, IndexValue(index, dtype))

    def float_value(self, name: str, dtype: torch.dtype) -> Scalar:
        key = ("float", name, dtype)
        return self._made.get(key) or self._made.setdefault(key, FloatValue(name, dtype))

    def apply(self, op: str, args: tuple[Scalar, ...], dtype: torch.dtype) -> Scalar:
        key = (op, args, dtype)
        return self._made.get(key) or self._made.setdefault(key, Apply(op, args, dtype))

    def convert(self, value: Scalar, dtype: torch.dtype) -> Scalar:
        if value.dtype == dtype:
            return value
        if isinstance(value, Constant) and not dtype.is_complex:
            return self.constant(converted_number(value.value, value.dtype), dtype)
        return self.apply("convert_dtype", (value,), dtype)

    def guarded(self, guards: tuple[Guard, ...], body: Scalar, other: Scalar) -> Scalar:
        if not guards or body is other:
            return body
        key = (guards, body, other)
        return self._made.get(key) or self._made.setdefault(key, Guarded(guards, body, other, body.dtype))

    def total(self, accumulator: int, dtype: torch.dtype) -> Scalar:
        key = ("total", accumulator)
        return self._made.get(key) or self._made.setdefault(key, Total(accumulator, dtype))

    def kept(self, slot: int, dtype: torch.dtype) -> Scalar:
        key = ("kept", slot)
        return self._made.get(key) or self._made.setdefault(key, Kept(slot, dtype))
