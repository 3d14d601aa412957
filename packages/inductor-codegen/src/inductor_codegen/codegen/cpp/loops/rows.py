"""Rows one by one: each row's passes in turn, a SIMD loop in each; and kernels that have no rows at all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.analysis.index_set_splitting import Choice, Cut, Part, Parts, parts_of
from inductor_codegen.codegen.cpp.analysis.looked_up_lines import Line, looked_up_lines
from inductor_codegen.codegen.cpp.analysis.repeated import needed_besides, repeated_loads, repeated_places
from inductor_codegen.codegen.cpp.analysis.skipped_passes import conditions_to_run, only_where_not_finite
from inductor_codegen.codegen.cpp.loops.bounds import together
from inductor_codegen.codegen.cpp.loops.half_blocks import NO_BLOCKS, HalfBlocks, converts_rows, half_blocks
from inductor_codegen.codegen.cpp.loops.innermost import InnermostWriter
from inductor_codegen.codegen.cpp.loops.threads import Sharing
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED, STORED, loaded
from inductor_codegen.codegen.cpp.text.fillers import fillers_for
from inductor_codegen.codegen.cpp.text.reductions import Accumulator
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Kernel, Pass, extent_product
from inductor_codegen.ir.scalar import Apply, Load, Total
from inductor_codegen.ir.traverse import postorder, roots_of

BLOCK = 4096
"""Points of a kernel of one loop that one thread takes at a time."""


class RowWriter(InnermostWriter):
    """A kernel that is vectorised along the last inner loop."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._widened: dict[Load, str] = {}
        """Arrays with a whole row of a 16-bit float input, as floats."""
        self._fillers = fillers_for(kernel.inner)
        if self._fillers is not None:
            self.arrays = self._fillers.definitions

    def write(self) -> list[str]:
        """The lines of the body."""
        if self.kernel.outer or self.accumulators:
            self._rows()
        else:
            self._blocks_of_points()
        return self.lines

    def _blocks_of_points(self) -> None:
        """A kernel of one loop: blocks of it are spread over threads."""
        row = Scope(None, self.names, {})
        if not self.kernel.inner:
            self._pass_loops(self.kernel.passes[0], row)
            return
        points = self.kernel.inner[0].extent
        extent = self.names.size(points)
        begin, stop = "0", extent
        if self.sharing is Sharing.CALLER:
            self._share((points + (BLOCK - 1)) // BLOCK)
            begin, stop = f"first * {BLOCK}", f"last * {BLOCK}"
        self.open(f"for (int64_t begin = {begin}; begin < {stop}; begin += {BLOCK})")
        self.add(f"const int64_t end = {extent} - begin < {BLOCK} ? {extent} : begin + {BLOCK};")
        self._parts(self.kernel.passes[0], row, ("begin", "end"))
        self.close()

    def _rows(self) -> None:
        loops = self.kernel.outer
        shared = loops[: together(loops)] if self.sharing is Sharing.CALLER else ()
        if shared:
            self._open_shared(shared)
        for loop in loops[len(shared) :]:
            self._loop(loop)
        if not loops:
            self.open("")
        self._kept_arrays()
        row = Scope(None, self.names, {})
        for step in self.kernel.passes:
            self._row_pass(step, row)
        self._free_kept()
        self.close(max(len(loops) - len(shared), 0 if loops else 1))
        if shared:
            self._close_shared(shared)

    def _open_shared(self, loops: Sequence[LoopVar]) -> None:
        """The loop over this share's pieces, which are the points of ``loops``."""
        self._share(extent_product(tuple(loops)))
        if len(loops) == 1:
            self._loop(loops[0], "first", "last")
            return
        below: IntLike = 1
        for loop in reversed(loops):
            position = "first" if below == 1 else f"first / ({self.names.size(below)})"
            if loop is not loops[0]:
                position = f"{position} % {self.names.size(loop.extent)}"
            self.add(f"int64_t {loop.name} = first < last ? {position} : 0;")
            below = below * loop.extent
        self.open("for (int64_t piece = first; piece < last; ++piece)")

    def _close_shared(self, loops: Sequence[LoopVar]) -> None:
        """Step to the next point of ``loops``, the last one first."""
        for loop in reversed(loops[1:]):
            self.open(f"if (++{loop.name} == {self.names.size(loop.extent)})")
            self.add(f"{loop.name} = 0;")
        if len(loops) > 1:
            self.add(f"++{loops[0].name};")
        self.close(len(loops))

    def _row_pass(self, step: Pass, row: Scope) -> None:
        accumulators = self._accumulators_of(step)
        for accumulator in accumulators:
            self.add(*accumulator.declarations())
        if accumulators or len(self.kernel.inner) != 1:
            self._pass_loops(step, row)
        else:
            self._parts(step, row, ("0", self.names.size(self.kernel.inner[0].extent)))
        self._bind_totals(accumulators)
        self._row_stores(step, row)

    def _parts(self, step: Pass, row: Scope, bounds: tuple[str, str]) -> None:
        """One pass without reductions over the only inner loop, split where its statements choose by indices."""
        parts = parts_of(step.points, self.kernel.inner[0], self.kernel.least_sizes)
        if isinstance(parts, Part):
            self._pass_loops(step, row, bounds)
        else:
            self._split(parts, row, bounds)

    def _split(self, parts: Parts, row: Scope, bounds: tuple[str, str]) -> None:
        match parts:
            case Part(statements):
                self.open("")
                self._pass_loops(Pass(statements, ()), Scope(row, self.names, {}), bounds)
                self.close()
            case Choice(indices, yes, no):
                self.open(f"if ({' && '.join(f'{row.index(index)} >= 0' for index in indices)})")
                self._split(yes, row, bounds)
                self.close()
                self.open("else")
                self._split(no, row, bounds)
                self.close()
            case Cut(at, below, above):
                middle = self._cut(row.index(at), *bounds)
                self._split(below, row, (bounds[0], middle))
                self._split(above, row, (middle, bounds[1]))

    def _cut(self, at: str, begin: str, end: str) -> str:
        """Where to cut a loop, within its bounds."""
        if begin.isdigit() and at.isdigit() and end.isdigit():
            return str(min(max(int(at), int(begin)), int(end)))
        name = self.names.new("cut")
        self.add(f"const int64_t {name} = size_min(size_max({at}, {begin}), {end});")
        return name

    def _bind_totals(self, accumulators: list[Accumulator]) -> None:
        for accumulator in accumulators:
            name = f"total{accumulator.item.accumulator}"
            self.add(f"const {COMPUTED[accumulator.item.dtype]} {name} = {accumulator.result()};")
            self._totals[accumulator.item.accumulator] = name

    def _row_stores(self, step: Pass, row: Scope) -> None:
        if not step.row:
            return
        roots = [root for store in step.row for root in roots_of(store)]
        scope = Scope(row, self.names, conditions(roots))
        self._bind_leaves(roots, scope)
        scope.compute(roots)
        for store in step.row:
            scope.lines.append(self._store(store, scope))
        self.open("")
        self.add(*scope.lines)
        self.close()

    # -- one pass over the inner loops ------------------------------------------------------------

    def _pass_loops(self, step: Pass, row: Scope, bounds: tuple[str, str] | None = None) -> None:
        """The inner loops of one pass; ``bounds`` replaces those of the first loop."""
        if not step.points:
            return
        inner = self.kernel.inner
        roots = [root for statement in step.points for root in roots_of(statement)]
        needed = conditions(roots)
        moving = self._moving(roots, needed)
        self._bind_leaves(roots, row)
        row.lines = []
        row.compute(
            roots, {node for node in postorder(roots) if node not in moving and not isinstance(node, Total)}
        )
        self.add(*row.lines)
        needed_by = conditions_to_run(step, moving)
        if needed_by:
            self.open(f"if ({' || '.join(map(row.name, needed_by))})")
        accumulators = self._accumulators_of(step)
        points = Scope(row, self.names, needed)
        points.lines, points.fillers = [], self._fillers
        self._bind_kept(roots, points)
        plain = only_where_not_finite(needed_by)
        blocks = (
            half_blocks(postorder(roots), step.points, needed, inner[-1], self.dtypes, self.names)
            if inner and not plain
            else NO_BLOCKS
        )
        if blocks.loads:
            self._convert_rows(blocks, row, may_add=bounds is None and not needed_by)
        for load, name in blocks.rows.items():
            points.bind(load, f"{name}[{inner[-1].name}]")
        for load, name in blocks.loads.items():
            points.bind(load, f"{name}[{inner[-1].name} - strip]")
        besides = None
        if bounds is not None and bounds == ("0", self.names.size(inner[0].extent)):
            self._lay_out(repeated_loads(postorder(roots), needed, self.kernel), points)
            places = repeated_places(postorder(roots), needed, self.kernel)
            self._lay_out_places(places, points)
            besides = needed_besides(roots, places) if places else None
        points.compute(roots, besides)
        if bounds is None or bounds == ("0", self.names.size(inner[0].extent)):
            self._fetch(looked_up_lines((n for n in postorder(roots) if n in moving), self.kernel), row)
        for loop in inner[:-1]:
            self._loop(loop, *(bounds if bounds and loop == inner[0] else ()))
        self.add(*points.before)
        if inner and plain:
            self._plain(step, points, accumulators)
        elif inner:
            self._innermost(step, points, accumulators, blocks, bounds if len(inner) == 1 else None)
        else:
            self.open("")
            self.add(*points.lines, *self._statements(step.points, points, {}))
            self.close()
        self.close(max(0, len(inner) - 1) + bool(needed_by))

    def _fetch(self, lines: Iterable[Line], row: Scope) -> None:
        """Ask memory for lines that a row's points read in any order."""
        for line in lines:
            self.open(f"for (int64_t piece = 0; piece < {line.size}; piece += {line.step})")
            self.add(f"__builtin_prefetch(&{line.buffer}[{row.index(line.start)} + piece]);")
            self.close()

    def _lay_out(self, loads: list[Load], points: Scope) -> None:
        """Lay elements that repeat along a row out beside each other, for all rows that have the same."""
        loop = self.kernel.inner[0]
        for load in loads:
            index = points.index(load.index)
            name = self._open_laid_out(STORED[load.dtype], index)
            self._loop(loop)
            self.add(f"{name}[{loop.name}] = {load.buffer}[{index}];")
            self.close(3)
            points.bind(load, loaded(f"{name}[{loop.name}]", load.dtype))

    def _lay_out_places(self, places: Mapping[Apply, Load], points: Scope) -> None:
        """The same for checked places that repeat."""
        loop = self.kernel.inner[0]
        for place, load in places.items():
            name = self._open_laid_out("int32_t", points.index(load.index))
            self.add("#pragma omp simd reduction(|:bad)")
            self._loop(loop)
            alone = Scope(None, self.names, conditions([place]))
            alone.compute([place])
            self.add(*alone.lines, f"{name}[{loop.name}] = {alone.name(place)};")
            self.close(3)
            points.bind(place, f"(int64_t){name}[{loop.name}]")

    def _open_laid_out(self, kind: str, start: str) -> str:
        """What is run where an array that is laid out is from another place than the row's, and the array's name."""
        loop, name = self.kernel.inner[0], self.names.new("w")
        self.arrays += [f"{kind} {name}[{loop.extent}];", f"int64_t {name}_from = -1;"]
        self.open("")
        self.add(f"const int64_t {loop.name} = 0, from = {start};")
        self.open(f"if ({name}_from != from)")
        self.add(f"{name}_from = from;")
        return name

    def _convert_rows(self, blocks: HalfBlocks, row: Scope, *, may_add: bool) -> None:
        """Convert rows of 16-bit floats before the first pass that reads them, if that is for more than one."""
        loop = self.kernel.inner[-1]
        if not converts_rows(self.kernel):
            return
        for load in blocks.by_the_row(self._widened, may_add=may_add):
            self.add(f"alignas(64) float {self._widened[load]}[{loop.extent}];")
            run = f"&{load.buffer}[{row.index(load.index)}]"
            self.open("")
            self.add(f"const int64_t {loop.name} = 0;")
            self.add(f"widen_halves({self._widened[load]}, {run}, {loop.extent});")
            self.close()
