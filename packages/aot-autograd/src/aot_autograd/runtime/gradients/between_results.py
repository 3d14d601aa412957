"""Results that other results are computed from: gradients reach them as they do in eager.

Autograd knows a compiled function as one node, whose results have nothing to do with each other. Where the program
returns what it computes further with (``logits`` beside ``loss``), a node of its own leads from the later result to the
earlier ones:

    loss ── Between ──▶ logits ──▶ CompiledFunction ──▶ inputs
                └──────────────────────▲

As long as nobody looks at the gradient of ``logits``, that node passes its own on, and one compiled backward does all.
Where somebody does (``retain_grad()``, a hook, ``torch.autograd.grad(loss, logits)``), the program runs again with
torch's own operators to learn the gradient between the two. If just that arrives at ``CompiledFunction``, the compiled
backward does the rest. If more arrives, or a hook has changed it, torch differentiates the repeated program, in which
the gradient of ``logits`` is replaced by what has arrived: nothing is ever subtracted.

An earlier result may be a view, of a graph result or of an input, which autograd's own nodes lead on from. Then the
repeated program hands nothing on from there:

    loss ── Between ──▶ view ── ViewBackward ──▶ input
                └──────▶ CompiledFunction ──────────▲
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from typing import Any, TypeAlias

import torch

from aot_autograd.plan import BackwardPlan, JointPlan, earlier_results
from aot_autograd.runtime.double_backward.read_results import replacing
from aot_autograd.runtime.double_backward.second_derivatives import Repetition, Run
from aot_autograd.runtime.gradients.saved_values import Collector
from aot_autograd.runtime.hooks.chosen_tensors import Reach, chooses, edges_of_inputs, leads_on
from aot_autograd.runtime.hooks.result_hooks import prepare_hooks_of
from aot_autograd.runtime.hooks.watched_results import Watched
from aot_autograd.runtime.results import view_maker
from aot_autograd.runtime.saved import released

_current_task = torch._C._current_graph_task_id
_set_versions = torch._C._autograd._unsafe_set_version_counter
_NOT_KNOWN = (
    "[AOT303] the gradient of a compiled function's result is asked for that other results are computed from, and\n"
    "  the function cannot be run again from its inputs: {why}\n"
    "  to do: compute the gradient inside of the compiled function, or run it without the compiler"
)


def possible(inputs: list[Any] | str) -> list[Any]:
    """The inputs that a program is run again with; RuntimeError (AOT303) where it cannot be."""
    if isinstance(inputs, str):
        raise RuntimeError(_NOT_KNOWN.format(why=inputs))
    return inputs


class Given:
    """What ``Between`` nodes have said about one call: in which backward, and which gradients they have given, by the
    number of the earlier result in ``BackwardPlan.between``, each with its version."""

    __slots__ = ("parts", "repeated", "task")

    def __init__(self) -> None:
        self.task = -1
        self.parts: dict[int, tuple[torch.Tensor, int]] = {}
        self.repeated: Run | None = None

    def repeat(self, run: Callable[[], Run]) -> Run:
        """What ``run`` returns, which runs the program again once for all results, until the compiled backward runs."""
        self._begin()
        if self.repeated is None:
            self.repeated = run()
        return self.repeated

    def _begin(self) -> None:
        if self.task != _current_task():
            self.task = _current_task()
            self.parts = {}
            self.repeated = None

    def add(self, index: int, part: torch.Tensor) -> None:
        """This part of the gradient of result ``index`` has been handed to it."""
        self._begin()
        if index in self.parts:
            part = self.parts[index][0] + part
        self.parts[index] = part, part._version

    def settle(
        self, arriving: Sequence[Any], places: Mapping[int, int]
    ) -> tuple[Sequence[Any], Mapping[int, torch.Tensor | None], Run | None]:
        """The gradients of which the compiled backward is to be computed, and where it is to be cut.

        Where only what ``Between`` nodes gave arrives, nothing does: the compiled backward contains it. Where more
        arrives, or hooks may have changed it, the backward is computed anew by the repeated program, which is
        returned then, with a cut at each earlier result that was given a part: with the gradient that arrives there,
        or None for a view, which leads on by itself. ``places``: where results' gradients arrive.
        """
        ran, self.repeated = self.repeated, None
        if self.task != _current_task() or not self.parts:
            return arriving, {}, None
        cuts = {index: None if index < 0 else arriving[places[index]] for index in self.parts}
        if any(i < 0 or not (g is None or self._is_all(i, g)) for i, g in cuts.items()):
            return arriving, {i: g for i, g in cuts.items() if i < 0 or g is not None}, ran
        rest = list(arriving)
        for index in cuts:
            rest[places[index]] = None
        return rest, {}, None

    def _is_all(self, index: int, total: torch.Tensor) -> bool:
        """Whether the part that was given to result ``index`` is all that arrives there. Where this will be
        differentiated, another tensor with the same numbers may be another function."""
        part, version = self.parts[index]
        if total is not part and (torch.is_grad_enabled() or not torch.equal(total, part)):
            return False
        return part._version == version


class _Link:
    """One result and the earlier ones that it is computed from, by their numbers in ``BackwardPlan.between``, as
    ``under`` has them for each; ``read`` gives what the compiled node has saved."""

    __slots__ = (
        "_collector", "_indices", "_leaves", "_reach", "_read", "_repetition", "_result", "_under",
    )  # fmt: skip

    def __init__(
        self,
        repetition: Repetition,
        read: Callable[[Any], list[Any]],
        result: int,
        under: Mapping[int, Sequence[int]],
        leaves: Sequence[int],
        collector: Collector,
        reach: Reach,
    ) -> None:
        self._collector, self._reach = collector, reach
        self._repetition = repetition
        self._read = read
        self._result = result
        self._indices = under[result]
        self._under = under
        self._leaves = frozenset(leaves)

    def wanted(self, node: Any, earlier: Sequence[Watched]) -> Sequence[int]:
        """The earlier results whose gradients somebody looks at in this backward, and those that lead there: what
        arrives at one of those goes on from there as a whole, as infinite parts would not add up to the same."""
        watched = dict(zip(self._indices, earlier, strict=True))
        if not chooses():
            looked_at = {i for i, one in watched.items() if i in self._leaves or one.is_looked_at()}
            return self._with_those_between(looked_at, self._indices)
        chosen = {i for i, one in watched.items() if one.is_chosen()}
        if any(leads_on(*edge) for edge in edges_of_inputs(node).values()):
            reached: Sequence[int] = [i for i, one in watched.items() if i in chosen or one.leads_on()]
        else:  # the compiled backward does not run, and only hands over what arrives at it
            self._collector.pass_between(node, self._result, self._reach.earlier(chosen))
            reached = self._with_those_between(chosen, self._indices)
        looked_at = {i for i in reached if i in chosen or watched[i].is_looked_at()}
        return self._with_those_between(looked_at, reached)

    def _with_those_between(self, looked_at: Set[int], reached: Sequence[int]) -> Sequence[int]:
        """Of earlier results that are ``reached`` those that are ``looked_at``, and those that lead there."""
        return [i for i in reached if i in looked_at or not looked_at.isdisjoint(self._under.get(i, ()))]

    def gradients(
        self, node: Any, gradient: torch.Tensor, wanted: Sequence[int]
    ) -> list[torch.Tensor | None]:
        """Of each earlier result's gradient, if it is ``wanted``, the part that comes from here and not through another
        one of those."""
        wanted = self._led(node, wanted)
        repetition = self._repetition
        run = node.given.repeat(partial(self._repeat, node))
        tensors = [repetition.earlier(run, index) for index in wanted]
        differentiated = torch.is_grad_enabled()
        with torch.enable_grad(), replacing((tensor, None) for tensor in tensors):
            parts: Sequence[Any] = torch.autograd.grad(
                repetition.result(run, self._result),
                tensors,
                gradient,
                retain_graph=True,
                create_graph=differentiated,
                allow_unused=True,
            )
        if differentiated:
            returned = repetition.read.of_call(node, self._read(node))
            parts = repetition.leading_on(parts, run, [gradient], returned)
        found = dict(zip(wanted, parts, strict=True))
        for index, part in found.items():
            if part is not None:
                node.given.add(index, part)
        return [found.get(index) for index in self._indices]

    def _led(self, node: Any, wanted: Sequence[int]) -> Sequence[int]:
        """The earlier results that this backward gets to. Nothing arrives at one behind what an earlier backward has
        let go of: the compiled backward refuses then, or this one at once, so that no hook is called with None."""
        targets = [self._reach.earlier([index]) for index in wanted]
        are_led = self._collector.lead_between(node, self._result, targets)
        if all(are_led):
            return wanted
        led = [index for index, is_led in zip(wanted, are_led, strict=True) if is_led]
        if not led or any(node.watched[index].is_looked_at() for index in wanted if index not in led):
            raise released()
        return led

    def _repeat(self, node: Any) -> Run:
        inputs = possible(self._repetition.inputs(node, self._collector.inputs(node)))
        return self._repetition.run(inputs, node.remembered.random)


class _Between(torch.autograd.Function):
    """The identity on ``result``, in place, which depends on the earlier results besides."""

    @staticmethod
    def forward(
        ctx: Any, link: _Link, node: Any, seen: list[Watched], result: torch.Tensor, *earlier: torch.Tensor
    ) -> torch.Tensor:
        ctx.set_materialize_grads(False)
        ctx.mark_dirty(result)
        ctx.link = link, node, seen
        ctx.places = dict.fromkeys(seen)  # of earlier results that have hooks (``Watched``)
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        link, node, earlier = ctx.link
        wanted = () if gradients[0] is None else link.wanted(node, earlier)
        if not wanted:
            return (None, None, None, *gradients, *[None] * len(earlier))
        return (None, None, None, *gradients, *link.gradients(node, gradients[0], wanted))


def _leading_to_some(plan: JointPlan, backward_plan: BackwardPlan) -> frozenset[int]:
    """The results with earlier ones, themselves no earlier ones of others, that do not lead to all results and inputs:
    autograd's engine takes them to lead to whatever the compiled function's node does, and would call their hooks."""
    everything = {*plan.differentiable, *(m.graph_index for m in plan.mutated if m.differentiable)}
    partly = [set(leading) for _, leading in backward_plan.partly]
    watched = set(earlier_results(backward_plan.between))
    return frozenset(
        index
        for index, earlier in backward_plan.between
        if index not in watched
        and (everything - {index, *earlier} or any(index not in leading for leading in partly))
    )


Linking: TypeAlias = Callable[[Sequence[Any], Any, Sequence[Any]], dict[int, Any]]
"""Called with the graph's results, the compiled function's node and the inputs; returns the program's results that it
has made, by their positions."""


def linking(
    plan: JointPlan,
    backward_plan: BackwardPlan,
    repetition: Repetition,
    read: Callable[[Any], list[Any]],
    collector: Collector,
    reach: Reach,
) -> Linking:
    """What puts the nodes between the graph's results, where they belong, into autograd's graph; ``read`` gives what
    the compiled function's node has saved."""
    leaves = backward_plan.leaves
    under = dict(backward_plan.between)
    links = [
        (i, parts, _Link(repetition, read, i, under, leaves, collector, reach))
        for i, parts in backward_plan.between
    ]
    hooked = _leading_to_some(plan, backward_plan)
    make_view = view_maker(plan)
    written = {m.graph_index: m.input_index for m in plan.mutated if m.differentiable}
    apply: Callable[..., Any] = super(torch.autograd.Function, _Between).apply

    def link(results: Sequence[Any], node: Any, inputs: Sequence[Any]) -> dict[int, Any]:
        for index in leaves:
            results[index].requires_grad_()
        watched: dict[int, Watched] = {}
        node.watched = watched
        made: dict[int, Any] = {}
        followers: list[weakref.ref[Any]] = []

        def tensor_of(index: int) -> Any:
            if index < 0:
                return make_view(-1 - index, inputs, results, made)
            return inputs[written[index]] if index in written else results[index]

        for index, indices, between in links:
            result = tensor_of(index)
            version = result._version
            earlier = [tensor_of(i) for i in indices]
            for i, tensor in zip(indices, earlier, strict=True):
                if i not in watched:
                    watched[i] = Watched(tensor, followers)
            apply(between, node, [watched[i] for i in indices], result, *earlier)
            if result.grad_fn is not None:
                followers.append(weakref.ref(result.grad_fn))
            _set_versions((result,), (version,))
            if index in hooked and result._backward_hooks is None:
                prepare_hooks_of(result)
        for i in repetition.read.indices:
            if i not in watched:
                watched[i] = Watched(tensor_of(i))
        for each in watched.values():
            each.begin()
        return made

    return link
