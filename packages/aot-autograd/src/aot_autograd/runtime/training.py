"""Training: one ``torch.autograd.Function`` whose forward and backward are the compiled graphs.

What the forward computes for the backward alone is kept beside autograd's saved tensors, so that the backward can let
go of each piece when it has read it, as eager's graph does node by node; a backward that is to be repeated keeps all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch

from aot_autograd.plan import BackwardPlan, JointPlan, SavedInput, earlier_results
from aot_autograd.runtime.double_backward.second_derivatives import Program, Repetition
from aot_autograd.runtime.gradients.backward import Backward
from aot_autograd.runtime.gradients.between_results import Given, linking
from aot_autograd.runtime.gradients.saved_values import Choice
from aot_autograd.runtime.hooks.chosen_tensors import Reach, chooses
from aot_autograd.runtime.hooks.partially_used_inputs import PartlyReached, led_to
from aot_autograd.runtime.hooks.result_hooks import prepare_hooks
from aot_autograd.runtime.hooks.unreached_inputs import guard_hooks
from aot_autograd.runtime.hooks.watched_results import watch
from aot_autograd.runtime.inputs.columns import items
from aot_autograd.runtime.inputs.write_back import FreshVersions, WriteBack, count_more, count_writes
from aot_autograd.runtime.results import Maker
from aot_autograd.runtime.saved import Kept, owned, reader
from fx_interface.backend import CompiledGraph
from fx_interface.execution.undo import leaves_something

_NOTHING_MADE: dict[int, Any] = {}
_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)
_top_hooks = torch._C._autograd._top_saved_tensors_default_hooks


def training_function(
    plan: JointPlan,
    backward_plan: BackwardPlan,
    forward: CompiledGraph,
    backward: CompiledGraph,
    make: Maker | None,
    program: Program | None,
) -> CompiledGraph:
    """The callable for a plan with a backward. ``program`` is run again where a gradient will be differentiated."""
    repetition = Repetition(plan, backward_plan, program)
    dirty = sum(m.differentiable for m in plan.mutated)
    read = reader(plan, backward_plan)
    compute = Backward(plan, backward_plan, backward, repetition)
    reach = _reach(plan, backward_plan)
    tensors: list[int] = []
    methods = {
        "tensor_inputs": tensors,
        "result_again": staticmethod(_result_again_method(repetition, read, dirty)),
        "forward": staticmethod(_forward_method(plan, backward_plan, forward, repetition, tensors)),
        "backward": staticmethod(_with_hooks_guarded(plan, backward_plan, compute, reach)),
        "following": staticmethod(reach.following),
    }
    function: Any = type("CompiledFunction", (torch.autograd.Function,), methods)
    # The layer that Function.apply adds serves function transforms only and costs as much as a small operator.
    apply = super(torch.autograd.Function, function).apply
    link = None
    if _is_linked(backward_plan):
        link = linking(plan, backward_plan, repetition, read, compute.collector, reach)
    cut = backward_plan.cut
    first = dirty + plan.differentiable[0] if plan.differentiable else 0
    hooked = _sharing_a_node(plan, backward_plan)
    partly = PartlyReached(plan, backward_plan, methods, _computing_chosen(compute, reach))
    read_results = repetition.read
    watching = bool(read_results.unsaved)
    if make is None and link is None and not (dirty or cut or hooked or partly.inputs or watching):
        return lambda *inputs: apply(*inputs)

    def run_and_make(*inputs: Any) -> Sequence[Any]:
        followed = _cut(inputs, cut) if cut else inputs
        chosen = partly.chosen(inputs) if partly.inputs else None
        results, node = partly.run(inputs, followed, chosen) if chosen else (apply(*followed), None)
        try:
            if node is None and (hooked or watching or link is not None):
                node = results[first].grad_fn
                if node is None:  # nothing asks for gradients in this call
                    return results[dirty:] if make is None else make(inputs, results[dirty:], _NOTHING_MADE)
                if hooked:
                    prepare_hooks(results, hooked, node)
            if dirty:
                results = results[dirty:]
            if link is None and (watching or chosen):
                watch(node, results, read_results.indices if chosen else read_results.unsaved)
            made = link(results, node, inputs) if link is not None else _NOTHING_MADE
            return results if make is None else make(inputs, results, made)
        except BaseException as error:
            if plan.mutated:
                leaves_something(error)
            raise

    return run_and_make


def _reach(plan: JointPlan, backward_plan: BackwardPlan) -> Reach:
    numbers = enumerate(earlier_results(backward_plan.between), plan.inputs)
    return Reach(
        backward_plan.gradient_of,
        led_to(plan, backward_plan),
        _places_of_gradients(plan),
        {index: number for number, index in numbers},
    )


def _result_again_method(
    repetition: Repetition, read: Callable[[Any], list[Any]], dirty: int
) -> Callable[[Any, int], torch.Tensor | None]:
    def method(node: Any, output: int) -> torch.Tensor | None:
        try:
            saved = read(node)
        except RuntimeError:  # a backward has let go of it
            return None
        return None if output < dirty else repetition.result_again(node, saved, output - dirty)

    return method


def _cut(inputs: Sequence[Any], cut: Sequence[int]) -> list[Any]:
    """The inputs, those in ``cut`` without their history. Results that require grad, which depend on leaves that the
    program made, get a node where nothing else has one: one of them is a leaf then."""
    followed = [x.detach() if i in cut else x for i, x in enumerate(inputs)]
    if any(inputs[i].requires_grad for i in cut) and not any(
        isinstance(x, torch.Tensor) and x.requires_grad for x in followed
    ):
        followed[cut[0]].requires_grad_()
    return followed


def _sharing_a_node(plan: JointPlan, backward_plan: BackwardPlan) -> tuple[int, ...]:
    """Outputs of the compiled function's node that may be hooked: no node of ``between_results.py`` follows them."""
    dirty = [m.graph_index for m in plan.mutated if m.differentiable]
    outputs = [*enumerate(dirty), *((len(dirty) + index, index) for index in plan.differentiable)]
    if len(outputs) < 2:
        return ()
    linked = {index for index, _ in backward_plan.between}
    return tuple(output for output, index in outputs if index not in linked)


def _forward_method(
    plan: JointPlan,
    backward_plan: BackwardPlan,
    forward: CompiledGraph,
    repetition: Repetition,
    tensors: list[int],
) -> Callable[..., Any]:
    """``tensors``: gets the inputs that are tensors, which autograd's node has edges for, by the first call."""
    constants, returned = plan.constants, plan.returned
    save = _saving(plan, backward_plan)
    write_quietly = WriteBack([m for m in plan.mutated if not m.differentiable])
    dirty = [m for m in plan.mutated if m.differentiable]
    write_dirty = WriteBack(dirty, later=1)  # which mark_dirty counts
    constant = sorted(set(range(returned)) - set(plan.differentiable))
    symbols = [position for _, position in plan.symbols]
    born = [index for _, index in plan.born]
    versions, more = plan.versions, plan.versions_of_inputs
    remember = repetition.remember
    linked = _is_linked(backward_plan)
    writes = bool(plan.mutated)
    refresh = FreshVersions(returned)

    def method(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
        ctx.remembered = remember(inputs)
        if not tensors:
            tensors.extend([i for i, value in enumerate(inputs) if isinstance(value, torch.Tensor)])
        if linked:
            ctx.given = Given()
        given = inputs + constants if constants else inputs
        results = forward(*given)
        refresh(results, given)
        ctx.materialize_grads = False  # as ``set_materialize_grads`` does, without the call
        save(ctx, given, results)
        if writes and any(tensor.is_inference() for tensor in ctx.to_save):
            raise RuntimeError(_INFERENCE)  # as autograd does, which comes to it when the inputs are written
        if symbols or born:
            ctx.sizes = [*(inputs[position] for position in symbols), *(results[index] for index in born)]
        if writes:
            write_quietly(inputs, results)
        if versions:
            count_writes(results, versions)
        if more:
            count_more(inputs, more)
        if constant:
            ctx.mark_non_differentiable(*[r for i in constant if isinstance(r := results[i], torch.Tensor)])
        if not dirty:
            return tuple(results[:returned])
        write_dirty(inputs, results)
        ctx.mark_dirty(*[inputs[m.input_index] for m in dirty])
        return (*[inputs[m.input_index] for m in dirty], *results[:returned])

    return method


def _saving(
    plan: JointPlan, backward_plan: BackwardPlan
) -> Callable[[Any, Sequence[Any], Sequence[Any]], None]:
    """What hands a call's saved values to its node: those that the backward alone gets beside autograd's."""
    everything = [(isinstance(source, SavedInput), source.index) for source in backward_plan.saved]
    flags = owned(plan, backward_plan)
    shared = [pair for pair, own in zip(everything, flags, strict=True) if not own]
    own_results = items([i for (_, i), own in zip(everything, flags, strict=True) if own])
    count = plan.inputs + len(plan.constants)
    pick = items([i if is_input else count + i for is_input, i in shared])

    def save(ctx: Any, given: Sequence[Any], results: Sequence[Any]) -> None:
        if _top_hooks(True) is not None:  # the user wants to see all that is saved
            ctx.kept = None
            ctx.to_save = tuple([given[i] if is_input else results[i] for is_input, i in everything])
            return
        ctx.kept = list(own_results(results))
        ctx.to_save = pick((*given, *results)) if shared else ()

    return save


def _places_of_gradients(plan: JointPlan) -> list[int]:
    """The outputs of the compiled function's node at which gradients may arrive."""
    dirty = sum(m.differentiable for m in plan.mutated)
    return [*range(dirty), *(dirty + index for index in plan.differentiable)]


def _with_hooks_guarded(
    plan: JointPlan,
    backward_plan: BackwardPlan,
    compute: Backward,
    reach: Reach,
) -> Callable[..., Any]:
    """The backward, which looks after the hooks of inputs where not every result has a gradient, and in one of chosen
    tensors leaves out what leads to none of them."""
    expected = _places_of_gradients(plan)
    leading = led_to(plan, backward_plan)

    def method(ctx: Any, *grads: Any) -> Any:
        if chooses():
            arrived, unwanted = reach.reached(ctx, grads)
            if not unwanted:  # all else leads to one of the inputs
                return of_those(ctx, arrived, None)
            gradients = list(of_those(ctx, arrived, Choice(reach.targets(ctx, unwanted), grads)))
            for index in unwanted:
                gradients[index] = None
            return tuple(gradients)
        return of_those(ctx, grads, None)

    def of_those(ctx: Any, grads: Sequence[Any], choice: Choice | None) -> Any:
        for place in expected:
            if grads[place] is None:
                gradients = compute(ctx, grads, False, choice)
                absent = [i for i, places in leading.items() if all(grads[place] is None for place in places)]
                if absent:
                    guard_hooks(ctx, absent, _inputs_at_hand(ctx, grads))
                return gradients
        return compute(ctx, grads, True, choice)

    return method


def _computing_chosen(compute: Backward, reach: Reach) -> Callable[[Any, Sequence[Any]], Sequence[Any]]:
    """The compiled backward with gradients that have arrived before all have."""

    def method(ctx: Any, grads: Sequence[Any]) -> Sequence[Any]:
        if chooses():
            arrived, unwanted = reach.reached(ctx, grads)
            return compute(ctx, arrived, False, Choice(reach.targets(ctx, unwanted), grads))
        return compute(ctx, grads)

    return method


def _inputs_at_hand(ctx: Any, grads: Sequence[Any]) -> list[Any]:
    """What there still is of the forward's inputs, and other tensors; what hooks have packed is left alone."""
    alive: list[Any] = ctx.remembered.alive()
    later: Kept | None = getattr(ctx, "later", None)
    if later is not None:
        return [*alive, *(later.saved or ())]
    if ctx.kept is None or all(gradient is None for gradient in grads):
        return alive
    with suppress(RuntimeError):  # one of them was overwritten
        return [*alive, *ctx.saved_tensors]
    return alive


def _is_linked(backward_plan: BackwardPlan) -> bool:
    return bool(backward_plan.between or backward_plan.leaves)
