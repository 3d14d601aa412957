"""The text of a kernel: canonical, so that equal texts are equal kernels."""

from __future__ import annotations

from collections.abc import Iterable

import torch

from inductor_codegen.ir.index import Atom, Index, Loaded, LoopVar, Quotient, Remainder
from inductor_codegen.ir.kernel import (
    Accumulate,
    BufferParameter,
    FloatParameter,
    Keep,
    Kernel,
    Parameter,
    SizeParameter,
    Statement,
    Store,
)
from inductor_codegen.ir.scalar import (
    Apply,
    Constant,
    FloatValue,
    Guarded,
    IndexValue,
    Kept,
    Load,
    Scalar,
    Total,
)
from inductor_codegen.ir.traverse import postorder, roots_of


def short_dtype(dtype: torch.dtype) -> str:
    """``float32`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def print_kernel(kernel: Kernel, name: str | None = None) -> str:
    """The kernel's text; ``name`` replaces its own."""
    return "\n".join(_Printer().kernel(kernel, kernel.name if name is None else name)) + "\n"


class _Printer:
    def __init__(self) -> None:
        self._names: dict[Scalar, str] = {}

    def kernel(self, kernel: Kernel, name: str) -> list[str]:
        lines = [f"kernel {name}({', '.join(map(_parameter, kernel.parameters))})"]
        lines.append(
            f"  outer {_loops(kernel.outer)}  inner {_loops(kernel.inner)}  vector {kernel.vector.value}"
            + "  windows" * kernel.windows
            + "  taps" * kernel.taps
        )
        for number, step in enumerate(kernel.passes):
            lines.append(f"  pass {number}")
            lines += self._statements(step.points, "    ")
            if step.row:
                lines.append("  row")
                lines += self._statements(step.row, "    ")
        return lines

    def _statements(self, statements: Iterable[Statement], indent: str) -> list[str]:
        listed = list(statements)
        lines: list[str] = []
        for node in postorder(root for statement in listed for root in roots_of(statement)):
            if node not in self._names:
                text = self._expression(node)
                if isinstance(node, Constant | Total | Kept | FloatValue):
                    self._names[node] = text
                    continue
                self._names[node] = f"%{len(self._names)}"
                lines.append(f"{indent}{self._names[node]}: {short_dtype(node.dtype)} = {text}")
        lines += [indent + self._statement(statement) for statement in listed]
        return lines

    def _statement(self, statement: Statement) -> str:
        value = self._names[statement.value]
        match statement:
            case Store(buffer, index):
                return f"{buffer}[{self._index(index)}] = {value}"
            case Accumulate(accumulator, kind, _, dtype, position):
                where = "" if position is None else f" at {self._index(position)}"
                return f"total{accumulator}: {short_dtype(dtype)} = {kind}({value}){where}"
            case Keep(slot):
                return f"kept{slot} = {value}"

    def _expression(self, node: Scalar) -> str:
        match node:
            case Load(buffer, index):
                return f"{buffer}[{self._index(index)}]"
            case Constant(value, dtype):
                return f"{value!r}:{short_dtype(dtype)}"
            case IndexValue(index):
                return f"index {self._index(index)}"
            case FloatValue(name, dtype):
                return f"{name}:{short_dtype(dtype)}"
            case Apply(op, args):
                return f"{op}({', '.join(self._names[arg] for arg in args)})"
            case Guarded(guards, body, other):
                conditions = " and ".join(
                    f"{'' if g.low is None else f'{g.low} <= '}{self._index(g.index)}"
                    f"{'' if g.high is None else f' < {g.high}'}"
                    for g in guards
                )
                return f"{self._names[body]} if {conditions} else {self._names[other]}"
            case Total(accumulator):
                return f"total{accumulator}"
            case Kept(slot):
                return f"kept{slot}"

    def _index(self, index: Index) -> str:
        parts = []
        for atom, coefficient in index.terms:
            text = self._atom(atom)
            parts.append(text if coefficient == 1 else f"({coefficient})*{text}")
        if not parts or not (isinstance(index.const, int) and index.const == 0):
            parts.append(str(index.const))
        return " + ".join(parts)

    def _atom(self, atom: Atom) -> str:
        match atom:
            case LoopVar(name):
                return name
            case Quotient(numerator, denominator):
                return f"({self._index(numerator)})//({denominator})"
            case Remainder(numerator, denominator):
                return f"({self._index(numerator)})%({denominator})"
            case Loaded(scalar):
                return f"[{self._names[scalar]}]"


def _parameter(parameter: Parameter) -> str:
    match parameter:
        case BufferParameter(name, dtype, access):
            return f"{name}: {access.value} {short_dtype(dtype)}"
        case SizeParameter(name, least):
            return f"{name}: size" if least is None else f"{name}: size >= {least}"
        case FloatParameter(name):
            return f"{name}: float"


def _loops(loops: tuple[LoopVar, ...]) -> str:
    return "(" + ", ".join(f"{loop.name} < {loop.extent}" for loop in loops) + ")"
