"""The text of a kernel that adds by index."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.loops.threads import PARALLEL_FROM, Sharing, sharing_of, work_of
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, STORED, loaded, stored
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.ir.scatter import INDEX, SOURCE, TARGET, ScatterForm, ScatterKernel


def emit_scatter(kernel: ScatterKernel, head: str, parameters: Sequence[str]) -> str:
    """The C++ function of a kernel."""
    writer = _ScatterWriter(kernel)
    body = writer.write()
    lines = [*(f"// {comment}" for comment in kernel.comments), head]
    lines += [f"  {line}" for line in (*parameters, "int32_t bad = 0;", *writer.names.declarations(), *body)]
    return "\n".join([*lines, "  return bad;", "}"]) + "\n"


class _ScatterWriter:
    def __init__(self, kernel: ScatterKernel) -> None:
        self.kernel = kernel
        self.form: ScatterForm = kernel.form
        self.names = Names()

    def write(self) -> list[str]:
        """The body: loops of the source, and the choice of a row where it is known."""
        form, loops = self.form, self.kernel.outer
        rows, shared = self.names.size(form.rows), sharing_of(self.kernel) is Sharing.CALLER
        by_rows = shared and form.shared is None
        pieces = rows if form.shared is None else self.names.size(loops[form.shared].extent)
        lines = self._share(pieces) if shared else []
        line = ("first", "last") if by_rows else ("0", rows)
        vector = form.depth < len(loops)
        for place in range(len(loops) + 1):
            indent = "  " * place
            if place == form.depth:
                lines += [f"{indent}{line}" for line in self._row(rows, by_rows, bool(place))]
            if place == len(loops):
                lines.append(f"{indent}{self._addition()}")
                break
            loop = loops[place]
            if form.beside and place == len(loops) - 1:
                lines.append(f"{indent}{self._sum} sums[{rows}];")
                lines.append(f"{indent}{self._line(*line, 'sums[row]', self._loaded(self._target))}")
            if vector and place == len(loops) - 1:
                lines.append("#pragma omp simd")
            name, begin, end = loop.name, "0", self.names.size(loop.extent)
            if shared and place == form.shared:
                begin, end = "first", "last"
            lines.append(f"{indent}for (int64_t {name} = {begin}; {name} < {end}; ++{name}) {{")
        for place in reversed(range(len(loops))):
            lines.append("  " * place + "}")
            if form.beside and place == len(loops) - 1:
                kept = "sums[row]" if self._sum != "float" else stored("sums[row]", torch.float32, form.dtype)
                lines.append(f"{'  ' * place}{self._line(*line, self._target, kept)}")
        return lines

    @property
    def _sum(self) -> str:
        """The C++ type of a sum that is kept beside the target."""
        return COMPUTED[self.form.dtype] if self.form.dtype.is_floating_point else STORED[self.form.dtype]

    @property
    def _target(self) -> str:
        """The element of the target at a row."""
        return f"{TARGET}[{self._address(self.form.target, f'row * {self.names.size(self.form.step)}')}]"

    def _loaded(self, element: str) -> str:
        return loaded(element, self.form.dtype)

    @staticmethod
    def _line(begin: str, end: str, target: str, value: str) -> str:
        return f"for (int64_t row = {begin}; row < {end}; ++row) {target} = {value};"

    def _share(self, pieces: str) -> list[str]:
        work = work_of(self.kernel)
        worth = "1" if isinstance(work, int) else f"{self.names.size(work)} >= {PARALLEL_FROM}"
        return [
            f"if (!shares) return {worth};",
            f"const int64_t first = {pieces} * share / shares, last = {pieces} * (share + 1) / shares;",
        ]

    def _row(self, rows: str, shared: bool, inside: bool) -> list[str]:
        """The row of a point; nothing is added where it is skipped or another share's. What is out of range counts as
        row 0: the result of a call that fails is seen by nobody."""
        form = self.form
        check = "wrap_index" if form.wraps else "check_index"
        lines = [f"const int64_t named = {INDEX}[{self._address(form.index)}];"]
        lines.append(f"const int64_t row = {check}(named, {rows}, bad);")
        conditions = [] if form.skipped is None else [f"named == {form.skipped}"]
        if not isinstance(form.rows, int):  # there may be none
            conditions.append(f"!({rows})")
        if shared:
            conditions.append("row < first || row >= last")
        leave = "continue" if inside else "return bad"
        return [*lines, f"if ({' || '.join(conditions)}) {leave};"] if conditions else lines

    def _addition(self) -> str:
        form = self.form
        source = f"{SOURCE}[{self._address(form.source)}]"
        if not form.dtype.is_floating_point:
            kind, target = STORED[form.dtype], "sums[row]" if form.beside else self._target
            word = f"u{kind}"
            return f"{target} = ({kind})(({word}){target} + ({word}){source});"
        if form.beside:
            return f"sums[row] += {loaded(source, form.source_dtype)};"
        total = f"{self._loaded(self._target)} + {loaded(source, form.source_dtype)}"
        return f"{self._target} = {stored(total, form.dtype, form.dtype)};"

    def _address(self, strides: Sequence[IntLike], first: str = "") -> str:
        terms = [first] if first else []
        for loop, stride in zip(self.kernel.outer, strides, strict=True):
            if isinstance(stride, int) and stride == 0:
                continue
            is_one = isinstance(stride, int) and stride == 1
            terms.append(loop.name if is_one else f"{self.names.size(stride)} * {loop.name}")
        return " + ".join(terms) or "0"
