"""Grouping: which values are computed together in one kernel, which of them are stored, and in what order
kernels run.

Values are placed from the last to the first, so that all consumers of a value are placed before it. A value
joins the group of its consumers if it runs over the same points (``FULL``), or over a row's outer dimensions
(``ROW``); cheap values are computed again in each group; what several groups or a library call read is stored
by one of them.
"""

from __future__ import annotations

from dataclasses import field

from fx_interface.operator_facts.collectives import is_wait
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.operator_facts.random_draws import draws
from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.lower.values import Depthwise, Fill, Iota, Lowered, Placed, Reduction, Value, placed_in
from inductor_codegen.schedule.fusion.cost import TreeCost, tree_costs
from inductor_codegen.schedule.fusion.cpu_groups import has_long_columns
from inductor_codegen.schedule.fusion.data_dependence import Tokens
from inductor_codegen.schedule.fusion.domain import Domain
from inductor_codegen.schedule.fusion.edges import Edge, Edges, Match, reads_across, row_source
from inductor_codegen.schedule.fusion.gpu_groups import computed_with_windows, is_split, takes_windows
from inductor_codegen.schedule.fusion.groups import Group, Grouping, Position
from inductor_codegen.schedule.fusion.merging import MAX_MEMBERS, Merger
from inductor_codegen.schedule.fusion.neighbours import Neighbours
from inductor_codegen.schedule.fusion.order import Dependencies


@dataclass(slots=True)
class _Uses:
    """Who reads one value: computed values by edge, library calls by unit, and outputs."""

    reads: list[tuple[int, Edge]] = field(default_factory=list)
    calls: set[int] = field(default_factory=set)
    output: bool = False
    stored: bool = False

    @property
    def forced(self) -> bool:
        """Whether something outside of kernels, or a kernel that goes over it in its own way, needs the value in
        memory."""
        return self.output or self.stored or bool(self.calls)


def group_values(lowered: Lowered) -> Grouping:
    """Place every computed value that something reads."""
    return _Grouper(lowered).run()


class _Grouper:
    def __init__(self, lowered: Lowered) -> None:
        self.lowered = lowered
        self.edges = list(map(Edges().of, lowered.values))
        self.uses = [_Uses() for _ in lowered.values]
        self.groups: dict[int, Group] = {}
        self.homes: list[list[Group]] = [[] for _ in lowered.values]
        self.few: set[tuple[int, int]] = set()  # value and unit, where it is computed at few of its points
        self.dependencies = Dependencies(exact=any(v.device.type == "cuda" for v in lowered.values))
        self.call_units = {id(call): unit for unit, call in enumerate(lowered.calls)}
        self.next_unit = len(lowered.calls)
        self.merger = Merger(lowered, self.groups, self.homes, self.dependencies)
        self._collect_uses()
        self.with_windows = computed_with_windows(lowered, self.edges, self._is_read_once)
        forced = {number for number, uses in enumerate(self.uses) if uses.forced}
        self.costs: list[TreeCost] = tree_costs(lowered, self.edges, forced)

    def _collect_uses(self) -> None:
        for value, edges in zip(self.lowered.values, self.edges, strict=True):
            for source, edge in edges:
                self.uses[source].reads.append((value.number, edge))
                self.uses[source].stored |= edge.stored
        for unit, call in enumerate(self.lowered.calls):
            for placed in placed_in((call.args, tuple(arg for _, arg in call.kwargs))):
                self.uses[placed.source].calls.add(unit)
            made = [number for number in call.results if number is not None]
            self.dependencies.extend(unit, min(made, default=len(self.lowered.values)))
            for number in made:
                self.dependencies.extend(unit, number)
            if call.token is not None:
                self.dependencies.extend(unit, call.token)
        self._collect_waiting()
        self._keep_order()
        for output in self.lowered.outputs:
            if isinstance(output, Placed):
                self.uses[output.source].output = True

    def _collect_waiting(self) -> None:
        """What computes with numbers from data reads, as it were, their tokens."""
        tokens = Tokens(self.lowered)
        if not tokens:
            return
        for value in self.lowered.values:
            if value.formula is not None:
                for token in tokens.awaited_by(value):
                    self.uses[token].reads.append((value.number, Edge(Match.OTHER)))
        for unit, call in enumerate(self.lowered.calls):
            made = [number for number in (*call.results, call.token) if number is not None]
            sizes = tuple(self.lowered.values[number].sizes for number in made)
            for token in tokens.before(
                min(made, default=len(self.lowered.values)), (call.args, call.kwargs, sizes)
            ):
                self.uses[token].calls.add(unit)

    def _keep_order(self) -> None:
        """Random numbers are drawn, and what unknown operators do besides happens, in the program's order."""
        last: int | None = None
        for unit, call in enumerate(self.lowered.calls):
            unknown = is_opaque(call.op) and not is_wait(call.op)
            if unknown or draws(call.op, call.args, dict(call.kwargs)):
                if last is not None:
                    self.dependencies.add(unit, last)
                last = unit

    def run(self) -> Grouping:
        for value in reversed(self.lowered.values):
            uses = self.uses[value.number]
            if value.call is not None:
                self._need(value, self.call_units[id(value.call)], self._positions(value))
            elif value.formula is not None and (uses.forced or uses.reads):
                self._place(value, uses)
        Neighbours(self.lowered, self.edges, self.groups, self.merger, self.dependencies).merge()
        return Grouping(self.groups, tuple(self.dependencies.sorted()))

    def _place(self, value: Value, uses: _Uses) -> None:
        positions = self._positions(value)
        if not positions and not uses.forced:
            return  # only dead values read it
        if isinstance(value.formula, Reduction):
            self._place_reduction(value, uses, positions)
        else:
            self._place_pointwise(value, uses, positions)

    def _need(self, value: Value, home: int, positions: dict[int, tuple[set[Position], bool]]) -> None:
        """Everyone who reads ``value`` elsewhere runs after ``home``."""
        for unit in (*positions, *self.uses[value.number].calls):
            self.dependencies.add(unit, home)

    # -- positions -------------------------------------------------------------------------------------------------

    def _positions(self, value: Value) -> dict[int, tuple[set[Position], bool]]:
        """For each group that reads ``value`` where it stands there, and whether it would be computed more
        than once a point.
        """
        found: dict[int, tuple[set[Position], bool]] = {}
        for consumer, edge in self.uses[value.number].reads:
            reader = self.lowered.values[consumer]
            for group in self.homes[consumer]:
                before = found.get(group.unit)
                known, repeats = (set(), False) if before is None else before
                for base in (Position.FULL,) if consumer in group.reductions else group.members[consumer]:
                    position = self._compose(base, value, reader, edge, group)
                    repeats = repeats or (position is Position.OTHER and edge.repeats)
                    known.add(position)
                found[group.unit] = (known, repeats)
        return found

    def _compose(self, base: Position, value: Value, reader: Value, edge: Edge, group: Group) -> Position:
        if value.device != group.device or edge.match is Match.OTHER or base is Position.OTHER:
            return Position.OTHER
        if edge.match is Match.SAME:
            runs = (
                group.domain.align(value.sizes)
                if base is Position.FULL
                else group.domain.align_row(value.sizes)
            )
            return Position.OTHER if runs is None else base
        if base is Position.ROW:
            return Position.OTHER
        axes = group.domain.select(reader.domain, edge.kept)
        if axes is None or not self._splits(value, axes, group):
            return Position.OTHER
        return Position.ROW if group.domain.align_row(value.sizes) is not None else Position.OTHER

    def _splits(self, value: Value, axes: tuple[int, ...], group: Group) -> bool:
        """Whether ``axes`` are the group's outer dimensions, or can become so because ``value`` comes from
        such a reduction.
        """
        domain = group.domain
        if domain.outer is not None:
            return domain.outer_axes == axes
        if group.windows:
            return False
        reduction = row_source(value.number, 8, self.lowered, self.edges)
        if reduction is None or any(Position.ROW in known for known in group.members.values()):
            return False
        assert isinstance(reduction.formula, Reduction)
        kept = [dim for dim in range(len(reduction.domain)) if dim not in reduction.formula.dims]
        chosen = domain.select(reduction.domain, kept)
        if chosen is None or domain.select(reduction.domain, range(len(reduction.domain))) is None:
            return False
        if chosen != axes or not axes:  # no axes: a reduction of everything gains nothing from a second pass
            return False
        domain.split(axes)
        return True

    # -- placing ---------------------------------------------------------------------------------------------------

    def _place_pointwise(
        self, value: Value, uses: _Uses, positions: dict[int, tuple[set[Position], bool]]
    ) -> None:
        cheap = self.costs[value.number].cheap
        trivial = isinstance(value.formula, (Fill, Iota)) or (
            not uses.forced and self.costs[value.number].wider
        )
        few = set() if uses.forced else self._read_at_few_points(value, positions)
        if trivial or (not uses.forced and (cheap or len(positions) <= 1 + len(few))):
            outside = [
                unit
                for unit, (known, repeats) in positions.items()
                if not (trivial or unit in few)
                and not self._absorbs(value, self.groups[unit], known, repeats, cheap)
            ]
            if outside and not cheap:
                outside += few  # it is in memory then
            self.few.update((value.number, unit) for unit in few)
            for unit, (known, _) in positions.items():
                if unit not in outside:
                    self._join(value, self.groups[unit], known)
            if not outside and not uses.forced:
                return
            positions = {unit: positions[unit] for unit in outside}
        self._place_stored(value, uses, positions)

    def _read_at_few_points(self, value: Value, positions: dict[int, tuple[set[Position], bool]]) -> set[int]:
        """The groups on a CPU that look up far fewer elements of ``value`` than it has."""
        return {
            unit
            for unit, (known, _) in positions.items()
            if known == {Position.OTHER}
            and value.device.type == "cpu"
            and len(self.groups[unit].members) < MAX_MEMBERS
            and all(
                edge.few or (reader, unit) in self.few
                for reader, edge in self.uses[value.number].reads
                if self.groups[unit] in self.homes[reader]
            )
        }

    def _absorbs(self, value: Value, group: Group, known: set[Position], repeats: bool, cheap: bool) -> bool:
        """Whether the group computes the value itself without storing it."""
        if len(group.members) >= MAX_MEMBERS:
            return False
        if isinstance(value.formula, Depthwise):
            return takes_windows(group, known)
        if known in ({Position.FULL}, {Position.ROW}):
            return True
        if self._needs_divisions(value, group):
            return False
        return cheap or (
            known == {Position.OTHER} and not repeats and len(self.uses[value.number].reads) == 1
        )

    def _needs_divisions(self, value: Value, group: Group) -> bool:
        """Whether the group would have to divide at every point to find the elements that ``value`` is computed from.

        ``y.t().reshape(other_sizes)``: positions in the result tell rows and columns of y by division. Eager has a
        copy there, too. A GPU's programs divide beside waiting for memory.
        """
        if value.device.type != "cpu" or group.domain.align(value.sizes) is not None:
            return False
        reads = (edge for reader, edge in self.uses[value.number].reads if group in self.homes[reader])
        same = any(edge.match is Match.SAME for edge in reads)
        return same and reads_across(value.number, 8, self.lowered, self.edges)

    def _place_stored(
        self, value: Value, uses: _Uses, positions: dict[int, tuple[set[Position], bool]]
    ) -> None:
        ends_reduction = self.costs[value.number].narrower  # which joins this group, and nothing else
        home = None if ends_reduction else self._home(value, uses, positions)
        group = home or self._new_group(value)
        position = Position.FULL if group.unit not in positions else next(iter(positions[group.unit][0]))
        self._join(value, group, {position})
        group.stored[value.number] = position
        self._need(value, group.unit, positions)
        if position is Position.FULL and not ends_reduction:
            readers = [unit for unit, (known, _) in positions.items() if known == {Position.FULL}]
            self.merger.merge_readers(group, readers)

    def _home(
        self, value: Value, uses: _Uses, positions: dict[int, tuple[set[Position], bool]]
    ) -> Group | None:
        """A reader's group that can also store the value for all others."""
        with_sum = value.number in self.with_windows
        for unit in sorted(positions, reverse=True):
            group = self.groups[unit]
            if (
                (with_sum and not takes_windows(group, positions[unit][0]))
                or positions[unit][0] not in ({Position.FULL}, {Position.ROW})
                or len(group.members) >= MAX_MEMBERS
                or self._is_row_of_points(value, positions[unit][0], group)
            ):
                continue
            others = [other for other in positions if other != unit]
            if not self.dependencies.reaches(unit, (*others, *uses.calls)):
                return group
        return None

    def _is_read_once(self, number: int) -> bool:
        return len(self.uses[number].reads) == 1 and not self.uses[number].forced

    def _is_row_of_points(self, value: Value, known: set[Position], group: Group) -> bool:
        """Whether a value would be stored once a row by a kernel that reduces nothing, or that cannot reduce what it is
        computed from: a GPU takes the points of such kernels in any order without that, and so does a CPU those of long
        rows that lie side by side."""
        if known != {Position.ROW}:
            return False
        if group.device.type != "cuda":
            return not group.reductions and has_long_columns(group, self.lowered)
        reductions = [self.lowered.values[number] for number in group.reductions]
        source = row_source(value.number, 8, self.lowered, self.edges) if not reductions else None
        reductions += [] if source is None else [source]  # it joins the group
        return not reductions or any(is_split(reduction, self.lowered) for reduction in reductions)

    def _place_reduction(
        self, value: Value, uses: _Uses, positions: dict[int, tuple[set[Position], bool]]
    ) -> None:
        assert isinstance(value.formula, Reduction)
        outer = [dim not in value.formula.dims for dim in range(len(value.domain))]
        home = self._reduction_home(value, uses, positions, outer)
        if home is None:
            home = self._new_group(value)
            home.domain = Domain(value.domain, outer)
        self._join(value, home, {Position.ROW})
        home.reductions.add(value.number)
        if uses.forced or any(unit != home.unit for unit in positions):
            home.stored[value.number] = Position.ROW
        self._need(value, home.unit, positions)
        self.merger.merge_siblings(value, home)

    def _reduction_home(
        self, value: Value, uses: _Uses, positions: dict[int, tuple[set[Position], bool]], outer: list[bool]
    ) -> Group | None:
        kept = [dim for dim, keep in enumerate(outer) if keep]
        apart = is_split(value, self.lowered)
        for unit in sorted(positions, reverse=True):
            group = self.groups[unit]
            others = [other for other in positions if other != unit]
            if apart and positions[unit][0] == {Position.ROW} and self._needs_another_pass(value, group):
                continue
            if group.device != value.device or self.dependencies.reaches(unit, (*others, *uses.calls)):
                continue
            known = positions[unit][0]
            if known == {Position.ROW} and group.domain.select(value.domain, kept) == group.domain.outer_axes:
                return group
            if known == {Position.FULL} and self._promote(group, value, outer):
                return group
        return None

    def _needs_another_pass(self, value: Value, group: Group) -> bool:
        """Whether something at the points of a group is computed from a row's total ``value``."""
        pending, seen = [value.number], {value.number}
        while pending:
            for consumer, _ in self.uses[pending.pop()].reads:
                known = group.members.get(consumer)
                if known is None or consumer in seen:
                    continue
                if consumer in group.reductions or known != {Position.ROW}:
                    return True
                seen.add(consumer)
                pending.append(consumer)
        return False

    def _promote(self, group: Group, value: Value, outer: list[bool]) -> bool:
        """Turn a group without reductions over a reduction's result into the epilogue of that reduction."""
        if group.domain.outer is not None or group.windows:
            return False
        domain = Domain(value.domain, outer)
        full = [n for n, known in group.members.items() if Position.FULL in known]
        if any(domain.align_row(self.lowered.values[number].sizes) is None for number in full):
            return False
        group.domain = domain
        for number in full:
            group.members[number] = {
                Position.ROW if position is Position.FULL else position for position in group.members[number]
            }
        group.stored = dict.fromkeys(group.stored, Position.ROW)
        return True

    def _new_group(self, value: Value) -> Group:
        group = Group(self.next_unit, Domain(value.sizes), value.device)
        self.next_unit += 1
        self.groups[group.unit] = group
        self.dependencies.extend(group.unit, value.number)
        return group

    def _join(self, value: Value, group: Group, known: set[Position]) -> None:
        group.members[value.number] = set(known)
        if isinstance(value.formula, Depthwise):
            group.windows.add(value.number)
        self.dependencies.extend(group.unit, value.number)
        if group not in self.homes[value.number]:
            self.homes[value.number].append(group)
