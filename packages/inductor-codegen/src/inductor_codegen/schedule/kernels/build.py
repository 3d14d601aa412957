"""Building a kernel: from a group of values to loops, passes and parameters under canonical names."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, ShapeEnv, symbol
from inductor_codegen.ir.facts.index_facts import asks
from inductor_codegen.ir.facts.size_bounds import least_of
from inductor_codegen.ir.index import Atom, Index, LoopVar, as_index
from inductor_codegen.ir.kernel import (
    Access,
    Accumulate,
    BufferParameter,
    FloatParameter,
    Kernel,
    Parameter,
    Pass,
    SizeParameter,
    Statement,
    Store,
    Vector,
    extent_product,
)
from inductor_codegen.ir.printer import print_kernel
from inductor_codegen.ir.scalar import FloatValue, Load, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import (
    Rebuilder,
    indices_of,
    postorder,
    roots_of,
    statement_indices,
    statements_of,
)
from inductor_codegen.lower.values import Lowered
from inductor_codegen.schedule.fusion.groups import Group, Position
from inductor_codegen.schedule.kernels.evaluate import Evaluator
from inductor_codegen.schedule.kernels.loops import (
    across_rows,
    by_stride,
    cuts,
    hint,
    join_short_rows,
    merge,
    replace_loops,
    vector_loop,
)
from inductor_codegen.schedule.kernels.passes import keep_between, split_passes, stored_late
from inductor_codegen.schedule.kernels.points import Points
from inductor_codegen.schedule.kernels.short_rows import are_side_by_side
from inductor_codegen.schedule.kernels.size_names import SizeRenamer, symbols_of
from inductor_codegen.schedule.kernels.unrolling import turns

IN_CACHE = 4096
"""Points of a row up to which what a pass has loaded is still in the nearest cache in the next."""

KEPT_ACROSS = 16384
"""Points of rows side by side up to which they keep what a pass has computed. That of a vector of longer rows would
leave the nearest caches, and be as much memory as a tensor takes."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with what it is called with: program buffers, sizes and floats in the order of its
    parameters.
    """

    kernel: Kernel
    buffers: tuple[str, ...]
    sizes: tuple[IntLike, ...]
    floats: tuple[str, ...]
    where: UserLocation | None


@dataclass(slots=True)
class _Body:
    """What a group computes, before loops are ordered."""

    outer: list[LoopVar]
    inner: list[LoopVar]
    stores: list[Store]
    row_stores: list[Store]
    accumulations: list[Accumulate]

    def indices(self) -> list[Index]:
        """Every distinct index expression, those of stores first."""
        found: dict[Index, None] = {}
        statements: tuple[Statement, ...] = (*self.stores, *self.row_stores, *self.accumulations)
        for statement in statements:
            found.update(dict.fromkeys(statement_indices(statement)))
        for node in postorder(root for statement in statements for root in roots_of(statement)):
            found.update(dict.fromkeys(indices_of(node)))
        return list(found)


def build_kernel(group: Group, lowered: Lowered, env: ShapeEnv) -> Launch:
    """The kernel of a group. Cuts the group's domain further where that frees indices of divisions."""
    builder = ScalarBuilder()
    for _ in range(6):
        body = _evaluate(group, lowered, env, builder)
        wanted = cuts(body.indices())
        axes = [(int(name[1:]), size) for name, size in wanted.items()]
        if not axes:
            break
        for axis, size in sorted(axes, reverse=True, key=lambda pair: pair[0]):
            group.domain.cut(axis, size)
    return _Finisher(group, lowered, env, builder).finish(body)


def _evaluate(group: Group, lowered: Lowered, env: ShapeEnv, builder: ScalarBuilder) -> _Body:
    domain = group.domain
    evaluator = Evaluator(lowered, env, builder, set(group.members))
    points = Points(group, lowered)
    evaluator.tap_loop = points.tap_loop
    stores: list[Store] = []
    row_stores: list[Store] = []
    for places in turns(group, points.unrolled):
        points.fixed = places
        for number in sorted(group.members):  # in order: keeps the recursion of the evaluator shallow
            value = lowered.values[number]
            known = group.members[number]
            if number in group.reductions:
                evaluator.reduction(value, points.full(value.domain))
            elif Position.FULL in known:
                evaluator.value(number, points.full(value.sizes))
            elif Position.ROW in known:
                evaluator.value(number, points.row(value.sizes))
        for number, position in sorted(group.stored.items()):
            value = lowered.values[number]
            point = points.full(value.sizes) if position is Position.FULL else points.row(value.sizes)
            store = Store(value.name, value.layout.address(point), evaluator.value(number, point))
            at_points = position is Position.FULL and points.tap_loop is None
            (stores if at_points else row_stores).append(store)
    kept = [True] * len(domain.dims) if domain.outer is None else domain.outer
    if group.device.type == "cuda" and not group.reductions and not (row_stores and not group.windows):
        kept = [True] * len(domain.dims)  # a program takes any of the points, in the order of memory
    loops = [(loop, kept[axis]) for axis, loop in enumerate(points.loops) if axis not in points.unrolled]
    outer = [loop for loop, keep in loops if keep]
    inner = [loop for loop, keep in loops if not keep]
    inner += [] if points.tap_loop is None else [points.tap_loop]
    return _Body(outer, inner, stores, row_stores, evaluator.accumulations)


class _Finisher:
    """Orders and merges loops, forms passes, and renames everything canonically."""

    def __init__(self, group: Group, lowered: Lowered, env: ShapeEnv, builder: ScalarBuilder) -> None:
        self._group = group
        self._lowered = lowered
        self._env = env
        self._make = builder

    def finish(self, body: _Body) -> Launch:
        passes = split_passes(body.stores, body.row_stores, body.accumulations)
        vector = self._order(body, len(passes))
        indices = body.indices()
        outer, replaced = merge(body.outer, indices)
        if body.accumulations or vector is Vector.OUTER:
            inner, more = merge(body.inner, indices)
            replaced |= more
            if vector is Vector.OUTER and self._group.device.type == "cpu":
                outer, more = join_short_rows(outer, [replace_loops(index, replaced) for index in indices], 0)
                replaced = {old: replace_loops(new, more) for old, new in replaced.items()} | more
        elif vector is Vector.INNER and not body.inner and outer:
            if self._group.device.type == "cpu":
                outer, more = join_short_rows(outer, [replace_loops(index, replaced) for index in indices], 1)
                replaced = {old: replace_loops(new, more) for old, new in replaced.items()} | more
            inner, outer = outer[-1:], outer[:-1]
        else:
            inner = body.inner
        return self._canonical(outer, inner, vector, replaced, passes)

    def _order(self, body: _Body, passes: int) -> Vector:
        """Sort the loops by the strides of what they touch; the vector loop last in its list."""
        loops = [*body.outer, *body.inner]
        accesses = self._accesses(body)
        if not loops:
            return Vector.INNER
        chosen = vector_loop(loops, accesses, self._env)
        if not body.accumulations and not body.row_stores:
            body.outer, body.inner = loops, []  # nothing is reduced: rows need not stay together
        elif (
            body.accumulations and self._group.device.type == "cuda" and passes == 1 and chosen in body.inner
        ):
            chosen = across_rows(body.outer, loops, accesses, self._env) or chosen
        lead = accesses[0] if accesses else Index(0)
        by_memory = by_stride(body.outer, lead, self._env)
        if (
            chosen in body.inner
            and self._group.device.type == "cpu"
            and are_side_by_side(
                body.inner,
                by_memory,
                [*body.stores, *body.accumulations],
                body.row_stores,
                body.indices(),
                self._env,
            )
        ):
            chosen = by_memory[-1]
        body.outer = _last(by_memory, chosen)
        if all(
            item.position is None for item in body.accumulations
        ):  # else the first of equals must come first
            body.inner = _last(by_stride(body.inner, lead, self._env), chosen)
        by_rows = bool(body.accumulations or (body.row_stores and self._group.device.type == "cpu"))
        return Vector.OUTER if by_rows and chosen in body.outer else Vector.INNER

    def _accesses(self, body: _Body) -> list[Index]:
        """Indices of stores and loads that run over all loops."""
        found = [store.index for store in body.stores]
        statements: tuple[Statement, ...] = (*body.stores, *body.row_stores, *body.accumulations)
        for node in postorder(root for statement in statements for root in roots_of(statement)):
            if isinstance(node, Load):
                found.append(node.index)
        return found or [store.index for store in body.row_stores]

    def _canonical(
        self,
        outer: list[LoopVar],
        inner: list[LoopVar],
        vector: Vector,
        replaced: dict[LoopVar, Index],
        passes: tuple[Pass, ...],
    ) -> Launch:
        names = {loop: LoopVar(f"i{k}", loop.extent) for k, loop in enumerate((*outer, *inner))}
        variables = {old: _renamed(new, names) for old, new in replaced.items()}
        variables |= {old: as_index(new) for old, new in names.items()}
        parameters = _Parameters(passes, self._lowered, self._group)

        rebuild = _Renamer(self._make, self._env, variables, parameters.buffers, parameters.floats)
        new_passes = tuple(
            Pass(tuple(map(rebuild.point, step.points)), tuple(map(rebuild.store, step.row)))
            for step in passes
        )
        inner_loops = tuple(names[loop] for loop in inner)
        points = hint(extent_product(inner_loops), self._env)
        near = points <= IN_CACHE and vector is Vector.INNER
        if vector is Vector.INNER or points <= KEPT_ACROSS:
            new_passes = keep_between(new_passes, set(inner_loops), self._make, self._env, near)
        if self._group.device.type == "cpu" and vector is Vector.INNER:
            new_passes = stored_late(new_passes, set(inner_loops))
        outer_loops = tuple(names[loop] for loop in outer)
        sizes = sorted(symbols_of(new_passes, (*outer_loops, *inner_loops)))
        own = SizeRenamer(self._make, self._env, sizes)
        if own.names != sizes:
            outer_loops, inner_loops = tuple(map(own.loop, outer_loops)), tuple(map(own.loop, inner_loops))
            new_passes = tuple(map(own.run, new_passes))
        comments = comments_of(self._group, self._lowered)
        chooses = self._group.device.type == "cpu" and asks(new_passes)
        least = [least_of(size, self._env) if chooses else None for size in sizes]
        listed = (*parameters.listed, *map(SizeParameter, own.names, least), *parameters.listed_floats)
        windows = bool(self._group.windows)
        kernel = Kernel("", listed, outer_loops, inner_loops, vector, new_passes, comments, windows=windows)
        kernel = replace(kernel, name=kernel_name(kernel))
        where = self._lowered.values[max(self._group.members)].where
        return Launch(
            kernel,
            tuple(parameters.buffers),
            tuple(symbol(s) for s in sizes),
            tuple(parameters.floats),
            where,
        )


def kernel_name(kernel: Kernel) -> str:
    """``kernel_`` and the first 16 hexadecimal digits of the SHA-256 of the kernel's text."""
    return f"kernel_{hashlib.sha256(print_kernel(kernel, '').encode()).hexdigest()[:16]}"


def _last(loops: list[LoopVar], chosen: LoopVar) -> list[LoopVar]:
    return [*(loop for loop in loops if loop != chosen), *(loop for loop in loops if loop == chosen)]


def _renamed(index: Index, names: dict[LoopVar, LoopVar]) -> Index:
    return replace_loops(index, {old: as_index(new) for old, new in names.items()})


class _Renamer(Rebuilder):
    """Replaces loop variables, buffer names and the names of floats."""

    def __init__(
        self,
        make: ScalarBuilder,
        env: ShapeEnv,
        variables: Mapping[LoopVar, Index],
        buffers: Mapping[str, str],
        floats: Mapping[str, str],
    ) -> None:
        def leaf(node: Scalar) -> Scalar | None:
            return make.float_value(floats[node.name], node.dtype) if isinstance(node, FloatValue) else None

        def atom(found: Atom) -> Index | None:
            return variables.get(found) if isinstance(found, LoopVar) else None

        super().__init__(make, env, leaf, atom)
        self._make = make
        self._buffers = buffers

    def _node(self, node: Scalar) -> Scalar:
        if isinstance(node, Load):
            return self._make.load(self._buffers[node.buffer], self.index(node.index), node.dtype)
        return super()._node(node)

    def point(self, statement: Statement) -> Statement:
        """A statement with all its names replaced."""
        return self.store(statement) if isinstance(statement, Store) else self.statement(statement)

    def store(self, statement: Store) -> Store:
        """A store with all its names replaced."""
        return Store(
            self._buffers[statement.buffer], self.index(statement.index), self.scalar(statement.value)
        )


class _Parameters:
    """Program buffers and floats in order of first use, with the names that the kernel knows them by."""

    def __init__(self, passes: tuple[Pass, ...], lowered: Lowered, group: Group) -> None:
        self.buffers: dict[str, str] = {}
        self.floats: dict[str, str] = {}
        loaded: set[str] = set()
        stored: set[str] = set()
        by_name = {lowered.values[number].name: lowered.values[number] for number in group.stored}
        dtypes = {}
        for statement in statements_of(passes):
            for node in postorder(roots_of(statement)):
                if isinstance(node, Load) and node.buffer not in self.buffers:
                    self.buffers[node.buffer] = f"in{len(loaded)}"
                    loaded.add(node.buffer)
                    dtypes[node.buffer] = node.dtype
                elif isinstance(node, FloatValue):
                    self.floats.setdefault(node.name, f"f{len(self.floats)}")
        for statement in statements_of(passes):
            if isinstance(statement, Store) and statement.buffer not in stored:
                self.buffers[statement.buffer] = f"out{len(stored)}"
                stored.add(statement.buffer)
                dtypes[statement.buffer] = by_name[statement.buffer].dtype
        self.listed: tuple[Parameter, ...] = tuple(
            BufferParameter(name, dtypes[buffer], Access.WRITE if buffer in stored else Access.READ)
            for buffer, name in self.buffers.items()
        )
        self.listed_floats: tuple[Parameter, ...] = tuple(
            FloatParameter(name) for name in self.floats.values()
        )


def comments_of(group: Group, lowered: Lowered) -> tuple[str, ...]:
    """One line for each value: what computes it and where the user wrote it."""
    lines = []
    for number in sorted(group.members):
        value = lowered.values[number]
        formula = value.formula
        what = (
            getattr(formula, "op", None) or getattr(formula, "kind", None) or type(formula).__name__.lower()
        )
        lines.append(f"{value.name}: {what}" + (f"  {value.where}" if value.where else ""))
    return tuple(lines)
