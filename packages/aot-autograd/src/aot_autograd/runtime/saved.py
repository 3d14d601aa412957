"""What a compiled function saves for its backward: read in order, let go of when the last backward has it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch

from aot_autograd.plan import BackwardPlan, JointPlan, SavedOutput
from fx_interface.python_runtime.quick_dataclasses import dataclass

WRITTEN = (
    "one of the variables needed for gradient computation has been modified by an inplace operation since an earlier\n"
    "  backward of other results of the same compiled function"
)


class _Freed(torch.autograd.Function):
    """A node that saves nothing, whose context outlives it."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, contexts: list[Any]) -> torch.Tensor:
        contexts.append(ctx)
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient, None


def released() -> RuntimeError:
    """The refusal of a backward after one that has freed what was saved: as torch words it."""
    contexts: list[Any] = []
    unseen = (torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch(), torch.inference_mode(False))
    with unseen[0], unseen[1], unseen[2], torch.enable_grad():
        x = torch.empty((), requires_grad=True)
        torch.autograd.grad(_Freed.apply(x, contexts), x)  # type: ignore[no-untyped-call]
    try:
        _ = contexts[0].saved_tensors
    except RuntimeError as error:
        return RuntimeError(*error.args)
    return RuntimeError("a backward was asked for a second time")


def owned(plan: JointPlan, backward_plan: BackwardPlan) -> list[bool]:
    """For each saved value, whether nobody but the backward gets it."""
    visible = plan.returned + len(plan.mutated)
    return [isinstance(source, SavedOutput) and source.index >= visible for source in backward_plan.saved]


def order_of(flags: Sequence[bool]) -> list[tuple[bool, int]]:
    """For each saved value whether it is the backward's own, and its place among those that are or are not."""
    seen = [0, 0]
    places = []
    for own in flags:
        places.append((own, seen[own]))
        seen[own] += 1
    return places


def reader(plan: JointPlan, backward_plan: BackwardPlan) -> Callable[[Any], list[Any]]:
    """What lists the saved values, in order, before the backward that needs them."""
    if not backward_plan.saved and not backward_plan.saving:
        return lambda ctx: []
    flags = owned(plan, backward_plan)
    order = order_of(flags)
    count = sum(flags)

    def read(ctx: Any) -> list[Any]:
        later: Kept | None = getattr(ctx, "later", None)
        if later is not None:
            if later.saved is None:
                raise released()
            if any(
                value._version != version for value, version in zip(later.saved, later.versions, strict=True)
            ):
                raise RuntimeError(WRITTEN)
            return later.saved
        stored, kept = ctx.saved_tensors, ctx.kept
        if kept is None:
            return list(stored)
        if len(kept) != count:
            raise released()
        return [kept[place] if own else stored[place] for own, place in order]

    return read


@dataclass(frozen=True, slots=True)
class Kept:
    """What later backwards may need: None where none reads it. Then ``inputs`` may be there, by their slots among the
    saved values, for gradients between results, which need the program's inputs whatever they hold."""

    saved: list[Any] | None
    versions: list[int]
    inputs: Mapping[int, Any] | None = None

    @classmethod
    def of(cls, saved: list[Any], overwritten: Collection[int]) -> Kept:
        """As the values are now; those ``overwritten`` are of no use any more."""
        versions = [-1 if slot in overwritten else value._version for slot, value in enumerate(saved)]
        return cls(list(saved), versions)

    def overwritten(self, arrived: int, needed_by: Sequence[int]) -> list[int]:
        """The values that were written to since; RuntimeError where one of the results that have ``arrived`` needs
        one."""
        found: list[int] = []
        if self.saved is None:
            return found
        for slot, (value, version) in enumerate(zip(self.saved, self.versions, strict=True)):
            if value._version != version:
                if arrived & needed_by[slot]:
                    raise RuntimeError(WRITTEN)
                found.append(slot)
        return found
