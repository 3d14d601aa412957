"""``torch.autograd.grad`` inside of the program: one node, whose results are learnt by running the graph so far.

Operations are learnt one by one, on tensors that know nothing of each other. What a gradient is, and which tensors have
none, follows from all operations together: so those that lead to the outputs run once more, connected, on tensors
without data, and torch's engine answers. Ahead-of-time autograd does the same with the node itself.

    u = net(x); du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]      ->  one graph
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch.fx import Node
from torch.fx.node import map_arg

from dynamo_capture.foundation.break_kinds import RUNS_AUTOGRAD
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.attributes import plain_attribute
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.values import Const, ListValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec
from fx_interface.torch_internals.modes import restored

_SIGNATURE = inspect.signature(torch.autograd.grad)


def grad(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The call as one node; GraphBreak CAP203 where its answer depends on more than the graph."""
    bound = _SIGNATURE.bind(*args, **kwargs)
    outputs = _tensors(tx, bound.arguments["outputs"], "outputs")
    inputs = _tensors(tx, bound.arguments["inputs"], "inputs")
    if tx.truth(bound.arguments.get("is_grads_batched", Const(False))):
        raise _refused("gradients of batches are taken inside the compiled function")
    _check_surroundings(tx, outputs, inputs)
    values: list[TensorValue] = []
    for value in (*args, *kwargs.values()):
        value.frozen(tx, values)
    result, fakes = _run(tx, args, kwargs, values, _is_outermost(tx.output))
    if tx.output.may_be_recorded:  # then gradients are on where the backward begins
        again, _ = _run(tx, args, kwargs, values, True)
        if [part is None for part in again] != [part is None for part in result]:
            raise _refused("torch.autograd.grad is called in a backward whose own gradients have other paths")
    described = tx.tensors.describe_result(result, fakes, [False])
    node = tx.output.call(
        "call_function",
        torch.autograd.grad,
        tuple([value.argument(tx) for value in args]),
        {name: value.argument(tx) for name, value in kwargs.items()},
        tx.tensors.spec_tree(described, values),
        tx.where(),
        pure=True,
        saves=True,
    )
    return tx.tensors.result_of(node, described, values)


def _refused(what: str) -> GraphBreak:
    return GraphBreak(RUNS_AUTOGRAD, what)


def _tensors(tx: Context, value: Value, name: str) -> list[TensorValue]:
    value = tx.force(value)
    items = value.items if isinstance(value, (TupleValue, ListValue)) else [value]
    found: list[TensorValue] = []
    for item in map(tx.force, items):
        if not isinstance(item, TensorValue):
            raise _refused(f"{item.describe()} is one of the {name} of torch.autograd.grad")
        is_plain = item.meta.cls in PLAIN_CLASSES  # of another class its gradients are, too
        if type(item) is TensorValue and not is_plain:
            raise _refused(f"gradients of a {item.meta.cls.__name__} are taken inside the compiled function")
        found.append(item)
    return found


def _check_surroundings(tx: Context, outputs: list[TensorValue], inputs: list[TensorValue]) -> None:
    """The graph must hold all operations between ``inputs`` and ``outputs``, and no hook may look on."""
    graph = tx.output
    if graph.bodies or not (_is_outermost(graph) or _is_apart(graph, inputs)):
        raise _refused("torch.autograd.grad is called where a function is transformed or run again")
    if tx.blocks:
        raise _refused("torch.autograd.grad is called inside a block of a mode")
    if tx.effects.hooks:
        raise _refused("torch.autograd.grad is called after a hook was registered on a tensor")
    if graph.born:
        raise _refused("torch.autograd.grad is called after a size from data was met")
    given = _given(tx)
    for value in inputs:
        if value.real is None or value.source is None:
            continue
        if value.real._backward_hooks:
            raise _refused("a hook is registered on a tensor whose gradient is taken")
        if value.real.retains_grad:
            raise _refused("a tensor whose gradient is taken retains it")
        tx.guards.equals(plain_attribute(tx, value.source, "retains_grad"), False)
        hooks, source = value.real._backward_hooks, plain_attribute(tx, value.source, "_backward_hooks")
        if hooks is None:
            tx.guards.is_object(source, None)
        else:  # what had hooks, and what a compiled function returned
            tx.guards.length(source, hooks)
    wanted = {graph.use(value.node) for value in inputs}
    if not any(node in given for node in wanted):
        return  # nothing outside of the graph depends on what was made in it
    for node in _needed([graph.use(value.node) for value in outputs]):
        if node in given and node not in wanted and _has_history(given[node]):
            raise _refused(
                f"the gradient may lead through {node.name}, which was computed outside of the graph"
            )


def _is_outermost(graph: Any) -> bool:
    return getattr(graph, "parent", None) is None


def _is_apart(graph: Any, inputs: list[TensorValue]) -> bool:
    """Whether the gradients are taken in the backward of a function of the program, of what that backward makes and of
    leaves: all that they lead through is in its part of the graph then."""
    if getattr(graph, "derives", None) is None or not _is_outermost(graph.parent.parent):  # its forward's
        return False
    return all(
        value.node.graph is graph.graph or (value.source is not None and value.meta.is_leaf)
        for value in inputs
    )


def _has_history(example: Any) -> bool:
    if isinstance(example, Node):
        spec = example.meta.get(SPEC_KEY)
        return not isinstance(spec, TensorSpec) or spec.requires_grad
    return isinstance(example, torch.Tensor) and example.requires_grad and not example.is_leaf


def _given(tx: Context) -> dict[Node, Any]:
    """What the graph, or the part of it that is being made, is given: an example, or a node outside of the part."""
    graph: Any = tx.output
    outermost = graph
    while not _is_outermost(outermost):
        outermost = outermost.parent
    examples = {item.node: item.example for item in outermost.inputs}
    if outermost is graph:
        return examples
    found: dict[Node, Any] = {}
    for outer, place in graph.lifted.items():
        part = graph.parent
        while not _is_outermost(part):
            outer = next((above for above, one in part.lifted.items() if one is outer), outer)
            part = part.parent
        found[place] = examples.get(outer, outer)
    return found


def _needed(outputs: list[Node]) -> set[Node]:
    """The nodes that lead to the outputs."""
    found: set[Node] = set()
    waiting = outputs
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


def _run(
    tx: Context,
    args: list[Value],
    kwargs: Mapping[str, Value],
    values: list[TensorValue],
    enabled: bool,
) -> tuple[Any, list[SpecTensor]]:
    """What torch gives for the call, and the tensors without data that stand for ``values``. ``enabled``: whether
    gradients may be on where the graph, or the part of it that is being made, begins."""
    fakes: dict[int, SpecTensor] = {}

    def connected() -> Any:
        made = _again(tx, enabled)
        fakes.update((id(value), made[tx.output.use(value.node)]) for value in values)
        given = [value.fake(tx, fakes) for value in args]
        keywords = {name: value.fake(tx, fakes) for name, value in kwargs.items()}
        return torch.autograd.grad(*given, **keywords)

    try:
        result = tx.inference.run(connected, (), {})
    except GraphBreak:
        raise
    except Exception as error:  # eager says it better, at this very line
        raise _refused(f"torch.autograd.grad cannot be captured: {error}") from None
    return result, [fakes[id(value)] for value in values]


def _again(tx: Context, enabled: bool) -> dict[Node, Any]:
    """The graph so far, run on connected tensors without data."""
    examples = _given(tx)
    made: dict[Node, Any] = {}
    with restored():
        for setter, value in tx.entry.items():
            setter(value)
        if not enabled:
            torch._C._set_grad_enabled(False)
        for node in tx.output.graph.nodes:
            spec = node.meta.get(SPEC_KEY)
            if isinstance(spec, SymSpec):
                expr = tx.env.simplify(spec.expr)
                made[node] = tx.inference.sizes.to_torch(expr) if isinstance(expr, Expr) else expr
            elif node.op == "placeholder":
                made[node] = _input(tx, spec, examples.get(node))
            else:
                made[node] = _call(node, made)
    return made


def _input(tx: Context, spec: Any, example: Any) -> Any:
    is_part = example is None or isinstance(example, Node)
    if not isinstance(spec, TensorSpec) or not (is_part or isinstance(example, torch.Tensor)):
        return example
    bare = TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device)
    return tx.inference.tensor(bare, spec.requires_grad, is_part or example.is_leaf)


def _call(node: Node, made: Mapping[Node, Any]) -> Any:
    args, kwargs = map_arg((node.args, node.kwargs), made.__getitem__)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target), node.op
    return node.target(*args, **kwargs)
