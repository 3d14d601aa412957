"""Inputs that only some results lead to: autograd must not reach their histories from the other results.

A compiled function is one node of autograd's graph, and autograd's engine runs everything that a node leads to: a
backward of ``b`` alone would run the backward of what made ``t``, with zeros, though ``b`` does not depend on it.

    def f(t, x): return t.sin(), x.cos()        # a, b = f(C.apply(y), x)

Where such an input has a history, the node does not lead to it. A node of its own (``Delivery``) hands its gradient on,
and only results that depend on it lead there (``Spread``):

    a ── Spread ──▶ CompiledFunction ──▶ x
            └────▶ Delivery ──▶ C
    b ── Spread ──▶ CompiledFunction

The engine runs nodes that were made later first, so that the compiled backward has run, with all results' gradients,
before a delivery asks for its part. Where it has not, because it is not in this backward or the parts of the program
were made by several threads, the delivery runs it with the gradients that have arrived: all that its inputs depend on.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from aot_autograd.plan import BackwardPlan, JointPlan
from aot_autograd.runtime.hooks.result_hooks import prepare_hooks_of
from fx_interface.execution.undo import leaves_something

_current_task = torch._C._current_graph_task_id
_will_execute = torch._C._will_engine_execute_node
_set_versions = torch._C._autograd._unsafe_set_version_counter

Compute = Callable[[Any, Sequence[Any]], Sequence[Any]]
"""The compiled backward: given the compiled function's node and the gradients of its results, those of its inputs."""


class Parcels:
    """What one call's nodes tell each other in a backward: gradients that have arrived, and those of the inputs."""

    __slots__ = ("arrived", "compute", "count", "gradients", "node", "task", "told")

    def __init__(self, compute: Compute, count: int) -> None:
        self.compute = compute
        self.count = count
        self.node: Any = None  # a weak reference to the compiled function's node
        self.task = -1
        self.arrived: dict[int, Any] = {}
        self.gradients: Sequence[Any] | None = None
        self.told: frozenset[int] = frozenset()

    def arrive(self, place: int, gradient: Any) -> None:
        """The gradient of the result at ``place``, in this backward."""
        self._begin()
        if gradient is not None:
            self.arrived[place] = gradient

    def found(self, gradients: Sequence[Any]) -> None:
        """The compiled backward has run, with all gradients that arrive in this backward."""
        self._begin()
        self.gradients = gradients
        self.told = frozenset(range(self.count))

    def gradients_of(self, indices: Sequence[int], places: Sequence[int]) -> list[Any]:
        """Those of the inputs ``indices``, to which the results at ``places`` lead."""
        self._begin()
        if self.gradients is None or not self.told.issuperset(p for p in places if p in self.arrived):
            self._compute()
        assert self.gradients is not None
        return [self.gradients[index] for index in indices]

    def _begin(self) -> None:
        if self.task != _current_task():
            self.task = _current_task()
            self.arrived, self.gradients, self.told = {}, None, frozenset()

    def _compute(self) -> None:
        node = self.node()
        grads = [self.arrived.get(place) for place in range(self.count)]
        if _will_execute(node):  # later, with what it has kept
            kept = None if node.kept is None else list(node.kept)
            later, given = getattr(node, "later", None), getattr(node, "given", None)
            known = None if given is None else dict(given.parts)
            self.gradients = self.compute(node, grads)
            node.kept, node.later = kept, later
            if given is not None:
                given.parts = known
        else:
            self.gradients = self.compute(node, grads)
        self.told = frozenset(self.arrived)


class _Delivery(torch.autograd.Function):
    """Leads to inputs that the same results depend on."""

    @staticmethod
    def forward(
        ctx: Any, parcels: Parcels, indices: Sequence[int], places: Sequence[int], *inputs: torch.Tensor
    ) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.asked = parcels, indices, places
        return inputs[0].new_empty(0)

    @staticmethod
    def backward(ctx: Any, *nothing: Any) -> Any:
        parcels, indices, places = ctx.asked
        return (None, None, None, *parcels.gradients_of(indices, places))


class _Spread(torch.autograd.Function):
    """The identity on a result, in place, which leads to the deliveries of what it depends on besides."""

    @staticmethod
    def forward(
        ctx: Any, parcels: Parcels, place: int, result: torch.Tensor, *deliveries: torch.Tensor
    ) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(result)
        ctx.told = parcels, place, len(deliveries)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        parcels, place, count = ctx.told
        parcels.arrive(place, gradients[0])
        return (None, None, *gradients, *[None] * count)


_deliver: Callable[..., Any] = super(torch.autograd.Function, _Delivery).apply
_spread: Callable[..., Any] = super(torch.autograd.Function, _Spread).apply


class Call:
    """One call, given to the compiled function beside its inputs, some of which are cut from their histories.

    ``edges``: for each of those the result of a delivery, and which of its inputs it is.
    """

    __slots__ = ("edges", "inputs", "parcels")

    def __init__(self, inputs: Sequence[Any], parcels: Parcels) -> None:
        self.inputs = inputs
        self.parcels = parcels
        self.edges: dict[int, tuple[torch.Tensor, int]] = {}


def led_to(plan: JointPlan, backward_plan: BackwardPlan) -> dict[int, tuple[int, ...]]:
    """The inputs that only some results lead to, with the places of these among the outputs of the function's node."""
    dirty = [m.graph_index for m in plan.mutated if m.differentiable]
    places = {index: place for place, index in enumerate([*dirty, *range(plan.returned)])}
    return {i: tuple(sorted(places[index] for index in leading)) for i, leading in backward_plan.partly}


class PartlyReached:
    """A compiled function in calls in which some of its ``inputs`` have a history that not all results lead to."""

    def __init__(
        self, plan: JointPlan, backward_plan: BackwardPlan, methods: dict[str, Any], compute: Compute
    ) -> None:
        dirty = [m for m in plan.mutated if m.differentiable]
        kept = {*backward_plan.cut, *plan.owned, *(m.input_index for m in plan.mutated)}
        kept |= {form.input_index for form in plan.forms}
        self._places = led_to(plan, backward_plan)
        self.inputs = tuple(index for index in self._places if index not in kept)
        self._results = [
            *range(len(dirty)),
            *(len(dirty) + index for index in plan.differentiable),
        ]
        self._count = len(dirty) + plan.returned
        self._compute = compute
        self._writes = bool(plan.mutated)
        self._apply = _applied(methods)

    def chosen(self, inputs: Sequence[Any]) -> list[int]:
        """Those of the inputs that have a history in this call."""
        return [index for index in self.inputs if inputs[index].grad_fn is not None]

    def run(
        self, inputs: Sequence[Any], followed: Sequence[Any], chosen: Sequence[int]
    ) -> tuple[Sequence[Any], Any]:
        """All outputs of the compiled function's node, and it. ``followed``: what it leads to, but for ``chosen``."""
        call = Call(followed, Parcels(self._compute, self._count))
        groups: dict[tuple[int, ...], list[int]] = {}
        for index in chosen:
            groups.setdefault(self._places[index], []).append(index)
        deliveries: dict[tuple[int, ...], torch.Tensor] = {}
        for places, indices in groups.items():
            made = deliveries[places] = _deliver(call.parcels, indices, places, *[inputs[i] for i in indices])
            call.edges.update((index, (made, n)) for n, index in enumerate(indices))
        led = list(followed)
        for index in chosen:
            led[index] = (
                led[index].detach().requires_grad_()
            )  # so that there is a node, if nothing else has one
        results: Sequence[Any] = self._apply(*led, call)
        try:
            return results, self._lead_on(results, call, deliveries)
        except BaseException as error:
            if self._writes:
                leaves_something(error)
            raise

    def _lead_on(
        self, results: Sequence[Any], call: Call, deliveries: Mapping[tuple[int, ...], torch.Tensor]
    ) -> Any:
        """From the results on to what they depend on besides the compiled function's node, which is returned."""
        differentiable = [place for place in self._results if results[place].grad_fn is not None]
        node = results[differentiable[0]].grad_fn
        call.parcels.node = weakref.ref(node)
        for place in differentiable:
            result = results[place]
            version = result._version
            _spread(call.parcels, place, result, *[d for places, d in deliveries.items() if place in places])
            _set_versions((result,), (version,))
            prepare_hooks_of(result)
        return node


def _applied(methods: dict[str, Any]) -> Callable[..., Any]:
    """The compiled function with one argument more, the call, which tells it its inputs."""
    plain_forward, plain_backward = methods["forward"].__func__, methods["backward"].__func__

    def forward(ctx: Any, *given: Any) -> Any:
        call: Call = given[-1]
        ctx.parcels, ctx.edges = call.parcels, call.edges
        return plain_forward(ctx, *call.inputs)

    def backward(ctx: Any, *grads: Any) -> Any:
        gradients = list(plain_backward(ctx, *grads))
        ctx.parcels.found(list(gradients))
        for index in ctx.edges:
            gradients[index] = None
        return (*gradients, None)

    changed = {**methods, "forward": staticmethod(forward), "backward": staticmethod(backward)}
    function: Any = type("CompiledFunction", (torch.autograd.Function,), changed)
    apply: Callable[..., Any] = super(torch.autograd.Function, function).apply
    return apply
