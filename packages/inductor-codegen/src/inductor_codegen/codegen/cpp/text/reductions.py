"""Reductions in C++: the accumulator of each kind, its start, its step, and how partial results are
joined.
"""

from __future__ import annotations

import torch

from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, converted
from inductor_codegen.ir.kernel import Accumulate

_OPENMP = {
    "sum": "+", "prod": "*", "amax": "max", "amin": "min", "argmax": "max", "argmin": "min", "any": "|", "all": "&",
}  # fmt: skip


class Accumulator:
    """C++ text around one ``Accumulate``. ``name`` is the variable, or an array of them with one per lane.

    Long float sums are made ``in_parts``: the terms of a part are added in the computed type, vectorised, and the
    totals of the parts in double, so that rounding does not grow with the number of parts. A part is short enough that
    few additions follow each other in one lane (``codegen.cpp.streams``). Other kinds of reduction need no parts, their
    result does not depend on the order.

    A search begins with the place of the first point, which it keeps where no number is better than the start.
    ``near``: 32 bits hold every place, so that vectors have as many of them as of numbers.
    """

    def __init__(self, item: Accumulate, *, in_parts: bool, near: bool = False) -> None:
        self.item = item
        self.dtype = item.value.dtype if item.position is not None or item.kind != "sum" else item.dtype
        self.searches = item.position is not None
        self.logical = item.kind in ("any", "all") or self.dtype == torch.bool
        self.type = "int32_t" if self.logical else COMPUTED[self.dtype]
        self.rounds = item.kind == "sum" and self.dtype.is_floating_point
        self.splits = in_parts and self.rounds
        self.total_type = "double" if self.splits else self.type
        self.tracks_nan = item.kind in ("amax", "amin") and self.dtype.is_floating_point
        self.finds_nan = self.searches and self.dtype.is_floating_point
        self.place = "int32_t" if near else "int64_t"
        self.name = f"a{item.accumulator}"

    @property
    def start(self) -> str:
        """The neutral element."""
        kind = self.item.kind
        if kind in ("sum", "any"):
            return "0"
        if kind in ("prod", "all"):
            return "1"
        return self._extreme(lowest=kind in ("amax", "argmax"))

    def _extreme(self, lowest: bool) -> str:
        if self.logical:
            return "0" if lowest else "1"
        if self.dtype.is_floating_point:
            return "-__builtin_inff()" if lowest else "__builtin_inff()"
        info = torch.iinfo(self.dtype)
        number = info.min if lowest else info.max
        return "(-9223372036854775807L - 1)" if number == -(2**63) else f"{number}L"

    def declarations(self, lanes: str = "") -> list[str]:
        """Definitions of the variables; ``lanes`` is ``[64]`` for arrays, which are then not set."""
        start = "" if lanes else f" = {self.start}"
        zero = "" if lanes else " = 0"
        lines = [f"{self.total_type} {self.name}{lanes}{start};"]
        if self.tracks_nan:
            lines.append(f"int32_t {self.name}_nan{lanes}{zero};")
        if self.searches:
            lines.append(f"{self.place} {self.name}_at{lanes}{zero};")
        return lines

    def resets(self, lane: str) -> list[str]:
        """Statements that set one lane to the start."""
        lines = [f"{self.name}{lane} = {self.start};"]
        if self.tracks_nan:
            lines.append(f"{self.name}_nan{lane} = 0;")
        if self.searches:
            lines.append(f"{self.name}_at{lane} = 0;")
        return lines

    @property
    def starts_with_zeros(self) -> bool:
        """Whether zero bytes are the start."""
        return self.start == "0" and not self.tracks_nan and not self.searches

    def cleared(self, name: str, count: str) -> list[str]:
        """A statement that sets ``count`` lanes of ``name`` to a start of zeros; compiles faster than a loop."""
        return [f"__builtin_memset({name}, 0, sizeof(*{name}) * {count});"] if self.starts_with_zeros else []

    def clauses(self, name: str) -> list[str]:
        """OpenMP reduction clauses for accumulating into the variable ``name``."""
        operator = _OPENMP[self.item.kind]
        if self.logical:
            operator = {"sum": "|", "prod": "&", "max": "|", "min": "&"}.get(operator, operator)
        found = [f"reduction({operator}:{name})"]
        if self.tracks_nan or self.finds_nan:
            found.append(f"reduction(|:{name}_nan)")
        return found

    @property
    def partial(self) -> str:
        """The variable of a part of a long sum or of a search by the block, else the total's."""
        return f"p{self.item.accumulator}" if self.splits or self.searches else self.name

    def step(self, value: str, position: str, name: str, lane: str = "") -> list[str]:
        """Statements that take one more value into the variable ``name`` (at ``lane``)."""
        total = f"{name}{lane}"
        if self.searches:
            return self._search(value, position, lane)
        if self.logical:
            operator = "|=" if self.item.kind in ("any", "amax", "sum") else "&="
            return [f"{total} {operator} (int32_t){value};"]
        match self.item.kind:
            case "sum":
                return [f"{total} += {self.term(value)};"]
            case "prod":
                return [f"{total} *= {value};"]
        lines = [f"{total} = {value} {self._compare} {total} ? {value} : {total};"]
        if self.tracks_nan:
            lines.append(f"{name}_nan{lane} |= {value} != {value};")
        return lines

    def term(self, value: str) -> str:
        """What a sum adds for a value."""
        return converted(value, self.item.value.dtype, self.dtype)

    def better(self, value: str, lane: str = "") -> str:
        """Whether a searched value is better than all before it: larger (or smaller), or the first NaN."""
        name = f"{self.name}{lane}"
        better = f"({value} {self._compare} {name})"
        return f"({better} | ({value} != {value})) & ({name} == {name})" if self.finds_nan else better

    @property
    def _compare(self) -> str:
        return ">" if self.item.kind in ("amax", "argmax") else "<"

    def _search(self, value: str, position: str, lane: str) -> list[str]:
        name, at, better = f"{self.name}{lane}", f"{self.name}_at{lane}", f"better{self.item.accumulator}"
        return [
            f"const bool {better} = {self.better(value, lane)};",
            f"{name} = {better} ? {value} : {name};",
            f"{at} = {better} ? ({self.place})({position}) : {at};",
        ]

    def block_declarations(self, points: int) -> list[str]:
        """Definitions for a search in a block of points: its best number, and its numbers."""
        nan = [f"int32_t {self.partial}_nan = 0;"] if self.finds_nan else []
        return [
            f"{self.type} {self.partial} = {self.start};",
            *nan,
            f"{self.type} {self.partial}_of[{points}];",
        ]

    def block_step(self, value: str, at: str) -> list[str]:
        """Statements that take a value into the block."""
        best = self.partial
        lines = [f"{best}_of[{at}] = {value};"]
        if self.logical:
            return [*lines, f"{best} {'|=' if self.item.kind == 'argmax' else '&='} (int32_t){value};"]
        lines.append(f"{best} = {value} {self._compare} {best} ? {value} : {best};")
        return [*lines, f"{best}_nan |= {value} != {value};"] if self.finds_nan else lines

    def block_result(self) -> list[str]:
        """Statements after the points of a block: a NaN is better than every number."""
        return [f"if ({self.partial}_nan) {self.partial} = {self._nan};"] if self.finds_nan else []

    def is_at(self, at: str) -> str:
        """Whether the best number of a block is there."""
        here = f"{self.partial}_of[{at}]"
        found = f"({here} == {self.partial})"
        return f"({found} | ({here} != {here}))" if self.finds_nan else found

    @property
    def _nan(self) -> str:
        return '__builtin_nan("")' if self.dtype == torch.float64 else '__builtin_nanf("")'

    def join(self, source: str, source_suffix: str, lane: str = "") -> list[str]:
        """Statements that take a partial result into the total."""
        total, partial = f"{self.name}{lane}", f"{source}{source_suffix}"
        nan = f"{self.name}_nan{lane} |= {source}_nan{source_suffix};"
        if self.logical:
            operator = "|=" if self.item.kind in ("any", "amax", "sum") else "&="
            return [f"{total} {operator} {partial};"]
        match self.item.kind:
            case "sum":
                return [f"{total} += {partial};"]
            case "prod":
                return [f"{total} *= {partial};"]
        return [
            f"{total} = {partial} {self._compare} {total} ? {partial} : {total};",
            *([nan] if self.tracks_nan else []),
        ]

    def result(self, lane: str = "") -> str:
        """The total as a computed value of the reduction's dtype."""
        if self.searches:
            return f"(int64_t){self.name}_at{lane}"
        if self.tracks_nan:
            return f"({self.name}_nan{lane} ? {self._nan} : {self.name}{lane})"
        if self.logical:
            return f"({COMPUTED[self.item.dtype]})({self.name}{lane} != 0)"
        return f"{self.name}{lane}" if self.total_type == self.type else f"({self.type}){self.name}{lane}"
