"""The text of an entry while it grows: its lines, and the tables of integers that they use."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from fx_interface.errors import UserLocation
from fx_interface.symbols import Expr, IntLike
from inductor_codegen.codegen.wrapper.arguments import quoted
from inductor_codegen.codegen.wrapper.integers import integer, integers, is_static
from inductor_codegen.codegen.wrapper.repetition import rolled
from inductor_codegen.ir.program import Buffer
from inductor_codegen.runtime.binding import scalar_type

_LONG = 64
"""Numbers of a table from which it is filled in by a loop: compiling takes as long for each one that is stored."""


class Text:
    """Lines of the entry's body, in order, and static tables, each once."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._steps: list[str] = []
        self._tables: dict[str, str] = {}
        self._local_tables: dict[str, str] = {}
        self._layouts: dict[Hashable, str] = {}

    def line(self, text: str) -> None:
        """One more statement."""
        self._lines.append(f"    {text}\n")

    def table(self, values: Sequence[IntLike]) -> str:
        """An array of integers: the name of a constant, or of a local variable when one is symbolic."""
        content = integers(values)
        if is_static(values):
            return self._tables.setdefault(content, f"t{len(self._tables)}")
        found = self._local_tables.get(content)
        if found is None:
            found = self._local_tables[content] = f"d{len(self._local_tables)}"
            if len(values) < _LONG:
                self.line(f"const int64_t {found}[] = {{{content}}};")
            else:
                self._filled_copy(found, values)
        return found

    def _filled_copy(self, name: str, values: Sequence[IntLike]) -> None:
        """``name`` as a copy of a constant table in which the symbolic numbers are set, each computed once."""
        constant = self.table([0 if isinstance(value, Expr) else value for value in values])
        symbolic = {value: integer(value) for value in values if isinstance(value, Expr)}
        which = {value: index for index, value in enumerate(symbolic)}
        places = [n for i, value in enumerate(values) if isinstance(value, Expr) for n in (i, which[value])]
        self.line(f"int64_t {name}[{len(values)}];")
        self.line(f"const int64_t {name}_numbers[] = {{{', '.join(symbolic.values())}}};")
        self.line(
            f"fx_fill({name}, {constant}, {len(values)}, {name}_numbers, {self.table(places)}, {len(places)});"
        )

    def layout(self, buffer: Buffer) -> str:
        """The table that describes a buffer: scalar type, rank, sizes, strides."""
        form = (buffer.dtype, buffer.sizes, buffer.strides)  # layers have the same few
        found = self._layouts.get(form)
        if found is None:
            values = (scalar_type(buffer.dtype), len(buffer.sizes), *buffer.sizes, *buffer.strides)
            found = self._layouts[form] = self.table(values)
        return found

    def where(self, where: UserLocation | None) -> str:
        """A string literal that names a line of the user's program, empty if there is none."""
        return quoted("" if where is None else str(where))

    def tables(self) -> str:
        """The constant tables."""
        return "".join(f"static const int64_t {n}[] = {{{c}}};\n" for c, n in self._tables.items())

    def end_step(self) -> None:
        """What was written since the last step is one: it names no local variable of another step's."""
        if self._lines:
            self._steps.append("".join(self._lines))
            self._lines.clear()

    def body(self) -> str:
        """All lines so far, with loops for steps that repeat."""
        self.end_step()
        return "".join(rolled(self._steps, self.table))
