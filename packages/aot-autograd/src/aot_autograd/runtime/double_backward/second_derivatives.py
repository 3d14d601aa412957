"""Second derivatives: a backward that will itself be differentiated runs the program again, as it was written.

A compiled backward graph has no derivative of its own. Under ``create_graph=True`` torch's autograd differentiates the
program's own operators instead, from the inputs, the random state and the autocast that the forward had, and the
gradients depend on inputs and incoming gradients as eager's do, to any order. Where that is not possible (an input is
gone or was changed since) the gradients are the compiled ones, and differentiating *them* raises AOT301: never a wrong
or missing second derivative.
"""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import torch

from aot_autograd.plan import BackwardPlan, FromGraph, JointPlan, SavedInput, ViewOf
from aot_autograd.runtime.double_backward.aliases import alias
from aot_autograd.runtime.double_backward.freed_inputs import (
    loosely,
    made_again,
    places_of_gone,
    with_its_hooks,
)
from aot_autograd.runtime.double_backward.read_results import ReadResults, Sources, replacing, through_results
from aot_autograd.runtime.double_backward.written_inputs import Before, copied_before
from aot_autograd.runtime.inputs.columns import items
from fx_interface.execution.undo import RandomStates, random_states, set_random_states

_VERSION: Final = operator.attrgetter("_version")
Program = Callable[..., Sequence[Any]]


class Run(NamedTuple):
    """``aliases`` of the inputs, what the program was given for them (``passed``), and what it made (``results``)."""

    aliases: list[Any]
    passed: list[Any]
    results: Sequence[Any]


_GONE = "one of its results, which has hooks, is gone or was changed in place since"
_NO_CUTS: Mapping[int, torch.Tensor | None] = MappingProxyType({})
_TWICE = (
    "[AOT301] a compiled function was differentiated twice, and it cannot be run again from its inputs: {why}\n"
    "  to do: run the part that needs second derivatives without the compiler"
)


class Remembered(NamedTuple):
    """What the forward keeps so that it can be repeated, beside what it saves for the compiled backward.

    ``owned``: a module's tensors, with their ``versions``; ``loose``: other inputs, by weak reference what can be made
    again (not where results are computed from each other, and where zeros may become NaN in a backward of some
    results).
    ``random``: the generators' states, if the program draws. ``before``: inputs that the program writes to.
    """

    owned: tuple[Any, ...]
    versions: tuple[int, ...]
    loose: tuple[tuple[Any, int], ...]
    random: RandomStates
    before: tuple[Before, ...] = ()

    def alive(self) -> list[Any]:
        """What there still is of it."""
        return [*self.owned, *(v() if isinstance(v, weakref.ref) else v for v, _ in self.loose)]

    def places_of_gone(self) -> list[torch.Tensor]:
        """Something in the place in autograd's graph of each input that is gone or written to."""
        written = [place for before in self.before if (place := before.place()) is not None]
        return [*written, *places_of_gone([value for value, _ in self.loose])]

    def let_go(self, with_inputs: bool) -> Remembered:
        """The same without large copies of written inputs and, ``with_inputs``, without the other inputs."""
        before, loose = self.before, self.loose
        if before:
            before = tuple([one.let_go() for one in before])
        if with_inputs:
            loose = tuple([(loosely(value), version) for value, version in loose])
        return Remembered(self.owned, self.versions, loose, self.random, before)


_NOTHING = Remembered((), (), (), ())


@contextmanager
def _outside_of_transforms() -> Iterator[None]:
    """Below the transforms of ``torch.func`` in which a gradient is asked for: the call was outside of them, where what
    it was given requires grad."""
    levels: Any = torch._C._functorch
    left = []
    while levels.peek_interpreter_stack() is not None:
        left.append(levels.pop_dynamic_layer_stack())
    try:
        yield
    finally:
        for layer in reversed(left):
            levels.push_dynamic_layer_stack(layer)


class Repetition:
    """How one program is repeated; ``why_not`` is empty if it can be."""

    def __init__(self, plan: JointPlan, backward_plan: BackwardPlan, program: Program | None) -> None:
        self.program = program
        self.why_not = "its graph was not kept" if program is None else plan.repeat.why_not
        self.draws = plan.repeat.draws and not self.why_not
        self.autocast = plan.repeat.autocast
        self.begins_with_gradients = not plan.opens_grad
        formed = {form.input_index: len(form.steps) for form in plan.forms}
        self.written = frozenset([*(m.input_index for m in plan.mutated), *formed])
        self.place_of = _places(plan)
        saved = [  # behind the inputs are the program's constants, which it makes again
            (s.index, n)
            for n, s in enumerate(backward_plan.saved)
            if isinstance(s, SavedInput) and s.index < plan.inputs
        ]
        self.saved = [index for index, _ in saved]
        self.slots = [slot for _, slot in saved]
        kept = set(self.saved)
        rest = [index for index in range(plan.inputs) if index not in kept]
        held = {
            *plan.owned,
            *backward_plan.cut,
        }  # of a cut input the node has an alias that nobody else holds
        self.owned = [index for index in rest if index in held]
        self.loose = [index for index in rest if index not in held]
        self.dirty = {m.graph_index: m.input_index for m in plan.mutated if m.differentiable}
        before = (
            ()
            if self.why_not
            else sorted(self.written & {*plan.repeat.old, *self.dirty.values(), *self.loose, *formed})
        )
        changed = {m.input_index: m.counted for m in plan.mutated}
        stays = {
            **{i: steps for i, steps in formed.items() if i not in changed},
            **{i: changed[i] for i in plan.repeat.settled},
        }
        followed = set(self.dirty.values())
        self.before = tuple((i, i in plan.repeat.old, stays.get(i), i not in followed) for i in before)
        self.cut = frozenset(backward_plan.cut)
        # Plain backwards need the program again for hooks of results that others are computed from, and where zeros may
        # have become NaN. What was written to leads to the node itself, and is not kept by it.
        again = not self.why_not and bool(
            backward_plan.between or backward_plan.leaves or backward_plan.nan_from_zeros
        )
        self.keep = [
            loosely if i in self.written else _as_it_is if again else with_its_hooks for i in self.loose
        ]
        self._owned, self._loose = items(self.owned), tuple(zip(self.loose, self.keep, strict=True))
        self._keeps_nothing = not (self.owned or self.loose or self.draws or self.before)
        self.lets_go_of_inputs = bool(self.loose) and not again
        self.lets_go = self.lets_go_of_inputs or bool(self.before)
        self.count = plan.inputs
        self.read = ReadResults(plan, backward_plan)
        self.wanted = backward_plan.gradient_of
        self.sparse = frozenset(one.input_index for one in backward_plan.behind)
        self.differentiable = (*self.dirty, *plan.differentiable)

    def remember(self, inputs: Sequence[Any]) -> Remembered:
        """Called by the forward, before anything is changed."""
        if self._keeps_nothing:
            return _NOTHING
        owned = self._owned(inputs)
        loose = []
        for index, keep in self._loose:  # a comprehension would be one more call, here at each step
            value = inputs[index]
            loose.append((keep(value), _version(value)))
        before: tuple[Before, ...] = ()
        if self.before:
            before = tuple(
                [Before.of(i, inputs[i], is_read, stays, quiet) for i, is_read, stays, quiet in self.before]
            )
        return Remembered(
            owned,
            tuple(map(_VERSION, owned)),
            tuple(loose),
            random_states() if self.draws else (),
            before,
        )

    def inputs(self, node: Any, saved: Sequence[Any] | Mapping[int, Any]) -> list[Any] | str:
        """The inputs that the forward of autograd's ``node`` had, or why the program cannot be repeated on them.

        Of what was ``saved``, those in ``slots`` are read.
        """
        remembered: Remembered = node.remembered
        if self.why_not:
            return self.why_not
        before = {one.number: one.again(node) for one in remembered.before}
        if any(one is None for one in before.values()):
            return "what one of its inputs held before it was written to is gone"
        made: list[Any] = [None] * self.count
        overwritten = getattr(node, "overwritten", ())
        for index, slot in zip(self.saved, self.slots, strict=True):
            if slot in overwritten:
                return "one of its inputs was changed in place since"
            made[index] = saved[slot]
        for index, tensor, version in zip(self.owned, remembered.owned, remembered.versions, strict=True):
            made[index] = tensor
            if tensor._version != version and index not in self.written:
                made[index] = copied_before(tensor, version)
                if made[index] is None:
                    return "a parameter or buffer was changed in place since"
        for index, (value, version) in zip(self.loose, remembered.loose, strict=True):
            if index in before:
                continue
            made[index] = value() if isinstance(value, weakref.ref) else value
            if made[index] is None and isinstance(value, weakref.ref):
                made[index] = made_again(node, index, version, value)
                if made[index] is None:
                    return "one of its inputs is gone"
            elif _version(made[index]) != version and index not in self.written:
                made[index] = copied_before(made[index], version)
                if made[index] is None:
                    return "one of its inputs was changed in place since"
        for index in self.written:  # what others held does not matter
            made[index] = before[index] if index in before else made[index].detach()
        for index in self.cut:  # which the program may differentiate by itself
            made[index] = made[index].detach().requires_grad_()
        return made

    def gradients(
        self,
        run: Run,
        arriving: Callable[[int], Any],
        returned: Mapping[int, torch.Tensor | None],
        cuts: Mapping[int, torch.Tensor | None] = _NO_CUTS,
    ) -> list[Any]:
        """Gradients of the inputs; ``arriving(i)`` is the gradient of graph result ``i`` or None, ``returned`` are the
        results of the first run that gradients may read (``ReadResults.of_call``).

        They are differentiable if gradients are on: a compiled backward also leaves those to torch that it cannot read.
        Inputs have been replaced by aliases: one that was computed from another must not be differentiated through.
        ``cuts``: earlier results whose gradient is this one, or that hand none on.
        """
        again = torch.is_grad_enabled()
        aliases = run.aliases
        with torch.enable_grad():
            pairs = [
                (self.result(run, i), g)
                for i in self.differentiable
                if (i in self.place_of or i in self.dirty) and (g := arriving(i)) is not None
            ]
            wanted = [aliases[index] for index in self.wanted]
            made: list[Any] = [None] * self.count
            if not pairs or not wanted:
                return made
            with replacing((self.earlier(run, index), gradient) for index, gradient in cuts.items()):
                found = torch.autograd.grad(
                    [result for result, _ in pairs],
                    wanted,
                    [gradient for _, gradient in pairs],
                    create_graph=again,
                    allow_unused=True,
                )
        arrived = [gradient for _, gradient in pairs]
        for index, gradient in zip(
            self.wanted, self.leading_on(found, run, arrived, returned) if again else found, strict=True
        ):
            made[index] = gradient
        return made

    def leading_on(
        self,
        gradients: Sequence[Any],
        run: Run,
        arrived: Sequence[torch.Tensor],
        returned: Mapping[int, torch.Tensor | None],
    ) -> Sequence[Any]:
        """Gradients of a repeated program that will be differentiated, led to the results that the first run has
        ``returned``."""
        if not returned:
            return gradients
        inputs = tuple(x for x in run.aliases if isinstance(x, torch.Tensor) and x.requires_grad)
        pairs = tuple((self.earlier(run, index), tensor) for index, tensor in returned.items())
        sources = Sources(inputs, (), tuple(pair for pair in pairs if pair[0].requires_grad)).with_more(
            arrived
        )
        return through_results(gradients, sources, partial(refuse, connected=inputs, why=_GONE))

    def run(self, inputs: Sequence[Any], random: RandomStates) -> Run:
        """The program runs again, so that it can be differentiated."""
        assert self.program is not None
        with _outside_of_transforms(), torch.enable_grad(), _random_state_of(random), self._autocasting():
            aliases = [
                alias(x, i in self.sparse) if isinstance(x, torch.Tensor) and x.requires_grad else x
                for i, x in enumerate(inputs)
            ]
            passed = list(aliases)
            for index in self.written:  # the inputs are not to be written again
                passed[index] = aliases[index].clone()
            with torch.set_grad_enabled(self.begins_with_gradients):
                return Run(aliases, passed, self.program(*passed))

    def result_again(self, node: Any, saved: Sequence[Any], index: int) -> torch.Tensor | None:
        """Graph result ``index`` of ``node``'s call; None where the program cannot be repeated."""
        if index not in self.place_of:
            return None
        inputs = self.inputs(node, saved)
        if isinstance(inputs, str):
            return None
        return self.result(self.run(inputs, node.remembered.random), index)

    def result(self, run: Run, index: int) -> torch.Tensor:
        """Graph result ``index``: an input that the program wrote to, one of its results, or what they are views of."""
        if index in self.dirty:
            written: torch.Tensor = run.passed[self.dirty[index]]
            return written
        place, is_base = self.place_of[index]
        found: torch.Tensor = run.results[place]
        if is_base:
            assert found._base is not None, "the program returned a view when it was traced"
            found = found._base
        return found

    def earlier(self, run: Run, index: int) -> torch.Tensor:
        """The program's result that other results are computed from, by its number in ``BackwardPlan.between``."""
        if index >= 0:
            return self.result(run, index)
        view: torch.Tensor = run.results[-1 - index]
        return view

    @contextmanager
    def _autocasting(self) -> Iterator[None]:
        with ExitStack() as stack:
            for device in ("cpu", "cuda"):
                dtype = dict(self.autocast).get(device)
                if dtype is not None or torch.is_autocast_enabled(device):
                    stack.enter_context(torch.autocast(device, dtype, enabled=dtype is not None))
            yield


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


def _places(plan: JointPlan) -> dict[int, tuple[int, bool]]:
    """For each graph result the program's result that it is, or (True) that is a view of it, which autograd follows."""
    found: dict[int, tuple[int, bool]] = {}
    for place, recipe in enumerate(plan.recipes):
        if isinstance(recipe, ViewOf) and isinstance(recipe.base, FromGraph) and not _is_cut(recipe):
            found.setdefault(recipe.base.index, (place, True))
    for place, recipe in enumerate(plan.recipes):
        if isinstance(recipe, FromGraph):
            found[recipe.index] = (place, False)
    return found


def _is_cut(view: ViewOf) -> bool:
    """Whether no gradient goes from the view to what it is a view of."""
    return any(step.no_grad or step.op == "aten::detach.default" for step in view.steps)


@contextmanager
def _random_state_of(states: RandomStates) -> Iterator[None]:
    """The generators as they were, if there are ``states``; afterwards as they are now."""
    if not states:
        yield
        return
    now = random_states()
    try:
        set_random_states(states)
        yield
    finally:
        set_random_states(now)


def _as_it_is(value: Any) -> Any:
    return value


def _version(value: Any) -> int:
    return value._version if isinstance(value, torch.Tensor) else 0
