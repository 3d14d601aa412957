"""The backward of a compiled function: the compiled graph, or the program run again where that does not do.

The program is run again, with torch's own operators, where the gradients are to be differentiated, where hooks have
changed what arrives between results (``between_results.py``), where a part of the backward that has effects is not
reached, and where an arriving gradient has another layout than the compiled backward takes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch

from aot_autograd.plan import BackwardPlan, GraphPart, JointPlan, SavedOutput
from aot_autograd.runtime.double_backward.second_derivatives import Repetition, Run, refuse
from aot_autograd.runtime.double_backward.unseen import run_unseen
from aot_autograd.runtime.gradients.between_results import possible
from aot_autograd.runtime.gradients.gradients_behind import GradientsBehind
from aot_autograd.runtime.gradients.incoming_gradients import are_plain, dense, resolved, tangent_reader
from aot_autograd.runtime.gradients.partial_backward import PartialBackward
from aot_autograd.runtime.gradients.saved_values import Choice, Collector
from aot_autograd.runtime.saved import owned, released
from fx_interface.backend import CompiledGraph
from fx_interface.errors import refuses_layout
from fx_interface.torch_internals.dispatch_mode import operators_are_watched, without_dispatch_modes

_log = logging.getLogger(__name__)
_NOTHING_CUT: Mapping[int, Any] = MappingProxyType({})
_NONE: frozenset[int] = frozenset()
_DOUBTFUL = (
    "gradients of some results of a compiled function are NaN, which may come of the results that have no gradient; "
    "the function cannot be run again to tell: %s"
)


class Backward:
    """Called with the compiled function's node, the gradients that arrive at its outputs, whether at all that it was
    compiled for, and what the backward is for (None: everything); gives those of its inputs."""

    __slots__ = (
        "_absent",
        "_arrives",
        "_behind",
        "_depends",
        "_earlier",
        "_effects",
        "_graph",
        "_inputs",
        "_linked",
        "_nan_from_zeros",
        "_owning",
        "_partial",
        "_passed",
        "_places",
        "_positions",
        "_released",
        "_repetition",
        "_saves_computed",
        "_sized",
        "_symbols",
        "_tangents",
        "_used_again",
        "collector",
    )

    def __init__(
        self,
        plan: JointPlan,
        backward_plan: BackwardPlan,
        backward: CompiledGraph | PartialBackward,
        repetition: Repetition,
    ) -> None:
        self._partial = backward if isinstance(backward, PartialBackward) else None
        usual = backward.usual if isinstance(backward, PartialBackward) else backward
        self._graph, self._owning = usual, getattr(usual, "call_owning", None)
        self._repetition = repetition
        self._inputs = plan.inputs
        self._sized = bool(plan.symbols or plan.born)
        dirty = [m.graph_index for m in plan.mutated if m.differentiable]
        arrives = {index: position for position, index in enumerate([*dirty, *range(plan.returned)])}
        self._arrives = arrives
        self._tangents = [(arrives[t.graph_index], tangent_reader(plan, t)) for t in backward_plan.tangents]
        self._positions = [position for position, _ in self._tangents]
        self._absent = frozenset(self._positions[number] for number in backward_plan.absent)
        self.collector = Collector(plan, backward_plan, self._positions)
        self._symbols = backward_plan.symbols
        first = len(backward_plan.symbols)
        self._used_again = used_again = {-1 - place for place in _places(backward_plan)}
        self._behind = GradientsBehind(plan, backward_plan.behind) if backward_plan.behind else None
        own = enumerate(owned(plan, backward_plan), first)
        self._passed = tuple(place for place, is_own in own if is_own and place not in used_again)
        self._places = list(zip(backward_plan.gradient_of, backward_plan.gradient_from, strict=True))
        self._depends = list(zip(backward_plan.gradient_of, backward_plan.depends, strict=True))
        self._linked = bool(backward_plan.between or backward_plan.leaves)
        self._earlier = {i: arrives[i] for _, parts in backward_plan.between for i in parts if i in arrives}
        self._released = [arrives[index] for index in backward_plan.released]
        self._saves_computed = any(
            isinstance(source, SavedOutput) and (spec.dtype.is_floating_point or spec.dtype.is_complex)
            for source, spec in zip(backward_plan.saved, backward_plan.saved_specs, strict=True)
        )
        self._effects, self._nan_from_zeros = backward_plan.effects, backward_plan.nan_from_zeros

    def __call__(
        self, ctx: Any, grads: Sequence[Any], complete: bool = False, choice: Choice | None = None
    ) -> Sequence[Any]:
        gradients = self._gradients(ctx, grads, complete, choice)
        if self._repetition.lets_go and self.collector.is_finished(ctx):
            ctx.remembered = ctx.remembered.let_go(self._repetition.lets_go_of_inputs)
        return gradients

    def _gradients(
        self, ctx: Any, grads: Sequence[Any], complete: bool, choice: Choice | None
    ) -> Sequence[Any]:
        if self._released and any(grads[position] is not None for position in self._released):
            raise released()
        plain = are_plain(grads)
        if not plain:
            grads = tuple(resolved(grads))
            plain = are_plain(grads)
        cuts = _NOTHING_CUT
        if self._linked:
            grads, cuts, run = ctx.given.settle(grads, self._earlier)
        saved, last, are_true = self.collector(ctx, grads, complete, choice)
        if not complete and all(gradient is None for gradient in grads):  # what follows has gone another way
            return (None,) * self._inputs
        if not are_true:
            if cuts or not plain or torch.is_grad_enabled():
                raise released()
            return self._without_saved(ctx, saved, grads, choice)
        if cuts:
            repetition = self._repetition
            run = run or repetition.run(possible(repetition.inputs(ctx, saved)), ctx.remembered.random)
            return self._in_run(ctx, saved, run, grads, cuts)
        if torch.is_grad_enabled() or not plain:
            return self._differentiable(ctx, saved, grads)
        if torch._C._len_torch_dispatch_stack():
            return self._in_modes(ctx, saved, grads, last, complete)
        return self._checked(ctx, saved, grads, last, complete)

    def _in_modes(
        self, ctx: Any, saved: list[Any], grads: Sequence[Any], last: bool, complete: bool
    ) -> Sequence[Any]:
        """In modes of ``__torch_dispatch__``: one that wants to see operators sees those of eager's backward, where the
        program can be run again for them, unseen itself."""
        given = self._repetition.inputs(ctx, saved) if operators_are_watched() else ""
        run = None if isinstance(given, str) else run_unseen(self._repetition, given, ctx.remembered.random)
        if run is not None:
            return self._in_run(ctx, saved, run, grads)
        with without_dispatch_modes():
            return self._checked(ctx, saved, grads, last, complete)

    def _checked(
        self, ctx: Any, saved: list[Any], grads: Sequence[Any], last: bool, complete: bool
    ) -> Sequence[Any]:
        """By the compiled backward, where that is sure to give what eager does; else by the program run again."""
        repetition = self._repetition
        without_effects = not complete and bool(self._effects) and self._none_arrives(self._effects, grads)
        doubtful = without_effects or (
            not complete and bool(self._nan_from_zeros) and self._none_arrives(self._nan_from_zeros, grads)
        )
        given = repetition.inputs(ctx, saved) if doubtful else ""
        if without_effects and not isinstance(given, str):
            return self._again(ctx, saved, given, grads)
        slots = repetition.slots
        kept = {slot: saved[slot] for slot in slots} if slots else _NOTHING_CUT
        try:
            gradients = self._compiled(ctx, saved, grads, last, complete)
        except ValueError as error:
            if not refuses_layout(error):
                raise
            given = repetition.inputs(ctx, kept)
            if isinstance(given, str):
                raise
            return self._again(ctx, (), given, grads)
        if doubtful and _has_nan(gradients):
            if not isinstance(given, str):
                return self._again(ctx, (), given, grads)
            _log.warning(_DOUBTFUL, given)
        return gradients

    def _without_saved(
        self, ctx: Any, others: list[Any], grads: Sequence[Any], choice: Choice | None
    ) -> Sequence[Any]:
        """Gradients that do not depend on what is saved, which is gone."""
        gradients = self._compiled(ctx, others, grads, False, False)
        if _has_nan(g for i, g in enumerate(gradients) if choice is None or choice.targets >> i & 1):
            raise released()  # zeros times what stands in for what is gone
        return gradients

    def _compiled(
        self, ctx: Any, saved: list[Any], grads: Sequence[Any], last: bool, complete: bool
    ) -> tuple[Any, ...]:
        """By the compiled backward, which is given for good what is saved if this is the ``last`` time, and gradients
        that are made here."""
        sizes = ctx.sizes if self._sized else ()
        given = [*(sizes[number] for number in self._symbols), *saved] if self._symbols else list(saved)
        graph, owning, absent = self._graph, self._owning, self._absent
        if absent and any(grads[position] is not None for position in absent):
            assert self._partial is not None
            graph, absent = self._partial.whole, _NONE
            owning = getattr(graph, "call_owning", None)
        passed = (self._passed if last else ()) + self._append_tangents(given, grads, sizes, absent)
        if passed and owning is not None:
            if last:
                saved.clear()
            results = owning(given, passed)
        else:
            results = graph(*given)
        gradients: list[Any] = [None] * self._inputs
        for index, place in self._places:
            gradients[index] = results[place] if place >= 0 else given[-1 - place]
        if not complete:
            missing = {n for n, position in enumerate(self._positions) if grads[position] is None}
            for index, depends in self._depends:
                if depends and missing.issuperset(depends):
                    gradients[index] = None
        if self._behind is not None:
            missing = {n for n, position in enumerate(self._positions) if grads[position] is None}
            for index, gradient in self._behind(given, results, missing, sizes).items():
                gradients[index] = gradient
        return tuple(gradients)

    def _append_tangents(
        self, given: list[Any], grads: Sequence[Any], sizes: Sequence[int], absent: frozenset[int]
    ) -> tuple[int, ...]:
        """Append the gradients that the graph reads, None for the ``absent``; the places of those that are made here
        and used once."""
        own: tuple[int, ...] = ()
        for position, read in self._tangents:
            if position in absent:
                given.append(None)
                continue
            arrived = grads[position]
            made = read(arrived, sizes)
            if made is not arrived and len(given) not in self._used_again:
                own += (len(given),)
            given.append(made)
        return own

    def _differentiable(self, ctx: Any, saved: list[Any], grads: Sequence[Any]) -> Sequence[Any]:
        """Gradients that have a history; with one that raises where the program cannot be run again."""
        given = self._repetition.inputs(ctx, saved)
        if not isinstance(given, str):
            return self._again(ctx, saved, given, grads)
        with torch.no_grad():
            gradients = self._compiled(ctx, saved, dense(grads), False, False)
        connected = [*saved, *ctx.remembered.alive(), *ctx.remembered.places_of_gone(), *grads]
        if self._saves_computed:  # of inputs that are gone: what was saved has no history that leads to them
            connected.append(torch.empty(0, requires_grad=True))
        return refuse(gradients, connected, given)

    def _again(
        self, ctx: Any, saved: Sequence[Any], given: list[Any], grads: Sequence[Any]
    ) -> tuple[Any, ...]:
        return self._in_run(ctx, saved, self._repetition.run(given, ctx.remembered.random), grads)

    def _in_run(
        self,
        ctx: Any,
        saved: Sequence[Any],
        run: Run,
        grads: Sequence[Any],
        cuts: Mapping[int, Any] = _NOTHING_CUT,
    ) -> tuple[Any, ...]:
        """By torch's operators; what is ``saved`` is read where gradients are on."""
        arrives, repetition = self._arrives, self._repetition
        returned = repetition.read.of_call(ctx, saved) if torch.is_grad_enabled() else _NOTHING_CUT
        return tuple(repetition.gradients(run, lambda index: grads[arrives[index]], returned, cuts))

    def _none_arrives(self, sets: Sequence[Sequence[int]], grads: Sequence[Any]) -> bool:
        """Whether of one of these sets of tangents none arrives."""
        missing = [grads[position] is None for position in self._positions]
        return any(all(missing[number] for number in numbers) for numbers in sets)


def _places(backward_plan: BackwardPlan) -> Iterator[int]:
    """All places, as in ``gradient_from``, of what gradients are or are made of."""
    yield from backward_plan.gradient_from
    pending: list[Any] = [call.args for one in backward_plan.behind for call in one.calls]
    while pending:
        item = pending.pop()
        if isinstance(item, GraphPart):
            yield item.place
        elif isinstance(item, list | tuple):
            pending.extend(item)


def _has_nan(gradients: Iterable[torch.Tensor | None]) -> bool:
    plain = [g._values() if g is not None and g.is_sparse else g for g in gradients]
    return any(gradient is not None and bool(gradient.isnan().any()) for gradient in plain)
