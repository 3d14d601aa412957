"""The innermost loop of a pass over a row: sums in parts, several points at a turn, searches by the block.

    argmax of x:   for parts of 256 points: b = the largest of the part, and if that is larger than all before
                       q = the first point of the part where x[q] == b

The largest number of a part is found in vectors, and so is its place, which is looked for in few parts only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from inductor_codegen.codegen.cpp.loops.bounds import is_short, length
from inductor_codegen.codegen.cpp.loops.half_blocks import NO_BLOCKS, STRIP, HalfBlocks
from inductor_codegen.codegen.cpp.loops.reduction_streams import (
    STREAMS,
    additions,
    declarations,
    may_stream,
    term,
    turns_of,
)
from inductor_codegen.codegen.cpp.loops.vectors import narrowest
from inductor_codegen.codegen.cpp.loops.writer import Writer
from inductor_codegen.codegen.cpp.text.reductions import Accumulator
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Accumulate, Keep, Pass, Statement, Store
from inductor_codegen.ir.traverse import roots_of

PART = 256
"""Terms of a sum that are added up before their total joins the others, where each turn takes several: 4 or 8 a lane,
so that roundings of equal terms, which all go to one side, do not add up."""
LONG = 512
"""Terms from which on a sum is made of several streams; of a part where each turn takes one."""
SHORT = 64
"""Terms up to which the lanes of a wide vector take longer to be joined than a narrow one takes to be filled."""
SEARCHED = 256
"""Points among which the largest is found before its place is looked for."""


class InnermostWriter(Writer):
    """What writes the last inner loop of a pass that is vectorised along it."""

    def _plain(self, step: Pass, points: Scope, accumulators: list[Accumulator]) -> None:
        """The innermost loop of a pass that hardly any row needs, which takes little time to compile."""
        self._loop(self.kernel.inner[-1])
        names = {a.item.accumulator: a.name for a in accumulators}
        self.add(*points.lines, *self._statements(step.points, points, names))
        self.close()

    def _innermost(
        self,
        step: Pass,
        points: Scope,
        accumulators: list[Accumulator],
        blocks: HalfBlocks,
        bounds: tuple[str, str] | None,
    ) -> None:
        loop = self.kernel.inner[-1]
        begin, end = bounds or ("0", self.names.size(loop.extent))
        if any(a.searches for a in accumulators):
            self._search(step, points, accumulators, blocks, (begin, end))
            return
        in_parts = any(a.splits for a in accumulators) and not self._gathers(step)
        names = {a.item.accumulator: a.partial if in_parts else a.name for a in accumulators}
        streams = in_parts and self._may_stream(step, accumulators)
        if streams and (length(begin, end) or PART + 1) > PART:
            begin = self._full_parts(step, points, accumulators, blocks, (begin, end))
            streams = False
            if begin == end:
                return
        long = in_parts and not streams and (length(begin, end) or LONG + 1) > LONG
        if long:
            self.open(f"for (int64_t part = {begin}; part < {end}; part += {LONG})")
            begin, end = "part", self._part_end(loop, begin, end, LONG)
        self.add(*(f"{a.type} {a.partial} = {a.start};" for a in accumulators if in_parts and a.splits))
        if blocks:
            whole = length(begin, end) if streams else None
            begin, end = self._open_strip((begin, end), blocks, points, whole)
        if streams:
            begin = self._streams(step, points, accumulators, blocks, (begin, end))
        if begin != end:
            self._one_by_one(step, points, names, blocks, (begin, end), shared=bounds is not None)
        if blocks:
            self._close_strip(blocks, points)
        if in_parts:
            self.add(*(line for a in accumulators if a.splits for line in a.join(a.partial, "")))
        if long:
            self.close()

    def _one_by_one(
        self,
        step: Pass,
        points: Scope,
        names: Mapping[int, str],
        blocks: HalfBlocks,
        bounds: tuple[str, str],
        *,
        shared: bool,
    ) -> None:
        """A loop that takes a point at each turn; ``shared``: it may be one block of several."""
        accumulators = self._accumulators_of(step)
        clauses = [clause for a in accumulators for clause in a.clauses(names[a.item.accumulator])]
        bytes_each = narrowest(step, blocks, self.dtypes)
        if shared and not self.kernel.outer and not accumulators:
            clauses.append(f"simdlen(VECTOR_BYTES / {bytes_each})")
        if accumulators and (length(*bounds) or SHORT + 1) <= SHORT and bytes_each >= 4:
            clauses.append(f"simdlen(SHORT_VECTOR_BYTES / {bytes_each})")
        elif accumulators and bytes_each == 2:  # added as 4 bytes: more lanes leave more to the end
            clauses.append("simdlen(VECTOR_BYTES / 4)")
        if not is_short(*bounds):
            self.add(" ".join(["#pragma omp simd", *clauses, *self._bad(step.points)]))
        self._loop(self.kernel.inner[-1], *bounds)
        self.add(*points.lines, *self._statements(step.points, points, names, blocks))
        self.close()

    def _part_end(self, loop: LoopVar, begin: str, end: str, terms: int) -> str:
        """Where a part ends, as text."""
        if begin == "0" and isinstance(loop.extent, int) and loop.extent % terms == 0:
            return f"part + {terms}"
        self.add(f"const int64_t part_end = {end} - part < {terms} ? {end} : part + {terms};")
        return "part_end"

    # -- several points at a turn -----------------------------------------------------------------

    def _may_stream(self, step: Pass, accumulators: list[Accumulator]) -> bool:
        """Whether a long pass over a row should take several points at a turn."""
        extent = self.kernel.inner[-1].extent
        if self.kernel.outer and not isinstance(extent, int):
            return False
        roots = [root for statement in step.points for root in roots_of(statement)]
        few = isinstance(extent, int) and extent < LONG
        moving = self._moving(roots, conditions(roots))
        return not few and may_stream(accumulators, moving, along_row=True)

    def _full_parts(
        self,
        step: Pass,
        points: Scope,
        accumulators: list[Accumulator],
        blocks: HalfBlocks,
        bounds: tuple[str, str],
    ) -> str:
        """The loop over parts of the same length, which the compiler knows; what is left begins there."""
        begin, end = bounds
        count = length(begin, end)
        if count is None:
            rest = self.names.new("rest")
            self.add(f"const int64_t {rest} = {begin} + ({end} - {begin}) / {PART} * {PART};")
        else:
            rest = str(int(begin) + count // PART * PART)
        self.open(f"for (int64_t part = {begin}; part < {rest}; part += {PART})")
        self.add(*(f"{a.type} {a.partial} = {a.start};" for a in accumulators))
        part = ("part", f"part + {PART}")
        if blocks:
            self._open_strip(part, blocks, points, PART)
        self._streams(step, points, accumulators, blocks, part)
        if blocks:
            self._close_strip(blocks, points)
        self.add(*(line for a in accumulators for line in a.join(a.partial, "")))
        self.close()
        return rest

    def _streams(
        self,
        step: Pass,
        points: Scope,
        accumulators: list[Accumulator],
        blocks: HalfBlocks,
        bounds: tuple[str, str],
    ) -> str:
        """The loop over most of a part, four points at a turn; what is left begins there."""
        count = length(*bounds)
        assert count is not None
        taken = turns_of(count)
        names = {a.item.accumulator: a.partial for a in accumulators}
        clauses = [clause for a in accumulators for clause in a.clauses(names[a.item.accumulator])]
        if narrowest(step, blocks, self.dtypes) < 4:
            clauses.append("simdlen(VECTOR_BYTES / 4)")
        self.add(" ".join(["#pragma omp simd", *clauses, *self._bad(step.points)]))
        self.open(f"for (int64_t turn = 0; turn < {taken}; ++turn)")
        self.add(*declarations(accumulators))
        for stream in range(STREAMS):
            self.open("")
            begin = "turn" if bounds[0] == "0" else f"{bounds[0]} + turn"
            offset = f" + {stream} * {taken}" if stream else ""
            self.add(f"const int64_t {self.kernel.inner[-1].name} = {begin}{offset};", *points.lines)
            self.add(*self._statements(step.points, points, names, blocks, stream=stream))
            self.close()
        self.add(*additions(accumulators, names))
        self.close()
        if count == STREAMS * taken:
            return bounds[1]
        return (
            str(int(bounds[0]) + STREAMS * taken)
            if bounds[0].isdigit()
            else f"{bounds[0]} + {STREAMS * taken}"
        )

    # -- places -----------------------------------------------------------------------------------

    def _search(
        self,
        step: Pass,
        points: Scope,
        accumulators: list[Accumulator],
        blocks: HalfBlocks,
        bounds: tuple[str, str],
    ) -> None:
        """The loop of a pass that asks where a number is: the number of each block first, then its place."""
        loop = self.kernel.inner[-1]
        begin, end = bounds
        if blocks:
            begin, end = self._open_strip(bounds, blocks, points, None)
        self.open(f"for (int64_t part = {begin}; part < {end}; part += {SEARCHED})")
        end = self._part_end(loop, begin, end, SEARCHED)
        searching = [a for a in accumulators if a.searches]
        names = {a.item.accumulator: a.partial for a in accumulators}
        self.add(*(line for a in searching for line in a.block_declarations(SEARCHED)))
        clauses = [clause for a in accumulators for clause in a.clauses(a.partial)]
        self.add(" ".join(["#pragma omp simd", *clauses, *self._bad(step.points)]))
        self._loop(loop, "part", end)
        self.add(*points.lines, *self._statements(step.points, points, names, blocks))
        self.close()
        for accumulator in searching:
            self._place(accumulator, points, end)
        self.close()
        if blocks:
            self._close_strip(blocks, points)

    def _place(self, accumulator: Accumulator, points: Scope, end: str) -> None:
        """Where the number of a block is, if it is better than those of the blocks before."""
        assert accumulator.item.position is not None
        self.add(*accumulator.block_result())
        self.open(f"if ({accumulator.better(accumulator.partial)})")
        self.add(f"int32_t place = {SEARCHED};", "#pragma omp simd reduction(min:place)")
        self.open(f"for (int32_t k = 0; k < (int32_t)({end} - part); ++k)")
        self.add(f"const int32_t here = {accumulator.is_at('k')} ? k : {SEARCHED};")
        self.add("place = here < place ? here : place;")
        self.close()
        self.add(f"const int64_t {self.kernel.inner[-1].name} = part + place;")
        self.add(f"{accumulator.name} = {accumulator.partial};")
        self.add(f"{accumulator.name}_at = {points.index(accumulator.item.position)};")
        self.close()

    # -- blocks of 16-bit floats ------------------------------------------------------------------

    def _open_strip(
        self, bounds: tuple[str, str], blocks: HalfBlocks, points: Scope, whole: int | None
    ) -> tuple[str, str]:
        """The loop over blocks of 16-bit floats that are converted at once, or one block of ``whole`` points; the
        bounds of a block."""
        begin, end = bounds
        if whole is None:
            self.open(f"for (int64_t strip = {begin}; strip < {end}; strip += {STRIP})")
            self.add(f"const int64_t strip_end = {end} - strip < {STRIP} ? {end} : strip + {STRIP};")
        else:
            self.open("")
            self.add(f"const int64_t strip = {begin}, strip_end = strip + {whole};")
        self.add(*blocks.arrays(whole or STRIP))
        self._at_strip(blocks.widen(points.index, "strip_end - strip"))
        return ("strip", "strip_end") if whole is None else bounds

    def _close_strip(self, blocks: HalfBlocks, points: Scope) -> None:
        self._at_strip(blocks.narrow(points.index, "strip_end - strip"))
        self.close()

    def _at_strip(self, lines: list[str]) -> None:
        if lines:
            self.open("")
            self.add(f"const int64_t {self.kernel.inner[-1].name} = strip;", *lines)
            self.close()

    def _has_parts(self, step: Pass) -> bool:
        if len(self.kernel.inner) != 1:
            return bool(self.kernel.inner)
        extent = self.kernel.inner[-1].extent
        return not isinstance(extent, int) or extent >= LONG or self._gathers(step)

    def _statements(
        self,
        statements: Iterable[Statement],
        scope: Scope,
        names: Mapping[int, str],
        blocks: HalfBlocks = NO_BLOCKS,
        stream: int | None = None,
    ) -> list[str]:
        lines: list[str] = []
        for statement in statements:
            match statement:
                case Store():
                    at = f"{self.kernel.inner[-1].name} - strip" if blocks else ""
                    lines.append(self._store(statement, scope, blocks, at))
                case Keep(slot, value):
                    lines.append(f"kept{slot}[{self._inner_position()}] = {scope.name(value)};")
                case Accumulate(accumulator, _, value, _, position):
                    where = "" if position is None else scope.index(position)
                    found = self.accumulators[accumulator]
                    if stream is not None:
                        lines.append(f"{term(found, stream)} = {found.term(scope.name(value))};")
                        continue
                    if found.searches and names:
                        at = f"{self.kernel.inner[-1].name} - part"
                        lines += found.block_step(scope.name(value), at)
                        continue
                    lines += found.step(scope.name(value), where, names.get(accumulator, found.name))
        return lines
