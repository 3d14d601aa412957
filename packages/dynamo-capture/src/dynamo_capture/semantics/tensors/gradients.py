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

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.attributes import plain_attribute
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.values import Const, ListValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
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
    result, fakes = _run(tx, args, kwargs, values)
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
    return GraphBreak("CAP203", what)


def _tensors(tx: Context, value: Value, name: str) -> list[TensorValue]:
    value = tx.force(value)
    items = value.items if isinstance(value, (TupleValue, ListValue)) else [value]
    found: list[TensorValue] = []
    for item in map(tx.force, items):
        if not isinstance(item, TensorValue):
            raise _refused(f"{item.describe()} is one of the {name} of torch.autograd.grad")
        found.append(item)
    return found


def _check_surroundings(tx: Context, outputs: list[TensorValue], inputs: list[TensorValue]) -> None:
    """The graph must hold all operations between ``inputs`` and ``outputs``, and no hook may look on."""
    graph = tx.output
    if getattr(graph, "parent", None) is not None or graph.bodies:
        raise _refused("torch.autograd.grad is called where a function is transformed or run again")
    if tx.blocks:
        raise _refused("torch.autograd.grad is called inside a block of a mode")
    if tx.effects.hooks:
        raise _refused("torch.autograd.grad is called after a hook was registered on a tensor")
    if graph.born:
        raise _refused("torch.autograd.grad is called after a size from data was met")
    given = {item.node: item for item in graph.inputs}
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
    wanted = {value.node for value in inputs}
    if not any(node in given for node in wanted):
        return  # nothing outside of the graph depends on what was made in it
    for node in _needed(outputs):
        if node in given and node not in wanted and _has_history(given[node].example):
            raise _refused(
                f"the gradient may lead through {node.name}, which was computed outside of the graph"
            )


def _has_history(example: Any) -> bool:
    return isinstance(example, torch.Tensor) and example.requires_grad and not example.is_leaf


def _needed(outputs: list[TensorValue]) -> set[Node]:
    """The nodes that lead to the outputs."""
    found: set[Node] = set()
    waiting = [value.node for value in outputs]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


def _run(
    tx: Context, args: list[Value], kwargs: Mapping[str, Value], values: list[TensorValue]
) -> tuple[Any, list[SpecTensor]]:
    """What torch gives for the call, and the tensors without data that stand for ``values``."""
    fakes: dict[int, SpecTensor] = {}

    def connected() -> Any:
        made = _again(tx)
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


def _again(tx: Context) -> dict[Node, Any]:
    """The graph so far, run on connected tensors without data."""
    examples = {item.node: item.example for item in tx.output.inputs}
    made: dict[Node, Any] = {}
    with restored():
        for setter, value in tx.entry.items():
            setter(value)
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
    if not isinstance(spec, TensorSpec) or not isinstance(example, torch.Tensor):
        return example
    bare = TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device)
    return tx.inference.tensor(bare, spec.requires_grad, example.is_leaf)


def _call(node: Node, made: Mapping[Node, Any]) -> Any:
    args, kwargs = map_arg((node.args, node.kwargs), made.__getitem__)
    if node.op == "call_method":
        return getattr(args[0], str(node.target))(*args[1:], **kwargs)
    assert callable(node.target), node.op
    return node.target(*args, **kwargs)
