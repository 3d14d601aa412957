"""Kernels as C++ functions: OpenMP over rows, one SIMD loop in each pass, no header."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from fx_interface.symbols import IntLike
from inductor_codegen.codegen.cpp.indexing import size_text
from inductor_codegen.codegen.cpp.preamble import PREAMBLE
from inductor_codegen.codegen.cpp.reductions import Accumulator
from inductor_codegen.codegen.cpp.scope import Condition, Scope, conditions, is_checked, must_be_protected
from inductor_codegen.codegen.cpp.types import COMPUTED, STORED, stored
from inductor_codegen.ir.index import LoopVar, as_index, flatten
from inductor_codegen.ir.kernel import (
    Access,
    Accumulate,
    BufferParameter,
    FloatParameter,
    Keep,
    Kernel,
    Parameter,
    Pass,
    SizeParameter,
    Statement,
    Store,
    Vector,
    extent_product,
)
from inductor_codegen.ir.scalar import Apply, Kept, Scalar, Total, operands
from inductor_codegen.ir.traverse import indices_of, postorder, roots_of, statements_of

PARALLEL_FROM = 32768
"""Points times work below which starting threads costs more than it saves."""
PART = 4096
"""Terms of a sum that are added up before their total joins the others."""
SLICES = 64
"""Parts of a reduction of everything, so that its result does not depend on the number of threads."""
BLOCK = 4096
"""Points of a kernel of one loop that one thread takes at a time."""
LANES = 256
"""Neighbouring rows that are reduced side by side."""
STACK_ELEMENTS = 8192
"""Elements that a row may keep on the stack."""


def emit_kernel(kernel: Kernel) -> str:
    """The C++ function of one kernel; it needs ``PREAMBLE`` before it."""
    return "\n".join(_Emitter(kernel).function()) + "\n"


def emit_source(kernels: Iterable[Kernel]) -> str:
    """A whole C++ file of kernels."""
    return "\n".join([PREAMBLE, *map(emit_kernel, kernels)])


def parameter_text(parameter: Parameter) -> str:
    """One parameter of the C++ signature."""
    match parameter:
        case BufferParameter(name, dtype, access):
            const = "const " if access is Access.READ else ""
            return f"{const}{STORED[dtype]}* {name}"
        case SizeParameter(name):
            return f"int64_t {name}"
        case FloatParameter(name):
            return f"double {name}"


def signature(kernel: Kernel) -> str:
    """The C++ declaration of a kernel, without ``extern "C"``."""
    listed = ", ".join([*map(parameter_text, kernel.parameters), "int64_t threads"])
    return f"int32_t {kernel.name}({listed})"


class _Emitter:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.indent = 1
        self.counter = [0]
        self.dtypes = {buffer.name: buffer.dtype for buffer in kernel.buffers}
        self.inner = set(kernel.inner)
        self._totals: dict[int, str] = {}
        self.checked = any(
            isinstance(node, Apply) and is_checked(node)
            for statement in statements_of(kernel.passes)
            for node in postorder(roots_of(statement))
        )
        self.accumulators = {
            item.accumulator: Accumulator(item)
            for item in statements_of(kernel.passes)
            if isinstance(item, Accumulate)
        }

    # -- text ------------------------------------------------------------------------------------------------------

    def add(self, *lines: str) -> None:
        self.lines += ["  " * self.indent + line for line in lines]

    def open(self, line: str) -> None:
        self.add(f"{line} {{")
        self.indent += 1

    def close(self, count: int = 1) -> None:
        for _ in range(count):
            self.indent -= 1
            self.add("}")

    def function(self) -> list[str]:
        kernel = self.kernel
        self.lines = [*(f"// {comment}" for comment in kernel.comments), f'extern "C" {signature(kernel)} {{']
        if self.checked:
            self.add("int32_t bad = 0;")
        if kernel.vector is Vector.OUTER:
            self._rows_side_by_side()
        elif not kernel.outer and self.accumulators and self._sliceable():
            self._everything_in_slices()
        elif not kernel.outer and not self.accumulators:
            self._blocks_of_points()
        else:
            self._rows()
        self.add("return bad;" if self.checked else "return 0;")
        self.lines.append("}")
        return self.lines

    # -- loops -----------------------------------------------------------------------------------------------------

    def _loop(self, loop: LoopVar, begin: str = "0", end: str | None = None) -> None:
        stop = size_text(loop.extent) if end is None else end
        self.open(f"for (int64_t {loop.name} = {begin}; {loop.name} < {stop}; ++{loop.name})")

    def _parallel(self, loops: Sequence[LoopVar], extra: Sequence[str] = ()) -> None:
        """The pragma that spreads the loops that follow over threads, if there is enough to do."""
        work = extent_product((*self.kernel.outer, *self.kernel.inner))
        clauses = list(extra)
        if isinstance(work, int) and work < PARALLEL_FROM:
            return
        condition = "threads > 1"
        if not isinstance(work, int):
            condition += f" && {size_text(work)} >= {PARALLEL_FROM}"
        collapse = _collapse(loops)
        if collapse > 1:
            clauses.insert(0, f"collapse({collapse})")
        self.add(
            " ".join(
                [f"#pragma omp parallel for num_threads(threads) if({condition}) schedule(static)", *clauses]
            )
        )

    def _bad(self) -> list[str]:
        return ["reduction(|:bad)"] if self.checked else []

    def _blocks_of_points(self) -> None:
        """A kernel of one loop: blocks of it are spread over threads."""
        row = Scope(None, self.counter, {})
        if not self.kernel.inner:
            self._pass_loops(self.kernel.passes[0], row)
            return
        extent = size_text(self.kernel.inner[0].extent)
        self._parallel([], extra=self._bad())
        self.open(f"for (int64_t begin = 0; begin < {extent}; begin += {BLOCK})")
        self.add(f"const int64_t end = {extent} - begin < {BLOCK} ? {extent} : begin + {BLOCK};")
        self._pass_loops(self.kernel.passes[0], row, bounds=("begin", "end"))
        self.close()

    # -- rows one by one -------------------------------------------------------------------------------------------

    def _rows(self) -> None:
        if self.kernel.outer:
            self._parallel(self.kernel.outer, extra=self._bad())
        for loop in self.kernel.outer:
            self._loop(loop)
        if not self.kernel.outer:
            self.open("")
        self._kept_arrays()
        row = Scope(None, self.counter, {})
        for step in self.kernel.passes:
            self._row_pass(step, row)
        self._free_kept()
        self.close(max(1, len(self.kernel.outer)))

    def _row_pass(self, step: Pass, row: Scope) -> None:
        accumulators = self._accumulators_of(step)
        for accumulator in accumulators:
            self.add(*accumulator.declarations())
        self._pass_loops(step, row)
        self._bind_totals(accumulators, row)
        self._row_stores(step, row)

    def _accumulators_of(self, step: Pass) -> list[Accumulator]:
        return [self.accumulators[item.accumulator] for item in step.points if isinstance(item, Accumulate)]

    def _bind_totals(self, accumulators: list[Accumulator], row: Scope) -> None:
        for accumulator in accumulators:
            name = f"total{accumulator.item.accumulator}"
            self.add(f"const {COMPUTED[accumulator.item.dtype]} {name} = {accumulator.result()};")
            self._totals[accumulator.item.accumulator] = name

    def _row_stores(self, step: Pass, row: Scope) -> None:
        if not step.row:
            return
        roots = [root for store in step.row for root in roots_of(store)]
        scope = Scope(row, self.counter, conditions(roots))
        self._bind_leaves(roots, scope)
        scope.compute(roots)
        for store in step.row:
            scope.lines.append(self._store(store, scope))
        self.open("")
        self.add(*scope.lines)
        self.close()

    def _bind_leaves(self, roots: Iterable[Scalar], scope: Scope) -> None:
        for node in postorder(roots):
            if isinstance(node, Total):
                scope.bind(node, self._totals[node.accumulator])

    def _store(self, store: Store, scope: Scope) -> str:
        dtype = self.dtypes[store.buffer]
        value = stored(scope.name(store.value), store.value.dtype, dtype)
        return f"{store.buffer}[{scope.index(store.index)}] = {value};"

    # -- one pass over the inner loops -----------------------------------------------------------------------------

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
        accumulators = self._accumulators_of(step)
        points = Scope(row, self.counter, needed)
        points.lines = []
        self._bind_kept(roots, points)
        points.compute(roots)
        for loop in inner[:-1]:
            self._loop(loop, *(bounds if bounds and loop == inner[0] else ()))
        if inner:
            self._innermost(step, points, accumulators, bounds if len(inner) == 1 else None)
        else:
            self.open("")
            self.add(*points.lines, *self._statements(step.points, points, {}))
            self.close()
        self.close(max(0, len(inner) - 1))

    def _innermost(
        self,
        step: Pass,
        points: Scope,
        accumulators: list[Accumulator],
        bounds: tuple[str, str] | None,
    ) -> None:
        loop = self.kernel.inner[-1]
        begin, end = bounds or ("0", size_text(loop.extent))
        in_parts = any(accumulator.splits for accumulator in accumulators) and self._is_long()
        long = not isinstance(loop.extent, int) or loop.extent > 2 * PART
        if in_parts and long:
            self.open(f"for (int64_t part = {begin}; part < {end}; part += {PART})")
            self.add(f"const int64_t part_end = {end} - part < {PART} ? {end} : part + {PART};")
            begin, end = "part", "part_end"
        names = {a.item.accumulator: a.partial if in_parts else a.name for a in accumulators}
        if in_parts:
            self.add(*(f"{a.type} {a.partial} = {a.start};" for a in accumulators if a.splits))
        clauses = [c for a in accumulators if not a.searches for c in a.clauses(names[a.item.accumulator])]
        if not any(a.searches for a in accumulators):
            self.add(" ".join(["#pragma omp simd", *clauses, *self._bad()]))
        self._loop(loop, begin, end)
        self.add(*points.lines, *self._statements(step.points, points, names))
        self.close()
        if in_parts:
            self.add(*(line for a in accumulators if a.splits for line in a.join(a.partial, "")))
        if in_parts and long:
            self.close()

    def _is_long(self) -> bool:
        """Whether a row has enough terms for a sum to be made of partial sums."""
        if len(self.kernel.inner) > 1:
            return True
        extent = self.kernel.inner[-1].extent
        return not isinstance(extent, int) or extent > 2 * PART

    def _statements(self, statements: Iterable[Statement], scope: Scope, names: dict[int, str]) -> list[str]:
        lines: list[str] = []
        for statement in statements:
            match statement:
                case Store():
                    lines.append(self._store(statement, scope))
                case Keep(slot, value):
                    lines.append(f"kept{slot}[{self._inner_position()}] = {scope.name(value)};")
                case Accumulate(accumulator, _, value, _, position):
                    where = "" if position is None else scope.index(position)
                    found = self.accumulators[accumulator]
                    lines += found.step(scope.name(value), where, names.get(accumulator, found.name))
        return lines

    def _inner_position(self) -> str:
        inner = self.kernel.inner
        index = flatten([as_index(loop) for loop in inner], [loop.extent for loop in inner])
        return Scope(None, self.counter, {}).index(index)

    def _moving(self, roots: Sequence[Scalar], needed: dict[Scalar, set[Condition]]) -> set[Scalar]:
        """Scalars to compute at every point: those that change along the inner loops, or must be protected
        there.
        """
        found: set[Scalar] = set()
        for node in postorder(roots):
            moves = isinstance(node, Kept) or any(
                variable in self.inner for index in indices_of(node) for variable in index.variables()
            )
            guarded = must_be_protected(node) and frozenset() not in needed[node]
            if moves or guarded or any(operand in found for operand in operands(node)):
                found.add(node)
        return found

    # -- kept values -----------------------------------------------------------------------------------------------

    def _kept_types(self) -> dict[int, str]:
        return {
            item.slot: COMPUTED[item.value.dtype]
            for item in statements_of(self.kernel.passes)
            if isinstance(item, Keep)
        }

    def _kept_arrays(self) -> None:
        count = extent_product(self.kernel.inner)
        for slot, kind in self._kept_types().items():
            if isinstance(count, int) and count <= STACK_ELEMENTS:
                self.add(f"alignas(64) {kind} kept{slot}[{count}];")
                continue
            self.add(f"alignas(64) {kind} kept{slot}_stack[{STACK_ELEMENTS // 2}];")
            need = size_text(count)
            self.add(
                f"{kind}* const kept{slot} = {need} <= {STACK_ELEMENTS // 2} ? kept{slot}_stack"
                f" : ({kind}*)__builtin_malloc(sizeof({kind}) * (uint64_t)({need}));"
            )

    def _free_kept(self) -> None:
        count = extent_product(self.kernel.inner)
        if isinstance(count, int) and count <= STACK_ELEMENTS:
            return
        for slot in self._kept_types():
            self.add(f"if (kept{slot} != kept{slot}_stack) __builtin_free(kept{slot});")

    def _bind_kept(self, roots: Iterable[Scalar], scope: Scope) -> None:
        for node in postorder(roots):
            if isinstance(node, Kept):
                scope.bind(node, f"kept{node.slot}[{self._inner_position()}]")

    # -- a reduction of everything ---------------------------------------------------------------------------------

    def _sliceable(self) -> bool:
        extent = self.kernel.inner[0].extent if self.kernel.inner else 1
        total = extent_product(self.kernel.inner)
        big = not isinstance(total, int) or total >= PARALLEL_FROM
        searches = any(accumulator.searches for accumulator in self.accumulators.values())
        return len(self.kernel.passes) == 1 and big and not searches and not _is_small(extent, 2)

    def _everything_in_slices(self) -> None:
        step = self.kernel.passes[0]
        accumulators = self._accumulators_of(step)
        extent = size_text(self.kernel.inner[0].extent)
        for a in accumulators:
            self.add(f"{a.type} slices_{a.name}[{SLICES}];")
            if a.tracks_nan:
                self.add(f"int32_t slices_{a.name}_nan[{SLICES}];")
        self.add(f"const int64_t length = ({extent} + {SLICES - 1}) / {SLICES};")
        self._parallel([], extra=self._bad())
        self.open(f"for (int64_t slice = 0; slice < {SLICES}; ++slice)")
        self.add(
            f"const int64_t begin = slice * length < {extent} ? slice * length : {extent};",
            f"const int64_t end = begin + length < {extent} ? begin + length : {extent};",
        )
        for a in accumulators:
            self.add(*a.declarations())
        self._pass_loops(step, Scope(None, self.counter, {}), bounds=("begin", "end"))
        for a in accumulators:
            self.add(f"slices_{a.name}[slice] = {a.name};")
            if a.tracks_nan:
                self.add(f"slices_{a.name}_nan[slice] = {a.name}_nan;")
        self.close()
        self._join_slices(accumulators)
        row = Scope(None, self.counter, {})
        self._bind_totals(accumulators, row)
        self._row_stores(step, row)

    def _join_slices(self, accumulators: list[Accumulator]) -> None:
        for a in accumulators:
            self.add(*a.declarations())
        self.open(f"for (int64_t slice = 0; slice < {SLICES}; ++slice)")
        for a in accumulators:
            if a.tracks_nan:
                self.add(f"{a.name}_nan |= slices_{a.name}_nan[slice];")
                a_join = a.join(f"slices_{a.name}", "[slice]")[:1]
            else:
                a_join = a.join(f"slices_{a.name}", "[slice]")
            self.add(*a_join)
        self.close()

    # -- neighbouring rows side by side ----------------------------------------------------------------------------

    def _rows_side_by_side(self) -> None:
        *around, lane_loop = self.kernel.outer
        self._parallel([*around, LoopVar("block", _blocks(lane_loop.extent))], extra=self._bad())
        for loop in around:
            self._loop(loop)
        extent = size_text(lane_loop.extent)
        self.open(f"for (int64_t block = 0; block < {extent}; block += {LANES})")
        self.add(f"const int64_t width = {extent} - block < {LANES} ? {extent} - block : {LANES};")
        known: dict[Scalar, str] = {}
        for step in self.kernel.passes:
            self._lane_pass(step, known)
        self.close(len(self.kernel.outer))

    def _lanes(self, body: Callable[[], None], clauses: Sequence[str] = (), simd: bool = True) -> None:
        if simd:
            self.add(" ".join(["#pragma omp simd", *clauses]))
        self.open("for (int64_t lane = 0; lane < width; ++lane)")
        self.add(f"const int64_t {self.kernel.outer[-1].name} = block + lane;")
        body()
        self.close()

    def _lane_pass(self, step: Pass, known: dict[Scalar, str]) -> None:
        accumulators = self._accumulators_of(step)
        for accumulator in accumulators:
            self.add(*accumulator.declarations(f"[{LANES}]"))
            self._totals[accumulator.item.accumulator] = accumulator.result("[lane]")
        if accumulators:
            self._lanes(lambda: self.add(*(line for a in accumulators for line in a.resets("[lane]"))))
        if step.points:
            self._row_arrays(step, known)
            for loop in self.kernel.inner:
                self._loop(loop)
            simd = not any(a.searches for a in accumulators)
            self._lanes(lambda: self._lane_statements(step.points, known), self._bad(), simd)
            self.close(len(self.kernel.inner))
        if step.row:
            self._lanes(lambda: self._lane_statements(step.row, known), self._bad())

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
                    if operand not in moving and isinstance(operand, Apply) and operand not in known
                )
        if not wanted:
            return
        scope = Scope(None, self.counter, needed)
        self._bind_lane_leaves(list(wanted), scope, known)
        scope.compute(wanted)
        for node in wanted:
            self.counter[0] += 1
            name = f"r{self.counter[0]}"
            self.add(f"{COMPUTED[node.dtype]} {name}[{LANES}];")
            scope.lines.append(f"{name}[lane] = {scope.name(node)};")
            known[node] = f"{name}[lane]"
        self._lanes(lambda: self.add(*scope.lines), self._bad())

    def _lane_statements(self, statements: Sequence[Statement], known: dict[Scalar, str]) -> None:
        roots = [root for statement in statements for root in roots_of(statement)]
        scope = Scope(None, self.counter, conditions(roots))
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
                    self.add(*found.step(scope.name(value), where, found.name, "[lane]"))
                case Keep():
                    raise AssertionError("values are kept only where rows are reduced one by one")

    def _bind_lane_leaves(self, roots: Iterable[Scalar], scope: Scope, known: dict[Scalar, str]) -> None:
        for node in postorder(roots):
            if isinstance(node, Total):
                scope.bind(node, self._totals[node.accumulator])
            elif node in known:
                scope.bind(node, known[node])


def _is_small(extent: IntLike, bound: int) -> bool:
    return isinstance(extent, int) and extent < bound


def _blocks(extent: IntLike) -> IntLike:
    return (extent + (LANES - 1)) // LANES


def _collapse(loops: Sequence[LoopVar]) -> int:
    """How many loops to spread over threads together: enough for 64 pieces."""
    pieces, count = 1, 0
    for loop in loops:
        count += 1
        pieces *= loop.extent if isinstance(loop.extent, int) else 64
        if pieces >= 64:
            break
    return count
