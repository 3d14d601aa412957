"""What a compiled function saves for its backward: read in order, let go of when the last backward has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from aot_autograd.plan import BackwardPlan, JointPlan, SavedOutput

Collector: TypeAlias = Callable[[Any, Sequence[Any], bool], tuple[list[Any], bool]]
"""Called with the node, the gradients that arrive, and whether all do."""
_keeps_graph = torch._C._autograd._get_current_graph_task_keep_graph
RELEASED = (
    "Trying to backward through a compiled graph a second time, after what it had kept for that was freed: specify\n"
    "  retain_graph=True in the first backward"
)
_WRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation since an earlier\n"
    "  backward of other results of the same compiled function"
)


def owned(plan: JointPlan, backward_plan: BackwardPlan) -> list[bool]:
    """For each saved value, whether nobody but the backward gets it."""
    visible = plan.returned + len(plan.mutated)
    return [isinstance(source, SavedOutput) and source.index >= visible for source in backward_plan.saved]


def collector(plan: JointPlan, backward_plan: BackwardPlan) -> Collector:
    """What lists the saved values, in order, and tells whether they are needed no more."""
    flags = owned(plan, backward_plan)
    order = [(own, flags[:i].count(own)) for i, own in enumerate(flags)]
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
    order = [(own, flags[:i].count(own)) for i, own in enumerate(flags)]
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
    """What backwards of groups that have had none may need; ``done`` have had theirs."""

    saved: list[Any]
    versions: list[int]
    done: frozenset[int]

    @classmethod
    def of(cls, saved: list[Any], done: frozenset[int]) -> Kept:
        """As the values are now."""
        return cls(list(saved), [value._version for value in saved], done)

    def check(self, arrived: frozenset[int], needed_by: Sequence[Sequence[int]]) -> None:
        """RuntimeError where a group has had its backward, or a value that it needs was written to since."""
        if arrived & self.done:
            raise RuntimeError(RELEASED)
        for value, version, groups in zip(self.saved, self.versions, needed_by, strict=True):
            if value._version != version and arrived.intersection(groups):
                raise RuntimeError(_WRITTEN)


def _arrived(groups: Sequence[int], positions: Sequence[int], grads: Sequence[Any]) -> frozenset[int]:
    pairs = zip(groups, positions, strict=True)
    return frozenset([group for group, position in pairs if grads[position] is not None])


def collector_in_groups(collect: Collector, backward_plan: BackwardPlan, positions: list[int]) -> Collector:
    """As ``collect``, where results may be differentiated in backwards of their own, one group after another.

    Autograd's node is one for all results, and lets go of what it has saved after the first backward; what later ones
    may need is kept until each group has had its backward, or the node itself is gone.
    """
    groups, needed_by = backward_plan.groups, backward_plan.needed_by
    if not groups:
        return collect
    everything = frozenset(groups)

    def collect_for_some(ctx: Any, grads: Sequence[Any], complete: bool) -> tuple[list[Any], bool]:
        arrived = everything if complete else _arrived(groups, positions, grads)
        kept: Kept | None = getattr(ctx, "later", None)
        if kept is None:
            saved, last = collect(ctx, grads, complete)
            done: frozenset[int] = frozenset()
        else:
            saved, last, done = kept.saved, False, kept.done
            kept.check(arrived, needed_by)
        if not _keeps_graph():
            done |= arrived
            ctx.later = Kept.of([] if done == everything else saved, done)
        return list(saved), last and done == everything

    return collect_for_some
