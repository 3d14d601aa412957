"""The text of a kernel of running totals."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.loops.threads import PARALLEL_FROM, Sharing, sharing_of, work_of
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, STORED, loaded, stored
from inductor_codegen.codegen.cpp.text.names import Names
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Vector, extent_product
from inductor_codegen.ir.scan import ScanForm, ScanKernel
from inductor_codegen.ir.scatter import SOURCE, TARGET

_LANES = 512
"""Neighbouring rows that are added up side by side: their totals stay in the nearest cache."""
_TURNS = 8
"""Rows that take turns where they are not neighbours."""


def emit_scan(kernel: ScanKernel, head: str, parameters: Sequence[str]) -> str:
    """The C++ function of a kernel."""
    writer = _ScanWriter(kernel)
    body = writer.write()
    lines = [*(f"// {comment}" for comment in kernel.comments), head]
    lines += [f"  {line}" for line in (*parameters, *writer.names.declarations(), *body)]
    return "\n".join([*lines, "  return 0;", "}"]) + "\n"


class _ScanWriter:
    def __init__(self, kernel: ScanKernel) -> None:
        self.kernel = kernel
        self.form: ScanForm = kernel.form
        self.names = Names()
        self.length = self.names.size(kernel.inner[0].extent)
        whole = not self.form.dtype.is_floating_point
        self.total = "uint64_t" if whole else "double" if self.form.dtype.itemsize >= 4 else "float"
        self.first = "0" if self.form.kind == "sum" else "1"

    def write(self) -> list[str]:
        """The body."""
        if self.kernel.vector is Vector.OUTER:
            return self._side_by_side()
        form = self.form
        along = all(
            isinstance(strides[-1], int) and strides[-1] == 1 for strides in (form.source, form.target)
        )
        return self._transposed() if along and form.dtype.itemsize == 2 else self._in_turns()

    def _side_by_side(self) -> list[str]:
        *around, lanes = self.kernel.outer
        count = self.names.size(lanes.extent)
        pieces = f"{self.names.size(extent_product(tuple(around)))} * (({count} + {_LANES - 1}) / {_LANES})"
        source, target = self._element(SOURCE, "from + lane"), self._element(TARGET, "to + lane")
        return [
            *self._share(pieces),
            "for (int64_t piece = first; piece < last; ++piece) {",
            f"  const int64_t blocks = ({count} + {_LANES - 1}) / {_LANES}, row = piece / blocks;",
            f"  const int64_t begin = piece % blocks * {_LANES};",
            f"  const int64_t width = size_min({count} - begin, {_LANES});",
            f"  const int64_t from = begin + {self._start(around, self.form.source)};",
            f"  const int64_t to = begin + {self._start(around, self.form.target)};",
            f"  {self.total} total[{_LANES}];",
            f"  for (int64_t lane = 0; lane < width; ++lane) total[lane] = {self.first};",
            f"  for (int64_t i = 0; i < {self.length}; ++i) {{",
            "    #pragma omp simd",
            "    for (int64_t lane = 0; lane < width; ++lane) {",
            f"      {self._step('total[lane]', source, target)}",
            "    }",
            "  }",
            "}",
        ]

    def _transposed(self) -> list[str]:
        """Blocks of rows: their points are transposed, added up side by side, and transposed back. That pays where each
        number is converted by several operations, for which there are vectors."""
        *around, lanes = self.kernel.outer
        form, count = self.form, self.names.size(lanes.extent)
        read, written = STORED[form.source_dtype], STORED[form.dtype]
        steps = self.names.size(form.source[-2]), self.names.size(form.target[-2])
        pieces = f"{self.names.size(extent_product(tuple(around)))} * (({count} + BLOCK - 1) / BLOCK)"
        at = "i * BLOCK + lane"
        return [
            *self._share(pieces),
            "for (int64_t piece = first; piece < last; ++piece) {",
            "  const int64_t blocks = (" + count + " + BLOCK - 1) / BLOCK, row = piece / blocks;",
            "  const int64_t begin = piece % blocks * BLOCK;",
            f"  const int64_t width = size_min({count} - begin, BLOCK);",
            f"  const int64_t from = {steps[0]} * begin + {self._start(around, form.source)};",
            f"  const int64_t to = {steps[1]} * begin + {self._start(around, form.target)};",
            f"  alignas(64) {read} given[BLOCK * BLOCK];",
            f"  alignas(64) {written} found[BLOCK * BLOCK], back[BLOCK * BLOCK];",
            f"  alignas(64) {self.total} total[BLOCK];",
            f"  for (int64_t lane = 0; lane < width; ++lane) total[lane] = {self.first};",
            f"  for (int64_t part = 0; part < {self.length}; part += BLOCK) {{",
            f"    const int64_t points = size_min({self.length} - part, BLOCK);",
            f"    transpose_block(given, {SOURCE} + from + part, {steps[0]}, points, width);",
            "    for (int64_t i = 0; i < points; ++i) {",
            "      #pragma omp simd",
            "      for (int64_t lane = 0; lane < width; ++lane) {",
            f"        {self._step('total[lane]', f'given[{at}]', f'found[{at}]')}",
            "      }",
            "    }",
            "    transpose_block(back, found, BLOCK, width, points);",
            "    for (int64_t lane = 0; lane < width; ++lane)",
            f"      __builtin_memcpy({TARGET} + to + {steps[1]} * lane + part, back + BLOCK * lane, "
            f"sizeof({written}) * points);",
            "  }",
            "}",
        ]

    def _in_turns(self) -> list[str]:
        outer, form = self.kernel.outer, self.form
        turns = range(_TURNS)
        return [
            *self._share(self.names.size(extent_product(outer))),
            f"int64_t from[{_TURNS}], to[{_TURNS}];",
            f"for (int64_t piece = first; piece < last; piece += {_TURNS}) {{",
            f"  const int64_t count = size_min(last - piece, {_TURNS});",
            "  for (int64_t k = 0; k < count; ++k) {",
            "    const int64_t row = piece + k;",
            f"    from[k] = {self._start(outer, form.source)};",
            f"    to[k] = {self._start(outer, form.target)};",
            "  }",
            f"  if (count == {_TURNS}) {{",
            f"    {self.total} {', '.join(f'total{k} = {self.first}' for k in turns)};",
            f"    const int64_t {', '.join(f'from{k} = from[{k}], to{k} = to[{k}]' for k in turns)};",
            f"    for (int64_t i = 0; i < {self.length}; ++i) {{",
            *(f"      {self._at(f'total{k}', f'from{k}', f'to{k}')}" for k in turns),
            "    }",
            "    continue;",
            "  }",
            "  for (int64_t k = 0; k < count; ++k) {",
            f"    {self.total} total = {self.first};",
            f"    for (int64_t i = 0; i < {self.length}; ++i) {{ {self._at('total', 'from[k]', 'to[k]')} }}",
            "  }",
            "}",
        ]

    def _share(self, pieces: str) -> list[str]:
        if sharing_of(self.kernel) is not Sharing.CALLER:
            return [f"const int64_t first = 0, last = {pieces};"]
        work = work_of(self.kernel)
        worth = "1" if isinstance(work, int) else f"{self.names.size(work)} >= {PARALLEL_FROM}"
        return [
            f"if (!shares) return {worth};",
            f"const int64_t pieces = {pieces};",
            "const int64_t first = pieces * share / shares, last = pieces * (share + 1) / shares;",
        ]

    def _start(self, loops: Sequence[LoopVar], strides: Sequence[IntLike]) -> str:
        """Where the row ``row`` of the loops begins."""
        terms: list[str] = []
        below: IntLike = 1
        for place in reversed(range(len(loops))):
            inside = "row" if place == len(loops) - 1 else f"row / {self.names.size(below)}"
            at = inside if place == 0 else f"{inside} % {self.names.size(loops[place].extent)}"
            terms.append(f"{self.names.size(strides[place])} * ({at})")
            below = below * loops[place].extent
        return " + ".join(reversed(terms)) or "0"

    def _at(self, total: str, source: str, target: str) -> str:
        return self._step(total, self._element(SOURCE, source), self._element(TARGET, target))

    def _element(self, buffer: str, begin: str) -> str:
        strides = self.form.source if buffer == SOURCE else self.form.target
        return f"{buffer}[{begin} + {self.names.size(strides[-1])} * i]"

    def _step(self, total: str, source: str, target: str) -> str:
        """The next total, and the statement that stores it."""
        form = self.form
        sign = "+" if form.kind == "sum" else "*"
        given = loaded(source, form.source_dtype)
        if self.total == "uint64_t":
            return f"{total} = {total} {sign} (uint64_t)(int64_t){given}; {target} = (int64_t){total};"
        held = torch.float64 if self.total == "double" else torch.float32
        value = f"({COMPUTED[form.dtype]}){total}" if self.total == "double" else total
        kept = stored(value, form.dtype if self.total == "double" else held, form.dtype)
        return f"{total} = {total} {sign} {given}; {target} = {kept};"
