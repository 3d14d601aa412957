"""Finishing: a plan and compiled graphs become the callable that runs in the program's place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from aot_autograd.plan import JointPlan
from aot_autograd.runtime.inputs.conjugate_bits import unmarking
from aot_autograd.runtime.inputs.forms import giving_forms
from aot_autograd.runtime.inputs.overlap import OverlapCheck
from aot_autograd.runtime.inputs.write_back import WriteBack, count_more, count_writes
from aot_autograd.runtime.results import Maker, result_maker
from aot_autograd.runtime.training import training_function
from fx_interface.backend import CompiledGraph
from fx_interface.errors import StackError, refuses_layout
from fx_interface.execution.rehearsal import Rehearsal
from fx_interface.execution.undo import all_or_nothing, undoing

_creation = torch._C._autograd._get_creation_meta
_PLAIN = torch._C._autograd.CreationMeta.DEFAULT
_NotImplemented = torch._C._functions.NotImplemented  # type: ignore[attr-defined]  # not in the stubs


def finish(
    plan: JointPlan,
    forward: CompiledGraph,
    backward: CompiledGraph | None = None,
    *,
    fallback: Callable[..., Sequence[Any]] | None = None,
    rehearse: Rehearsal | None = None,
) -> CompiledGraph:
    """The callable that takes the program's inputs and returns its results, with gradients if the plan has a backward.

    Needs nothing of the trace, so a stored plan and stored compiled graphs suffice. ``fallback`` runs the program as it
    was written: used for second derivatives, and in calls whose inputs overlap in a way that the plan excludes;
    ``rehearse`` runs it on copies before, where it changes an input for good.
    Where a call raises, nothing was written and no generator has moved (``fx_interface.execution.undo``).
    """
    make = result_maker(plan)
    if plan.backward is not None:
        if backward is None:
            assert not plan.backward.gradient_of, "a plan with gradients needs its compiled graph"
            backward = _no_gradients
        run = training_function(plan, plan.backward, forward, backward, make, fallback)
    elif plan.is_plain:
        run = forward
    else:
        run = _inference(plan, forward, make)
    if plan.opens_grad and run is not forward:
        run = _with_gradients(run)
    if plan.marked:
        run = unmarking(plan, run)
    if plan.forms:
        run = giving_forms(plan, run)
    draws = plan.repeat.draws
    if draws and plan.may_fail:
        run = undoing(run, (), draws=True)
    views = tuple(m.input_index for m in plan.mutated if m.differentiable)
    as_written = _fallback(plan, fallback, rehearse)
    if plan.apart.written or views:
        run = _checked(OverlapCheck(plan.apart, fixed_sizes=not plan.symbols), views, run, as_written)
    if unfollowed := _written_unfollowed(plan):
        run = _without_refused(unfollowed, run, as_written)
    if plan.formed_views:
        run = _without_leaves(plan.formed_views, run, as_written)
    if plan.placed:
        run = _placed(plan.placed, run, as_written)
    if run is not forward and as_written is not None:
        run = _or_as_written(run, as_written)
    if run is not forward and (plan.may_fail or not draws):
        run = all_or_nothing(run)
    return run


def _fallback(
    plan: JointPlan, fallback: Callable[..., Sequence[Any]] | None, rehearse: Rehearsal | None
) -> CompiledGraph | None:
    """The program as it was written, which leaves nothing behind where it raises."""
    if fallback is None or not plan.may_fail:
        return fallback
    written = {m.input_index for m in plan.mutated} | {form.input_index for form in plan.forms}
    lasts = bool(plan.forms) or any(m.differentiable for m in plan.mutated)
    return undoing(fallback, sorted(written), draws=plan.repeat.draws, rehearse=rehearse if lasts else None)


def _with_gradients(run: CompiledGraph) -> CompiledGraph:
    def enabled(*inputs: Any) -> Sequence[Any]:
        with torch.enable_grad():
            return run(*inputs)

    return enabled


def _no_gradients() -> tuple[()]:
    """The backward of results that require grad although no gradient reaches an input."""
    return ()


def _inference(plan: JointPlan, forward: CompiledGraph, make: Maker | None) -> CompiledGraph:
    constants = plan.constants
    write_back = WriteBack(plan.mutated)
    returned = plan.returned
    versions, more = plan.versions, plan.versions_of_inputs

    def run(*inputs: Any) -> Sequence[Any]:
        results = forward(*inputs, *constants) if constants else forward(*inputs)
        write_back(inputs, results)
        if versions:
            count_writes(results, versions)
        if more:
            count_more(inputs, more)
        return results[:returned] if make is None else make(inputs, results)

    def run_without_gradients(*inputs: Any) -> Sequence[Any]:
        with torch.no_grad():
            results = forward(*inputs, *constants)
            write_back(inputs, results)
            count_writes(results, versions)
            count_more(inputs, more)
        return results[:returned] if make is None else make(inputs, results)

    return run_without_gradients if plan.no_grad else run


def _checked(
    overlaps: OverlapCheck,
    written: Sequence[int],
    run: CompiledGraph,
    fallback: Callable[..., Sequence[Any]] | None,
) -> CompiledGraph:
    """Calls that the plan does not fit take the fallback.

    Inputs that the program writes to must not share memory with others, and where autograd follows the
    write they must not be views: it cannot put a function's result in the place of a part of another tensor. Nor may
    they be what ``arange(out=)`` and the like have written to, whose backward raises: all results would lead there.
    """

    def checked(*inputs: Any) -> Sequence[Any]:
        found = overlaps.first(inputs)
        if found is not None:
            why = f"inputs {found[0]} and {found[1]} share memory and one of them is written"
            return _instead(why, inputs, fallback)
        for index in written:
            tensor = inputs[index]
            if tensor._is_view():
                return _instead(f"input {index} is a view and is written", inputs, fallback)
            if type(tensor.grad_fn) is _NotImplemented:
                return _instead(f"input {index} is written and has no derivative", inputs, fallback)
        return run(*inputs)

    return checked


def _written_unfollowed(plan: JointPlan) -> tuple[int, ...]:
    """Inputs that results lead to and that are written with gradients off."""
    followed = () if plan.backward is None else plan.backward.gradient_of
    return tuple(m.input_index for m in plan.mutated if not m.differentiable and m.input_index in followed)


def _without_refused(
    written: Sequence[int], run: CompiledGraph, fallback: Callable[..., Sequence[Any]] | None
) -> CompiledGraph:
    """Calls in which such an input is a view that was made with gradients off take the fallback: autograd refuses to
    read it after the write."""

    def checked(*inputs: Any) -> Sequence[Any]:
        for index in written:
            if inputs[index]._is_view() and _creation(inputs[index]) != _PLAIN:
                why = f"input {index} is a view that was made with gradients off, and is written"
                return _instead(why, inputs, fallback)
        return run(*inputs)

    return checked


def _without_leaves(
    shown: Sequence[int], run: CompiledGraph, fallback: Callable[..., Sequence[Any]] | None
) -> CompiledGraph:
    """Calls in which such an input is a leaf, or shows one, take the fallback: autograd lets no view of it change."""

    def checked(*inputs: Any) -> Sequence[Any]:
        for index in shown:
            tensor = inputs[index]
            source = tensor._base if tensor._is_view() else tensor
            if source.is_leaf and source.requires_grad:
                return _instead(f"a view of input {index}, a leaf, takes another form", inputs, fallback)
        return run(*inputs)

    return checked


def _or_as_written(run: CompiledGraph, as_written: CompiledGraph) -> CompiledGraph:
    """Calls whose tensors have other layouts than the graph was compiled for run the program as it was written."""

    def run_or_fall_back(*inputs: Any) -> Sequence[Any]:
        try:
            return run(*inputs)
        except ValueError as error:
            if not refuses_layout(error):
                raise
        return as_written(*inputs)

    return run_or_fall_back


def _placed(
    places: Sequence[tuple[int, int, int]], run: CompiledGraph, fallback: Callable[..., Sequence[Any]] | None
) -> CompiledGraph:
    """Calls with an input that begins elsewhere in its memory, or whose memory ends too early for a view that the
    program takes of it by numbers, take the fallback."""

    def checked(*inputs: Any) -> Sequence[Any]:
        for index, begin, least in places:
            if begin >= 0 and inputs[index].storage_offset() != begin:
                why = f"input {index} begins at another element of its memory, in which the program names places"
                return _instead(why, inputs, fallback)
            if least and _elements_from(inputs[index]) < least:
                why = f"the memory of input {index} ends before a strided view that the program takes of it"
                return _instead(why, inputs, fallback)
        return run(*inputs)

    return checked


def _elements_from(tensor: torch.Tensor) -> int:
    """How many elements a tensor's memory holds from its first one on."""
    return tensor.untyped_storage().nbytes() // tensor.element_size() - int(tensor.storage_offset())


def _instead(why: str, inputs: Sequence[Any], fallback: Callable[..., Sequence[Any]] | None) -> Sequence[Any]:
    """The program as it was written; AOT302 where that was not kept."""
    if fallback is None:
        raise StackError("AOT302", why, action="pass a copy of it (.clone())")
    return fallback(*inputs)


def is_training(inputs: Sequence[Any]) -> bool:
    """Whether a call with these inputs records gradients."""
    return torch.is_grad_enabled() and any(isinstance(x, torch.Tensor) and x.requires_grad for x in inputs)
