"""Aliasing: how each result of the program relates to its inputs and to its other results.

A result in an input's memory is made again from the real input; results that share memory of their own are made again
from one hidden base; what eager would return as separate memory is made separate where recording had merged it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import field, replace
from operator import itemgetter
from typing import Any

import torch

from aot_autograd.plan import (
    AsInference,
    Constant,
    FromGraph,
    FromInput,
    FromResult,
    Recipe,
    Replay,
    SameAs,
    ViewOf,
)
from aot_autograd.recording.storage import Storage, ViewStep
from aot_autograd.recording.trace import Trace, TracedTensor
from aot_autograd.recording.values import Value
from aot_autograd.views.memory import read_in_memory
from aot_autograd.views.shared_histories import reformed_base, steps_behind, whole_with_history
from aot_autograd.views.version_counters import counting_apart, counts_apart
from aot_autograd.views.views import HIDDEN_VIEWS, IDENTITIES, apply_step, is_view
from fx_interface.errors import UnsupportedProgramError
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import Expr, Symbol, symbol
from fx_interface.tensor_spec import is_differentiable

aten = torch.ops.aten


@dataclass(slots=True)
class GraphResult:
    """A result of the forward graph: a value or a size, and the traced tensor that autograd knows it by."""

    value: Value | Expr
    tensor: TracedTensor | None


@dataclass(slots=True)
class Root:
    """A result that others of its memory are views of, in the place of the memory's base; where in the graph it is."""

    tensor: TracedTensor
    index: int | None = None


@dataclass(slots=True)
class Results:
    """The forward graph's results and how the program's results are made of them. ``views``: those of the program's
    that are made again as views and require grad. ``roots``: by the storage (its identity)."""

    graph: list[GraphResult] = field(default_factory=list)
    recipes: list[Recipe] = field(default_factory=list)
    views: dict[int, TracedTensor] = field(default_factory=dict)
    roots: dict[int, Root] = field(default_factory=dict)


def memory_root(value: Value) -> Value:
    """The value whose memory ``value`` may lie in."""
    return _root(value, HIDDEN_VIEWS)


def _root(value: Value, hidden: Collection[Any]) -> Value:
    while not value.is_input:
        parent = value.args[0] if value.args else None
        if type(parent) is not Value:
            return value
        if isinstance(value.op, torch._ops.OpOverload):
            if not (is_view(value.op) or value.op in hidden):
                return value
        elif not (isinstance(parent.op, torch._ops.OpOverload) and is_view(parent.op)):
            return value
        value = parent
    return value


def classify(trace: Trace, outputs: Sequence[Any], *, training: bool) -> Results:
    """Recipes for the program's ``outputs`` (traced tensors, sizes, constants), in order.

    In ``training`` a differentiable view is made again from its base outside of the compiled function, because torch
    forbids to write in place to a view that a custom function returned.
    """
    found = Results()
    seen: dict[int, int] = {}
    bases: dict[int, int] = {}
    sharing = Counter(
        id(tensor.storage_record)
        for tensor in {id(o): o for o in outputs if isinstance(o, TracedTensor)}.values()
    )
    if training:
        sharing.update(
            id(tensor.storage_record)
            for tensor in outputs
            if isinstance(tensor, TracedTensor) and _is_differentiable_view(tensor)
        )
    sharing.update(
        id(tensor.storage_record)
        for tensor in outputs
        if isinstance(tensor, TracedTensor)
        and (tensor.is_neg() or tensor.is_conj() or _reaches_into_itself(trace, tensor))
    )
    found.roots = _roots(outputs)
    for position, output in enumerate(outputs):
        if isinstance(output, torch.Tensor) and id(output) in seen:
            found.recipes.append(SameAs(seen[id(output)]))
            continue
        if isinstance(output, torch.Tensor):
            seen[id(output)] = position
        recipe = _recipe(trace, found, output, sharing, bases)
        if isinstance(recipe, FromGraph) and recipe in found.recipes:
            # Another object, of which autograd may later be told something else.
            operator = "aten::alias.default" if output.requires_grad else "aten::detach.default"
            recipe = ViewOf(recipe, (Replay(operator, (), (), None, False),))
        if isinstance(recipe, ViewOf):
            of = next((o for o, r in zip(outputs, found.recipes, strict=False) if r == recipe.base), None)
            recipe = replace(recipe, is_older=_is_older(output))
            if counts_apart(output, of):
                recipe = counting_apart(recipe, output, outputs, found.recipes)
        found.recipes.append(recipe)
        if isinstance(recipe, ViewOf) and output.requires_grad:
            found.views[position] = output
    _mark_inference(found, outputs)
    _return_born_sizes(trace, found)
    return found


def _roots(outputs: Sequence[Any]) -> dict[int, Root]:
    """By storage, what its results are made of again where the storage's base has no gradient, but they have, or where
    the base has another form since."""
    by_storage: dict[int, dict[int, TracedTensor]] = {}
    for output in outputs:
        if isinstance(output, TracedTensor):
            by_storage.setdefault(id(output.storage_record), {})[id(output)] = output
    found = {}
    for key, sharing in by_storage.items():
        tensors = list(sharing.values())
        storage = tensors[0].storage_record
        root = reformed_base(storage, tensors)
        if root is None and len(tensors) > 1:
            root = whole_with_history(storage, tensors)
        if root is not None:
            found[key] = Root(root)
    return found


def _return_born_sizes(trace: Trace, found: Results) -> None:
    """Views that are made again need the sizes from data that they were made with: the graph returns those, too."""
    pending: list[Any] = [
        step for recipe in found.recipes if isinstance(recipe, ViewOf) for step in recipe.steps
    ]
    wanted: dict[Symbol, None] = {}
    while pending:
        item = pending.pop()
        if isinstance(item, Replay):
            pending += [*item.args, *(value for _, value in item.kwargs)]
        elif isinstance(item, (list, tuple)):
            pending.extend(item)
        elif isinstance(item, Expr):
            wanted.update(dict.fromkeys(atom for atom in item.symbols if atom in trace.recorder.births))
    for atom in sorted(wanted, key=lambda atom: atom.name):
        found.graph.append(GraphResult(symbol(atom.name), None))


def _mark_inference(found: Results, outputs: Sequence[Any]) -> None:
    """Results that the program made in another mode of inference than it was called in."""
    inside = torch.is_inference_mode_enabled()
    for position, (recipe, output) in enumerate(zip(found.recipes, outputs, strict=True)):
        if not isinstance(output, TracedTensor) or output.is_inference() is inside:
            continue
        if isinstance(recipe, (FromGraph, ViewOf)) and not _is_of_input(recipe):
            if inside:
                raise UnsupportedProgramError(
                    "AOT120", "the program leaves inference mode by itself and returns what it makes there"
                )
            found.recipes[position] = AsInference(recipe)


def _is_older(view: TracedTensor) -> bool:
    """Whether the view, which has no history, was made before a write that its base counts."""
    base = view.storage_record.base
    return not (view.requires_grad or base.is_inference()) and view.born < base._version


def _is_of_input(recipe: Recipe) -> bool:
    return isinstance(recipe, ViewOf) and isinstance(recipe.base, FromInput)


def _recipe(
    trace: Trace, found: Results, output: Any, sharing: Counter[int], bases: dict[int, int]
) -> Recipe:
    if isinstance(output, TracedTensor):
        storage = output.storage_record
        if storage.form is not None:
            assert storage.input_index is not None
            if storage.form.tensor is output:
                return FromInput(storage.input_index)
            _check_beside_form(output)
        root = found.roots.get(id(storage))
        if root is not None:
            return _behind(trace, found, root, output)
        if storage.input_index is not None or sharing[id(storage)] > 1:
            _check_history(output)
        if storage.input_index is not None:
            return _viewed(FromInput(storage.input_index), output.view_step)
        if sharing[id(storage)] > 1:
            return _viewed(FromGraph(_base(found, storage, bases)), output.view_step)
        found.graph.append(GraphResult(read_in_memory(trace.recorder, output), output))
        return FromGraph(len(found.graph) - 1)
    if isinstance(output, torch.Tensor):
        return _recipe(trace, found, trace.fresh(trace.lift(output)), sharing, bases)
    if isinstance(output, torch.SymInt | torch.SymBool):
        output = trace.expression(output)
    if isinstance(output, Expr):
        found.graph.append(GraphResult(output, None))
        return FromGraph(len(found.graph) - 1)
    if output is None or isinstance(output, bool | int | float | str):
        return Constant(output)
    raise UnsupportedProgramError("AOT113", f"the program returns a {type(output).__name__}")


def _reaches_into_itself(trace: Trace, tensor: TracedTensor) -> bool:
    """Whether the tensor is a view (``unfold``) in which one step along a dimension leads into the next row: who
    computes it would give each element a place of its own. Sizes that vary count as what they are in this trace:
    windows overlap whatever is viewed."""
    if tensor.view_step is None:
        return False
    spec, reach, env = tensor.value.spec, 0, trace.env
    if any(env.is_from_data(number) for number in (*spec.sizes, *spec.strides)):
        return any(step.op is aten.unfold.default for step in tensor.view_step.chain())
    steps = [
        (env.hint(stride), env.hint(size)) for stride, size in zip(spec.strides, spec.sizes, strict=True)
    ]
    for stride, size in sorted((step for step in steps if step[0] != 0), key=itemgetter(0)):
        if size != 1 and stride <= reach:
            return True
        reach += stride * (size - 1)
    return False


def _is_differentiable_view(tensor: TracedTensor) -> bool:
    steps = tensor.view_step.chain() if tensor.view_step else []
    return (
        tensor.requires_grad
        and any(step.op not in IDENTITIES for step in steps)
        and _gradient_follows_views(tensor)
    )


def _gradient_follows_views(tensor: TracedTensor) -> bool:
    """Whether the tensor, made again from its base by its views, would have a gradient."""
    steps = tensor.view_step.chain() if tensor.view_step else []
    return (
        tensor.storage_record.base.requires_grad
        and is_differentiable(tensor.dtype)
        and not any(step.no_grad or step.op is aten.detach.default for step in steps)
    )


def _check_history(tensor: TracedTensor) -> None:
    """A result that is viewed again must get its gradient through those views, not through a history of its own."""
    if tensor.requires_grad != _gradient_follows_views(tensor):
        raise UnsupportedProgramError(
            "AOT117", "a result shares memory with another tensor, but has a gradient of its own"
        )


def _check_beside_form(tensor: TracedTensor) -> None:
    """Autograd makes the history of a view from its base's when that changes: it is not to be told of another form."""
    if tensor.requires_grad:
        raise UnsupportedProgramError(
            "AOT112", "a differentiable view is returned of an input that changes its shape in place"
        )


def _base(found: Results, storage: Storage, bases: dict[int, int]) -> int:
    index = bases.get(id(storage))
    if index is None:
        index = bases[id(storage)] = len(found.graph)
        found.graph.append(GraphResult(storage.value, storage.base))
    return index


def _behind(trace: Trace, found: Results, root: Root, output: TracedTensor) -> Recipe:
    """Of a result that gets its gradient through another one, which shows all of their memory."""
    if root.index is None:
        root.index = len(found.graph)
        reformed = root.tensor.storage_record.reformed is root.tensor
        whole = read_in_memory(trace.recorder, root.tensor) if reformed else root.tensor.storage_record.value
        found.graph.append(GraphResult(whole, root.tensor))
    base = FromGraph(root.index)
    steps = steps_behind(output, root.tensor)
    return ViewOf(base, tuple(map(replay_of, steps))) if steps else base


def _viewed(base: FromGraph | FromInput, step: ViewStep | None) -> Recipe:
    if step is None:
        return base
    return ViewOf(
        base,
        tuple(replay_of(s) for s in step.chain()),
    )


def view_through(results: Results, position: int, earlier: Sequence[int]) -> None:
    """Make the view that is result ``position`` of the last one among the views ``earlier`` that it was made of.

    ``earlier`` are results that autograd leads to from the view. One that a write has given another history since is
    not among them.
    """
    recipe, step = results.recipes[position], results.views[position].view_step
    of = {id(results.views[other].view_step): other for other in earlier if other in results.views}
    behind = 0
    while isinstance(recipe, ViewOf) and step is not None and id(step) not in of:
        step, behind = step.parent, behind + 1
    if isinstance(recipe, ViewOf) and step is not None and behind:
        results.recipes[position] = ViewOf(FromResult(of[id(step)]), recipe.steps[-behind:])


def replay_of(step: ViewStep) -> Replay:
    """The step as the plan tells it."""
    return Replay(
        f"{step.op._schema.name}.{step.op._overloadname}",
        tuple(step.args),
        tuple(step.kwargs.items()),
        step.index,
        step.no_grad,
    )


_BEGINNING_LATER = frozenset(
    {
        aten.slice_scatter.default,
        aten.select_scatter.default,
        aten.diagonal_scatter.default,
        aten.as_strided_scatter.default,
    }
)
"""Operators whose kernels copy all memory of their argument, and so the offset of its first element."""


def separate(trace: Trace, results: Results, *, training: bool) -> None:
    """Copy results that would share memory with an input or with another result, where eager's do not, and detach those
    that have taken another form (``t_``) since they were made: what computes that form gives a view, as eager does not.

    In ``training`` also those that eager copied from another value, which the backward may have kept: the caller may
    write to such a result. And those that it copied from what begins in its memory where its argument does.
    """
    used: set[int] = set()
    for result in results.graph:
        if not isinstance(result.value, Value):
            continue
        root = memory_root(result.value)
        copied = (training or root.op in _BEGINNING_LATER) and not _owns(trace, result)
        if root.is_input or root.number in used or copied:
            result.value = _in_new_memory(trace, result)
            root = memory_root(result.value)
        used.add(root.number)
        if result.tensor is not None and result.tensor.storage_record.reformed is result.tensor:
            result.value = trace.recorder.call_again(aten.detach.default, (result.value,))


def _owns(trace: Trace, result: GraphResult) -> bool:
    """Whether the result's value was computed in the result's own storage."""
    assert isinstance(result.value, Value)
    assert result.tensor is not None
    return trace.owners.get(_root(result.value, ()).number) is result.tensor.storage_record


def _in_new_memory(trace: Trace, result: GraphResult) -> Value:
    """The result's value in a copy of its storage: the base is copied and viewed again, which keeps the strides."""
    tensor = result.tensor
    assert tensor is not None, result
    value = trace.recorder.call_again(aten.clone.default, (tensor.storage_record.value,))
    for step in tensor.view_step.chain() if tensor.view_step else ():
        value = apply_step(trace.recorder, step, value)
    return value


def add_mutation(trace: Trace, results: Results, storage: Storage, written: Collection[Value]) -> int:
    """Add the new value of an input's memory to the graph's results; returns its number.

    Copied if it lies in the memory of an input that is itself ``written``, as when two inputs are swapped.
    """
    value = storage.value
    if memory_root(value) in written:
        value = trace.recorder.call_again(aten.clone.default, (value,))
    results.graph.append(GraphResult(value, storage.base))
    return len(results.graph) - 1
