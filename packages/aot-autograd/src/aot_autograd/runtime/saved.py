"""What a compiled function saves for its backward: read in order, let go of when the last backward has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import torch

from aot_autograd.plan import BackwardPlan, JointPlan, SavedOutput
from fx_interface.python_runtime.quick_dataclasses import dataclass

Collector: TypeAlias = Callable[[Any, Sequence[Any], bool], tuple[list[Any], bool]]
"""Called with the node, the gradients that arrive, and whether all do."""
_keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph
RELEASED = (
    "Trying to backward through a compiled graph a second time, after what it had kept for that was freed: specify\n"
    "  retain_graph=True in the first backward"
)
_OVERWRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation: it is a result\n"
    "  of the compiled function itself"
)
_WRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation since an earlier\n"
    "  backward of other results of the same compiled function"
)


def owned(plan: JointPlan, backward_plan: BackwardPlan) -> list[bool]:
    """For each saved value, whether nobody but the backward gets it."""
    visible = plan.returned + len(plan.mutated)
    return [isinstance(source, SavedOutput) and source.index >= visible for source in backward_plan.saved]


def _order(flags: Sequence[bool]) -> list[tuple[bool, int]]:
    """For each saved value whether it is the backward's own, and its place among those that are or are not."""
    return [(own, flags[:i].count(own)) for i, own in enumerate(flags)]


def collector(plan: JointPlan, backward_plan: BackwardPlan) -> Collector:
    """What lists the saved values, in order, and tells whether they are needed no more."""
    if not backward_plan.saved and not any(backward_plan.frees):
        return lambda ctx, grads, complete: ([], False)
    flags = owned(plan, backward_plan)
    order = _order(flags)
    count = sum(flags)

    def collect(ctx: Any, grads: Sequence[Any], complete: bool) -> tuple[list[Any], bool]:
        stored, kept = ctx.saved_tensors, ctx.kept
        if kept is None:
            return list(stored), False
        if len(kept) != count:
            raise RuntimeError(RELEASED)
        saved = [kept[place] if own else stored[place] for own, place in order]
        last = not _keeps_graph()
        if last:
            kept.clear()
        return saved, last

    return collect


def reader(plan: JointPlan, backward_plan: BackwardPlan) -> Callable[[Any], list[Any]]:
    """What lists the saved values, in order, before the backward that needs them."""
    flags = owned(plan, backward_plan)
    order = _order(flags)
    count = sum(flags)

    def read(ctx: Any) -> list[Any]:
        later: Kept | None = getattr(ctx, "later", None)
        if later is not None:
            return later.saved
        stored, kept = ctx.saved_tensors, ctx.kept
        if kept is None:
            return list(stored)
        if len(kept) != count:
            raise RuntimeError(RELEASED)
        return [kept[place] if own else stored[place] for own, place in order]

    return read


@dataclass(frozen=True, slots=True)
class Kept:
    """What backwards of results that have had none may need; the tangents ``done`` have arrived."""

    saved: list[Any]
    versions: list[int]
    done: frozenset[int]

    @classmethod
    def of(cls, saved: list[Any], done: frozenset[int], overwritten: Collection[int]) -> Kept:
        """As the values are now; those ``overwritten`` are of no use any more."""
        versions = [-1 if slot in overwritten else value._version for slot, value in enumerate(saved)]
        return cls(list(saved), versions, done)

    def overwritten(self, arrived: frozenset[int], needed_by: Sequence[Sequence[int]]) -> list[int]:
        """The values that were written to since; RuntimeError where a group needs one."""
        found = []
        for slot, (value, version) in enumerate(zip(self.saved, self.versions, strict=True)):
            if value._version != version:
                if arrived.intersection(needed_by[slot]):
                    raise RuntimeError(_WRITTEN)
                found.append(slot)
        return found


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


def collector_in_groups(
    collect: Collector, plan: JointPlan, backward_plan: BackwardPlan, positions: list[int]
) -> Collector:
    """As ``collect``, where results may be differentiated in backwards of their own, one group after another.

    Autograd's node is one for all results, and lets go of what it has saved after the first backward; what later ones
    may need is kept until each result has had its backward, or can have none any more, or the node itself is gone. A
    backward that lets go of nothing in eager may come again, until the others have been. What was overwritten is
    refused where a group needs it, as eager does.
    """
    groups, needed_by, frees = backward_plan.groups, backward_plan.needed_by, backward_plan.frees
    together = [frozenset(those) for those in frees]
    tangents = frozenset(range(len(positions)))
    has_nothing = not backward_plan.saved and not any(frees)
    if has_nothing or (not groups and all(those == tangents for those in together)):
        return collect
    if not groups:
        groups, needed_by = (0,) * len(positions), ((0,),) * len(backward_plan.saved)
    everything = frozenset(groups)
    flags = owned(plan, backward_plan)
    order = _order(flags)

    def collect_what_is_needed(
        ctx: Any, grads: Sequence[Any], arrived: frozenset[int]
    ) -> tuple[list[Any], bool, Collection[int]]:
        try:
            return *collect(ctx, grads, arrived == everything), ()
        except RuntimeError:
            if arrived == everything or not _CAN_READ_EACH or ctx.kept is None or len(ctx.kept) != sum(flags):
                raise
        saved, overwritten = _each_read(ctx, plan, backward_plan, order)
        for slot, error in overwritten.items():
            if arrived.intersection(needed_by[slot]):
                raise error
        return saved, False, overwritten

    def collect_for_some(ctx: Any, grads: Sequence[Any], complete: bool) -> tuple[list[Any], bool]:
        arriving = tangents
        if not complete:
            arriving = frozenset([i for i, place in enumerate(positions) if grads[place] is not None])
        arrived = frozenset([groups[i] for i in arriving])
        kept: Kept | None = getattr(ctx, "later", None)
        done = frozenset[int]() if kept is None else kept.done
        finished = False
        overwritten: Collection[int]
        if kept is None:
            saved, last, overwritten = collect_what_is_needed(ctx, grads, arrived)
        else:
            saved, last = kept.saved, False
            if len(saved) != len(flags) or any(done & together[i] for i in arriving):
                raise RuntimeError(RELEASED)
            overwritten = kept.overwritten(arrived, needed_by)
        ctx.overwritten = overwritten
        if not _keeps_graph():
            done |= arriving
            finished = all(i in done or done & together[i] for i in tangents)
            ctx.later = Kept.of([] if finished else saved, done, overwritten)
        return list(saved), last and finished

    return collect_for_some
