"""The values that a backward is given: what is saved, for as long as a later backward may read it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import torch

from aot_autograd.plan import BackwardPlan, JointPlan, Region, SavedInput, SavedOutput
from aot_autograd.runtime.gradients.incoming_gradients import known_sizes, new_tensor
from aot_autograd.runtime.saved import Kept, order_of, owned, reader, released

_current_task = torch._C._current_graph_task_id
_keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph
_OVERWRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: it is a result\n"
    "  of the compiled function itself"
)
_CAN_READ_EACH = hasattr(torch._C._autograd.SavedTensor, "unpack")
"""Whether this torch gives out saved tensors one by one."""


def _each_read(
    ctx: Any, plan: JointPlan, backward_plan: BackwardPlan, order: Sequence[tuple[bool, int]]
) -> tuple[list[Any], dict[int, RuntimeError]]:
    """The saved values as they are, in order, and for those that were overwritten autograd's words about that."""
    versions = dict(plan.versions)
    raw, kept = ctx._raw_saved_tensors, ctx.kept
    saved: list[Any] = []
    overwritten: dict[int, RuntimeError] = {}
    for slot, (source, (own, place)) in enumerate(zip(backward_plan.saved, order, strict=True)):
        if own:
            saved.append(kept[place])
            continue
        saved.append(raw[place].data)
        if isinstance(source, SavedOutput):  # autograd gives those out with their node only
            if saved[-1]._version != versions.get(source.index, 0):
                overwritten[slot] = RuntimeError(_OVERWRITTEN)
            continue
        try:
            raw[place].unpack()
        except RuntimeError as error:
            overwritten[slot] = error
    return saved, overwritten


Collected: TypeAlias = tuple[list[Any], bool, bool]
"""The saved values, in order; whether they are needed no more; whether they are the ones that were saved, or others in
their place, which no wanted gradient is computed with."""


class Choice(NamedTuple):
    """What a backward of chosen tensors is for: ``targets`` as bits, as ``BackwardPlan.saving`` has them, and all
    gradients that ``arrived``, also those that lead to none of these."""

    targets: int
    arrived: Sequence[Any]


_NOTHING: Final[Collected] = ([], False, True)
_ALL_TARGETS: Final = -1
_GONE: Final = Kept(None, [])


class Collector:
    """What lists the saved values before a backward of some results for some inputs, or refuses it.

    Autograd's node is one for all results and inputs, and lets go of what it has saved after the first backward that
    does not retain the graph. In eager each node lets go by itself. So what later backwards may need is kept until
    there is nothing left that they could read without being refused, or the node itself is gone. A backward is refused
    where it comes to a region of eager's graph in which an earlier one has let go. One that comes to none, after all
    others, reads nothing, and is computed with other values in the place of those that are gone. What was overwritten
    is refused where one of the results needs it, as eager does, and others stand in its place where none does.
    """

    def __init__(self, plan: JointPlan, backward_plan: BackwardPlan, positions: Sequence[int]) -> None:
        """``positions``: where the gradients of ``BackwardPlan.tangents`` arrive."""
        self._plan, self._backward_plan = plan, backward_plan
        self._flags = owned(plan, backward_plan)
        self._order = order_of(self._flags)
        self._count = sum(self._flags)
        self._positions = positions
        self._tangents = [1 << tangent.graph_index for tangent in backward_plan.tangents]
        self._saving, self._reading = backward_plan.saving, backward_plan.reading
        self._all = _union(self._tangents)
        self._needed_by = backward_plan.needed_by or (self._all,) * len(backward_plan.saved)
        self._has_nothing = not backward_plan.saved and not self._saving
        self._read = reader(plan, backward_plan)
        self._linked = bool(backward_plan.between)
        inputs = enumerate(backward_plan.saved)
        self._inputs = [slot for slot, s in inputs if isinstance(s, SavedInput) and s.index < plan.inputs]
        self._everything = (1 << len(self._saving)) - 1
        self._lets_all_go = bool(self._saving) and not self._is_read_after(self._everything)

    def __call__(self, ctx: Any, grads: Sequence[Any], complete: bool, choice: Choice | None) -> Collected:
        """``complete``: all gradients arrive. ``choice``: None where the backward is for everything."""
        if self._has_nothing:
            return _NOTHING
        if complete and choice is None and self._lets_all_go and getattr(ctx, "freed", None) is None:
            kept = ctx.kept
            saved = self._stored(ctx)
            if _keeps_graph():
                return saved, False, True
            ctx.freed, ctx.later = self._everything, self._gone(saved) if self._linked else _GONE
            if kept is None:
                return saved, False, True
            kept.clear()
            return saved, True, True
        arriving = [n for n, place in enumerate(self._positions) if complete or grads[place] is not None]
        arrived, targets = grads, _ALL_TARGETS
        if choice is not None:
            arrived, targets = choice.arrived, choice.targets
        came = _union(
            tangent
            for tangent, place in zip(self._tangents, self._positions, strict=True)
            if complete or arrived[place] is not None
        )
        return self._for_some(
            ctx, arriving, self._let_go(ctx, came, targets), _regions(self._reading, came, targets)
        )

    def _gone(self, saved: Sequence[Any]) -> Kept:
        """What is left where no backward of inputs reads what is ``saved``."""
        return Kept(None, [], {slot: saved[slot] for slot in self._inputs}) if self._linked else _GONE

    @staticmethod
    def is_finished(ctx: Any) -> bool:
        """Whether backwards have let go of all that was saved."""
        later: Kept | None = getattr(ctx, "later", None)
        return later is not None and later.saved is None

    def inputs(self, ctx: Any) -> Sequence[Any] | Mapping[int, Any]:
        """What is saved of the program's inputs, by slot, for as long as the node is there; all of it otherwise."""
        later: Kept | None = getattr(ctx, "later", None)
        if later is not None and later.inputs is not None:
            return later.inputs
        return self._read(ctx)

    def pass_between(self, ctx: Any, result: int, targets: int) -> None:
        """What a backward from a result to earlier ones refuses and lets go of, where the compiled backward does not
        run."""
        freed = self._let_go(ctx, 1 << result, targets)
        if not _keeps_graph():
            ctx.freed = freed

    def lead_between(self, ctx: Any, result: int, targets: Sequence[int]) -> list[bool]:
        """Whether a backward from a result gets to each of these earlier ones. It does not where it comes to a region
        that had let go, which the compiled backward will refuse; other regions on the way let go now."""
        freed: int = getattr(ctx, "freed", 0)
        before, led = self._freed_before(ctx, freed), []
        for target in targets:
            comes_to = _regions(self._saving, 1 << result, target)
            led.append(not comes_to & before)
            freed |= comes_to if led[-1] else 0
        if freed and not _keeps_graph():
            ctx.freed = freed
        return led

    def _freed_before(self, ctx: Any, freed: int) -> int:
        """The regions that had let go when the backward that runs came here first."""
        task, before = getattr(ctx, "freed_before", (-1, 0))
        if task != _current_task():
            before = freed
            ctx.freed_before = _current_task(), before
        found: int = before
        return found

    def _let_go(self, ctx: Any, results: int, targets: int) -> int:
        """The regions that have let go after a backward of these results for these targets, if that does not retain
        the graph; RuntimeError where it comes to one that had before."""
        comes_to = _regions(self._saving, results, targets)
        freed: int = getattr(ctx, "freed", 0)
        if comes_to & self._freed_before(ctx, freed):
            raise released()
        return freed | comes_to

    def _for_some(self, ctx: Any, arriving: Sequence[int], freed: int, reads: int) -> Collected:
        results = _union(self._tangents[number] for number in arriving)
        kept: Kept | None = getattr(ctx, "later", None)
        saved: list[Any] | None
        overwritten: Collection[int]
        if kept is None:
            saved, overwritten = self._stored_for(ctx, results)
        else:
            saved, overwritten = kept.saved, kept.overwritten(results, self._needed_by)
        ctx.overwritten = overwritten
        may_give_away = False
        if not _keeps_graph():
            ctx.freed = freed
            finished = saved is None or not self._is_read_after(freed)
            may_give_away = finished and kept is None and ctx.kept is not None
            if saved is not None:
                ctx.later = self._gone(saved) if finished else Kept.of(saved, overwritten)
            if ctx.kept is not None:
                ctx.kept.clear()
        if saved is not None:
            others = dict(zip(overwritten, self._others(ctx, overwritten), strict=True))
            return [others.get(slot, value) for slot, value in enumerate(saved)], may_give_away, True
        if reads:
            raise released()
        return self._others(ctx, range(len(self._backward_plan.saved))), False, False

    def _is_read_after(self, freed: int) -> bool:
        """Whether a backward that is not refused, where all ``freed`` regions have let go, reads a saved value."""
        gone = [region for place, region in enumerate(self._saving) if freed >> place & 1]
        for results, inputs in self._reading:
            for number in self._tangents:
                if results & number:
                    blocked = _union(behind for leading, behind in gone if leading & number)
                    if inputs & ~blocked:
                        return True
        return False

    def _stored(self, ctx: Any) -> list[Any]:
        stored, kept = ctx.saved_tensors, ctx.kept
        if kept is None:
            return list(stored)
        if len(kept) != self._count:
            raise released()
        return [kept[place] if own else stored[place] for own, place in self._order]

    def _stored_for(self, ctx: Any, results: int) -> tuple[list[Any], Collection[int]]:
        """What is saved, and what of it was overwritten; RuntimeError where one of the results needs that."""
        is_all = results == self._all
        try:
            return self._stored(ctx), ()
        except RuntimeError:
            if is_all or not _CAN_READ_EACH or ctx.kept is None or len(ctx.kept) != self._count:
                raise
        saved, overwritten = _each_read(ctx, self._plan, self._backward_plan, self._order)
        for slot, error in overwritten.items():
            if results & self._needed_by[slot]:
                raise error
        return saved, overwritten

    def _others(self, ctx: Any, slots: Iterable[int]) -> list[Any]:
        """Values in the place of those that are gone. Ones, as few derivatives are infinite there: what is computed
        with them is multiplied by gradients that are zero."""
        sizes = ctx.sizes if self._plan.symbols or self._plan.born else ()
        known = known_sizes(self._plan, sizes)
        made = [new_tensor(self._backward_plan.saved_specs[slot], known) for slot in slots]
        return [one.fill_(one.is_floating_point() or one.is_complex()) for one in made]


def _regions(regions: Sequence[Region], results: int, inputs: int) -> int:
    """Those that hold one of the results and one of the inputs, as bits by their places."""
    return sum(
        1 << place for place, (leading, behind) in enumerate(regions) if leading & results and behind & inputs
    )


def _union(masks: Iterable[int]) -> int:
    found = 0
    for mask in masks:
        found |= mask
    return found
