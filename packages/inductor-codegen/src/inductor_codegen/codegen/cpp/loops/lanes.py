"""Neighbouring rows side by side: reductions over outer memory, vectorised across the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.analysis.skipped_passes import conditions_to_run
from inductor_codegen.codegen.cpp.loops.half_blocks import LaneHalves, lane_halves
from inductor_codegen.codegen.cpp.loops.lane_parts import PART, SHORT_PART, are_few, is_long, part_of
from inductor_codegen.codegen.cpp.loops.reduction_streams import (
    STREAMS,
    additions,
    declarations,
    may_stream,
    term,
)
from inductor_codegen.codegen.cpp.loops.threads import Sharing
from inductor_codegen.codegen.cpp.loops.writer import Writer
from inductor_codegen.codegen.cpp.text.dtypes import COMPUTED
from inductor_codegen.codegen.cpp.text.reductions import Accumulator
from inductor_codegen.codegen.cpp.text.scope import Scope, conditions
from inductor_codegen.ir.index import LoopVar, Quotient, Remainder
from inductor_codegen.ir.kernel import Accumulate, Keep, Pass, Statement, Store, extent_product
from inductor_codegen.ir.scalar import Apply, Kept, Load, Scalar, Total, loaded_scalars, operands
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of

LANES = 256
"""Neighbouring rows that are reduced side by side where threads share them, or values of them are kept."""
WIDE_LANES = 1024
"""The same where one thread does all: memory is read in longer stretches."""
VECTOR = 16
"""Lanes that fill a vector of the widest kind, and a line of memory."""
PIECES = 16
"""Pieces that threads share where there are not as many rows as make up more."""
KEPT = 1 << 18
"""Values that a block of rows may keep: they stay in a processor's own cache."""


class LaneWriter(Writer):
    """A kernel that is vectorised along the last outer loop."""

    def write(self) -> list[str]:
        """The lines of the body."""
        *around, lane_loop = self.kernel.outer
        if self.sharing is Sharing.CALLER:
            self._open_shared(around, lane_loop)
        else:
            for loop in around:
                self._loop(loop)
            self._open_blocks(lane_loop.extent)
        known: dict[Scalar, str] = {}
        self._kept_arrays()
        for step in self.kernel.passes:
            self._lane_pass(step, known)
        for slot in self._kept_types():
            self.add(f"__builtin_free(kept{slot});")
        if self.sharing is Sharing.CALLER:
            self.add("piece += blocks;")
            self.close()
        else:
            self.close(len(self.kernel.outer))
        return self.lines

    def _open_blocks(self, extent: IntLike) -> None:
        end = self.names.size(extent)
        if isinstance(extent, int) and extent <= self.lanes:
            self.open("")
            self.add(f"const int64_t block = 0, width = {end};")
            return
        self.open(f"for (int64_t block = 0; block < {end}; block += {self.lanes})")
        self.add(f"const int64_t width = {end} - block < {self.lanes} ? {end} - block : {self.lanes};")

    def _open_shared(self, around: Sequence[LoopVar], lane_loop: LoopVar) -> None:
        """The loop over this share's pieces, LANES lanes each; neighbouring ones are taken together."""
        piece = self.piece
        in_row = (lane_loop.extent + (piece - 1)) // piece
        self._share(extent_product(tuple(around)) * in_row)
        self.open("for (int64_t piece = first; piece < last;)")
        blocks = self.names.size(in_row)
        below: IntLike = in_row
        for loop in reversed(around):
            position = f"piece / ({self.names.size(below)})"
            if loop is not around[0]:
                position = f"{position} % {self.names.size(loop.extent)}"
            self.add(f"const int64_t {loop.name} = {position};")
            below = below * loop.extent
        extent = self.names.size(lane_loop.extent)
        if in_row == 1:
            self.add(f"const int64_t blocks = 1, block = 0, width = {extent};")
            return
        start = f"piece % ({blocks})" if around else "piece"
        rest = lane_loop.extent % piece
        whole = isinstance(rest, int) and rest == 0
        width = f"blocks * {piece}" if whole else f"size_min(blocks * {piece}, {extent} - block)"
        self.add(
            f"const int64_t start = {start}, left = size_min({blocks} - start, last - piece);",
            f"const int64_t blocks = size_min(left, {self._pieces_at_once(lane_loop.extent)});",
            f"const int64_t block = start * {piece}, width = {width};",
        )

    @property
    def lanes(self) -> int:
        """The most lanes of a block."""
        extent = self.kernel.outer[-1].extent
        if self._kept_types():
            points = extent_product(self.kernel.inner)
            near = KEPT // points // VECTOR * VECTOR if isinstance(points, int) else LANES
            return max(VECTOR, min(LANES, near))
        return WIDE_LANES if not isinstance(extent, int) else max(LANES, min(WIDE_LANES, extent))

    @property
    def piece(self) -> int:
        """The lanes of a piece: where there are few rows, so few that all threads get some."""
        *around, lane_loop = self.kernel.outer
        extent, others = lane_loop.extent, extent_product(tuple(around))
        if not isinstance(extent, int) or not isinstance(others, int):
            return min(LANES, self.lanes)
        wanted = -(-PIECES // others)
        return min(LANES, self.lanes, max(VECTOR, -(-extent // (wanted * VECTOR)) * VECTOR))

    def _pieces_at_once(self, extent: IntLike) -> int:
        """The most pieces of a block: all of rows that fit into one, whose last piece may be shorter."""
        fits = isinstance(extent, int) and extent <= self.lanes
        return -(-self.lanes // self.piece) if fits else self.lanes // self.piece

    def _has_parts(self, step: Pass) -> bool:
        return part_of(self.kernel.inner, PART if self._takes_streams(step) else SHORT_PART) > 0

    def _takes_streams(self, step: Pass) -> bool:
        nodes = postorder([root for statement in step.points for root in roots_of(statement)])
        return not are_few(self.kernel.inner) and may_stream(
            self._accumulators_of(step), nodes, along_row=False
        )

    def _kept_arrays(self) -> None:
        """Memory for what is kept of a block of rows: each lane's value at each point of the inner loops."""
        points = self.names.size(extent_product(self.kernel.inner))
        for slot, kind in self._kept_types().items():
            size = f"sizeof({kind}) * (uint64_t)(width * ({points}))"
            self.add(f"{kind}* const kept{slot} = ({kind}*)__builtin_malloc({size});")

    def _kept(self, slot: int) -> str:
        return f"kept{slot}[({self._inner_position()}) * width + lane]"

    def _lanes(self, body: Callable[[], None], clauses: Sequence[str] = ()) -> None:
        self.add(" ".join(["#pragma omp simd", *clauses]))
        self.open("for (int64_t lane = 0; lane < width; ++lane)")
        self.add(f"const int64_t {self.kernel.outer[-1].name} = block + lane;")
        body()
        self.close()

    def _lane_pass(self, step: Pass, known: dict[Scalar, str]) -> None:
        accumulators = self._accumulators_of(step)
        for accumulator in accumulators:
            self.add(*accumulator.declarations(f"[{self.lanes}]"))
            self._totals[accumulator.item.accumulator] = accumulator.result("[lane]")
        self.add(*(line for a in accumulators for line in a.cleared(a.name, "width")))
        others = [a for a in accumulators if not a.starts_with_zeros]
        if others:
            self._lanes(lambda: self.add(*(line for a in others for line in a.resets("[lane]"))))
        if step.points:
            self._row_arrays(step, known)
            skips = self._open_where_needed(step, known)
            self._points(step, accumulators, known)
            self.close(skips)
        if step.row:
            self._lanes(lambda: self._lane_statements(step.row, known), self._bad())

    def _open_where_needed(self, step: Pass, known: dict[Scalar, str]) -> bool:
        """A block around a pass that only some rows need, if this is one."""
        roots = [root for item in step.points for root in roots_of(item)]
        moving = self._moving(roots, conditions(roots))
        wanted = [known[node] for node in conditions_to_run(step, moving) if node in known]
        if not wanted:
            return False
        name = self.names.new("any")
        self.add(f"int32_t {name} = 0;")
        body = f"{name} |= {' | '.join(wanted)};"
        self._lanes(lambda: self.add(body), [f"reduction(|:{name})"])
        self.open(f"if ({name})")
        return True

    def _points(self, step: Pass, accumulators: list[Accumulator], known: dict[Scalar, str]) -> None:
        """The inner loops; float sums over many points are made of the sums of parts."""
        inner = self.kernel.inner
        streams = self._takes_streams(step)
        part_terms = PART if streams else SHORT_PART
        part = part_of(inner, part_terms)
        parts = [a for a in accumulators if a.splits] if part else []
        names = {a.item.accumulator: a.partial for a in parts}
        for accumulator in parts:
            self.add(f"{accumulator.type} {accumulator.partial}[{self.lanes}];")
            self.add(*accumulator.cleared(accumulator.partial, "width"))
        joins = [f"join_part({a.name}, {a.partial}, width);" for a in parts]
        around, bounds = list(inner[:-1]), ("", "")
        if inner:
            bounds = ("0", self.names.size(inner[-1].extent))
        counted = bool(parts) and is_long(inner[1:], part_terms)
        in_turns = bool(parts) and streams and not around
        added = f"added{parts[0].item.accumulator}" if counted else ""  # passes share a block
        if counted:
            self.add(f"int64_t {added} = 0;")
        for loop in around:
            self._loop(loop)
        if in_turns or counted:
            end, terms = bounds[1], part_terms if counted else part
            self.open(f"for (int64_t part = 0; part < {end}; part += {terms})")
            self.add(f"const int64_t part_end = {end} - part < {terms} ? {end} : part + {terms};")
            bounds = ("part", "part_end")
        if streams:
            bounds = self._streams(step, accumulators, known, names, bounds)
        if not inner or bounds[0] != bounds[1]:
            if inner:
                self._loop(inner[-1], *bounds)
            halves = self._halves(step, known, 1)
            at_point = known | self._same_for_all_lanes(step.points, known) | halves.known(0)
            self.add(*halves.widen(0, self.kernel.outer[-1], self.names))
            self._lanes(lambda: self._lane_statements(step.points, at_point, names), self._bad())
            if joins and not around and not in_turns:
                self._join_after(part, joins)
            self.close(1 if inner else 0)
        if counted:
            self.add(f"{added} += part_end - part;")
            self.open(f"if ({added} >= {part_terms})")
            self.add(f"{added} = 0;", *joins)
            self.close(2 + len(around))
            self.add(*joins)
        elif joins and around:
            self.close(len(around) - 1)
            self._join_after(part, joins)
            self.close()
        else:
            self.close(len(around))
        if in_turns:
            self.add(*joins)
            self.close()

    def _join_after(self, part: int, joins: Sequence[str]) -> None:
        """What follows the turns of the first inner loop: the last of a part joins its sums to the others."""
        loop = self.kernel.inner[0]
        if part == 1:
            self.add(*joins)
            return
        last = f"{loop.name} == {self.names.size(loop.extent - 1)}"
        self.open(f"if ({loop.name} % {part} == {part - 1} || {last})")
        self.add(*joins)
        self.close()

    def _same_for_all_lanes(
        self, statements: Sequence[Statement], known: dict[Scalar, str]
    ) -> dict[Scalar, str]:
        """What every lane of a point has, as the row that a number from data names: computed once, so that vectors are
        loaded from one place of memory."""
        roots = [root for statement in statements for root in roots_of(statement)]
        needed = conditions(roots)
        lane = self.kernel.outer[-1]
        moving: dict[Scalar, None] = {}
        for node in postorder(roots):
            moves = isinstance(node, Kept | Total) or any(
                lane in index.variables() for index in indices_of(node)
            )
            if moves or node in known or any(operand in moving for operand in operands(node)):
                moving[node] = None
        fixed = [
            scalar
            for node in moving
            for index in indices_of(node)
            for scalar in loaded_scalars(index)
            if scalar not in moving and frozenset() in needed[scalar]
        ]
        scope = Scope(None, self.names, needed)
        scope.compute(fixed)
        self.add(*scope.lines)
        return {scalar: scope.name(scalar) for scalar in postorder(fixed)}

    def _streams(
        self,
        step: Pass,
        accumulators: list[Accumulator],
        known: dict[Scalar, str],
        names: dict[int, str],
        bounds: tuple[str, str],
    ) -> tuple[str, str]:
        """The loop over the innermost points, four at a turn; the bounds of what is left."""
        begin, end = bounds
        loop = self.kernel.inner[-1].name
        self.open(f"for (int64_t turn = {begin}; turn + {STREAMS - 1} < {end}; turn += {STREAMS})")
        halves = self._halves(step, known, STREAMS)
        for stream in range(STREAMS if halves.arrays else 0):
            self.open("")
            self.add(f"const int64_t {loop} = turn + {stream};")
            self.add(*halves.widen(stream, self.kernel.outer[-1], self.names))
            self.close()

        def turn() -> None:
            self.add(*declarations(accumulators))
            for stream in range(STREAMS):
                self.open("")
                self.add(f"const int64_t {loop} = turn{f' + {stream}' if stream else ''};")
                self._lane_statements(step.points, known | halves.known(stream), names, stream)
                self.close()
            self.add(*additions(accumulators, names, "[lane]"))

        self._lanes(turn, self._bad())
        self.close()
        if begin.isdigit() and end.isdigit():
            return str(int(end) - (int(end) - int(begin)) % STREAMS), end
        extent = self.kernel.inner[-1].extent
        if isinstance(extent, int) and extent % STREAMS == 0:
            return end, end
        return f"{end} - ({end} - {begin}) % {STREAMS}", end

    def _halves(self, step: Pass, known: dict[Scalar, str], points: int) -> LaneHalves:
        halves = lane_halves(step.points, known, self.kernel.outer[-1], self.lanes, self.names)
        self.add(*halves.definitions(points))
        return halves

    def _row_arrays(self, step: Pass, known: dict[Scalar, str]) -> None:
        """Values that do not change along the inner loops and cost something, once per lane."""
        roots = [root for statement in step.points for root in roots_of(statement)]
        needed = conditions(roots)
        moving = self._moving(roots, needed)
        wanted: dict[Scalar, None] = {}
        for node in postorder(roots):
            if node in moving:
                wanted.update(
                    (operand, None)
                    for operand in operands(node)
                    if operand not in moving and operand not in known and _costs(operand)
                )
        if not wanted:
            return
        scope = Scope(None, self.names, needed)
        self._bind_lane_leaves(list(wanted), scope, known)
        scope.compute(wanted)
        for node in wanted:
            name = self.names.new("r")
            logical = node.dtype == torch.bool
            self.add(f"{'int32_t' if logical else COMPUTED[node.dtype]} {name}[{self.lanes}];")
            scope.lines.append(f"{name}[lane] = {scope.name(node)};")
            known[node] = f"({name}[lane] != 0)" if logical else f"{name}[lane]"
        self._lanes(lambda: self.add(*scope.lines), self._bad())

    def _lane_statements(
        self,
        statements: Sequence[Statement],
        known: dict[Scalar, str],
        names: Mapping[int, str] | None = None,
        stream: int | None = None,
    ) -> None:
        roots = [root for statement in statements for root in roots_of(statement)]
        needed = conditions(roots)
        scope = Scope(None, self.names, needed)
        self._bind_lane_leaves(roots, scope, known)
        scope.compute(roots)
        self.add(*scope.lines)
        for statement in statements:
            match statement:
                case Store():
                    self.add(self._store(statement, scope))
                case Accumulate(accumulator, _, value, _, position):
                    where = "" if position is None else scope.index(position)
                    found = self.accumulators[accumulator]
                    if stream is not None:
                        self.add(f"{term(found, stream)} = {found.term(scope.name(value))};")
                        continue
                    self.add(
                        *found.step(
                            scope.name(value), where, (names or {}).get(accumulator, found.name), "[lane]"
                        )
                    )
                case Keep(slot, value):
                    self.add(f"{self._kept(slot)} = {scope.name(value)};")

    def _bind_lane_leaves(self, roots: Iterable[Scalar], scope: Scope, known: dict[Scalar, str]) -> None:
        for node in postorder(roots):
            if isinstance(node, Total):
                scope.bind(node, self._totals[node.accumulator])
            elif isinstance(node, Kept):
                scope.bind(node, self._kept(node.slot))
            elif node in known:
                scope.bind(node, known[node])


def _costs(node: Scalar) -> bool:
    """Whether a value is worth an array: it is computed, or lanes that follow each other load it from places that do
    not."""
    return isinstance(node, Apply) or (
        isinstance(node, Load) and any(isinstance(atom, Quotient | Remainder) for atom in node.index.atoms())
    )
