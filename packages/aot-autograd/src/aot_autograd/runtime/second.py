"""Second derivatives: a backward that will itself be differentiated runs the program again, as it was written.

A compiled backward graph has no derivative of its own. Under ``create_graph=True`` torch's autograd differentiates the
program's own operators instead, from the inputs that the forward was given, and the gradients depend on inputs and
incoming gradients as eager's do, to any order. Where that is not possible (the program draws random numbers or writes
to inputs, an input is gone or was changed since) the gradients are the compiled ones, and differentiating *them* raises
AOT301: never a wrong or missing second derivative.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from aot_autograd.plan import BackwardPlan, FromGraph, JointPlan, SavedInput

Program = Callable[..., Sequence[Any]]
_TWICE = (
    "[AOT301] a compiled function was differentiated twice, and it cannot be run again from its inputs: {why}\n"
    "  to do: run the part that needs second derivatives without the compiler"
)


@dataclass(frozen=True, slots=True)
class Remembered:
    """What the forward keeps so that it can be repeated, beside what it saves for the compiled backward.

    ``owned``: a module's tensors, with their ``versions``; ``loose``: other inputs, tensors by weak reference, so
    that memory is freed when eager would free it.
    """

    owned: tuple[Any, ...]
    versions: tuple[int, ...]
    loose: tuple[tuple[Any, int], ...]

    def alive(self) -> list[Any]:
        """What there still is of it."""
        return [*self.owned, *(v() if isinstance(v, weakref.ref) else v for v, _ in self.loose)]


class Repetition:
    """How one program is repeated; ``why_not`` is empty if it can be."""

    def __init__(self, plan: JointPlan, backward_plan: BackwardPlan, program: Program | None) -> None:
        self.program = program
        self.why_not = _why_not(plan, program)
        self.saved = [s.index for s in backward_plan.saved if isinstance(s, SavedInput)]
        self.slots = [n for n, s in enumerate(backward_plan.saved) if isinstance(s, SavedInput)]
        rest = [index for index in range(plan.inputs) if index not in set(self.saved)]
        self.owned = [index for index in rest if index in plan.owned]
        self.loose = [index for index in rest if index not in plan.owned]
        self.count = plan.inputs
        self.wanted = backward_plan.gradient_of
        self.differentiable = plan.differentiable

    def remember(self, inputs: Sequence[Any]) -> Remembered:
        """Called by the forward, before anything is changed."""
        owned = tuple([inputs[index] for index in self.owned])
        return Remembered(
            owned,
            tuple([tensor._version for tensor in owned]),
            tuple([_loosely(inputs[index]) for index in self.loose]),
        )

    def inputs(self, remembered: Remembered, saved: Sequence[Any]) -> list[Any] | str:
        """The forward's inputs, or why the program cannot be repeated on them."""
        if self.why_not:
            return self.why_not
        made: list[Any] = [None] * self.count
        for index, slot in zip(self.saved, self.slots, strict=True):
            made[index] = saved[slot]
        for index, tensor, version in zip(self.owned, remembered.owned, remembered.versions, strict=True):
            if tensor._version != version:
                return "a parameter or buffer was changed in place since"
            made[index] = tensor
        for index, (value, version) in zip(self.loose, remembered.loose, strict=True):
            made[index] = value() if isinstance(value, weakref.ref) else value
            if isinstance(value, weakref.ref):
                if made[index] is None:
                    return "one of its inputs is gone"
                if made[index]._version != version:
                    return "one of its inputs was changed in place since"
        return made

    def gradients(self, inputs: Sequence[Any], arriving: Callable[[int], Any]) -> list[Any]:
        """Differentiable gradients of the inputs; ``arriving(i)`` is the gradient of result ``i`` or None.

        Inputs are replaced by aliases first: one that was computed from another must not be differentiated through.
        """
        assert self.program is not None
        with torch.enable_grad():
            aliases = [x.view_as(x) if isinstance(x, torch.Tensor) and x.requires_grad else x for x in inputs]
            results = self.program(*aliases)
            pairs = [(results[i], g) for i in self.differentiable if (g := arriving(i)) is not None]
            wanted = [aliases[index] for index in self.wanted]
            made: list[Any] = [None] * self.count
            if not pairs or not wanted:
                return made
            found = torch.autograd.grad(
                [result for result, _ in pairs],
                wanted,
                [gradient for _, gradient in pairs],
                create_graph=True,
                allow_unused=True,
            )
        for index, gradient in zip(self.wanted, found, strict=True):
            made[index] = gradient
        return made


def refuse(gradients: Sequence[Any], connected: Sequence[Any], why: str) -> tuple[Any, ...]:
    """The gradients, which raise AOT301 when they are differentiated with respect to what they depend on."""
    present = [g for g in gradients if g is not None]
    if not present:
        return tuple(gradients)
    depends = [t for t in connected if isinstance(t, torch.Tensor) and t.requires_grad]
    guarded: Any = _Refusal.apply(_TWICE.format(why=why), len(present), *present, *depends)  # type: ignore[no-untyped-call]
    each = iter(guarded)
    return tuple(None if g is None else next(each) for g in gradients)


class _Refusal(torch.autograd.Function):
    """The identity on the first tensors, which cannot be differentiated with respect to the others."""

    @staticmethod
    def forward(ctx: Any, text: str, count: int, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.text = text
        return tuple(tensor.detach() for tensor in tensors[:count])

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        raise RuntimeError(ctx.text)


def _why_not(plan: JointPlan, program: Program | None) -> str:
    if program is None:
        return "its graph was not kept"
    if not plan.repeatable:
        return "it draws random numbers, or ran under autocast"
    if plan.mutated:
        return "it writes to its inputs"
    if any(recipe != FromGraph(index) for index, recipe in enumerate(plan.recipes)):
        return "its results share memory with inputs or with each other"
    return ""


def _loosely(value: Any) -> tuple[Any, int]:
    return (weakref.ref(value), value._version) if isinstance(value, torch.Tensor) else (value, 0)
