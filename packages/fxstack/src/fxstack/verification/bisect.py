"""The first operator of a captured graph whose compiled result, or gradient, is not as good as eager's.

The graph is cut off behind an operator and compiled anew, so that whatever compiles it (decompositions, fusion, a
foreign backend) is at fault in the shortest graph that still fails. First all operators' results are asked for at once,
which takes one compilation; where that hides the fault, prefixes are halved.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, Interpreter, Node

from fx_interface import CompiledGraph, UserLocation
from fx_interface.graph import placeholders, stack_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import SIGNATURE_KEY, OutputDecl, OutputKind, Signature
from fxstack.verification.compare import Difference
from fxstack.verification.trial import Trial, compare_trials, snapshot

Compile = Callable[[GraphModule, Sequence[Any]], CompiledGraph]


@dataclass(frozen=True, slots=True)
class Case:
    """A graph with the inputs that it was called with, and what compiles it."""

    graph: GraphModule
    inputs: tuple[Any, ...]
    compile: Compile
    seed: int

    def differences(self, compiled: CompiledGraph | None = None) -> list[Difference]:
        """Results and gradients in which the compiled graph is not as good as eager."""
        run = self.compile(self.graph, snapshot(self.inputs)) if compiled is None else compiled
        found, _ = compare_trials(lambda: self._call(_eager(self.graph)), lambda: self._call(run), self.seed)
        return found

    def _call(self, run: Callable[..., Any]) -> Trial:
        inputs = snapshot(self.inputs)
        names = [node.name for node in placeholders(self.graph.graph)]
        leaves = [
            (name, x)
            for name, x in zip(names, inputs, strict=True)
            if isinstance(x, Tensor) and x.requires_grad
        ]
        # A leaf that is written to in place stands for a value that was computed: pass such a value.
        given = [x.view_as(x) if isinstance(x, Tensor) and x.requires_grad else x for x in inputs]
        written = [(name, x) for name, x in zip(names, inputs, strict=True) if isinstance(x, Tensor)]
        return Trial(lambda: list(run(*given)), leaves, written)


@dataclass(frozen=True, slots=True)
class Culprit:
    """The first operator that differs: its name, the user's lines that led to it (outermost first), what differs, and
    the shortest failing graph."""

    operator: str
    stack: tuple[UserLocation, ...]
    difference: Difference
    case: Case


def find_culprit(case: Case) -> Culprit | None:
    """The first operator at which ``case`` fails; None if no graph that ends at an operator fails."""
    nodes = [node for node in case.graph.graph.nodes if node.op == "call_function"]
    values = _tensor_nodes(case, nodes)
    if not values:
        return None
    everything = Case(_cut(case.graph, values[-1], values), case.inputs, case.compile, case.seed)
    for found in everything.differences():
        if found.what.startswith("result ["):
            node = values[int(found.what.removeprefix("result [").split("]")[0])]
            alone = _ending_at(case, node)
            return _culprit(node, found, alone if alone.differences() else everything)
    return _halved(case, values)


def _halved(case: Case, values: list[Node]) -> Culprit | None:
    """The first of ``values`` behind which the graph fails if it is cut off there."""
    low, high = 0, len(values) - 1
    found = _ending_at(case, values[high]).differences()
    if not found:
        return None
    while low < high:
        middle = (low + high) // 2
        if _ending_at(case, values[middle]).differences():
            high = middle
        else:
            low = middle + 1
    shortest = _ending_at(case, values[high])
    found = shortest.differences() or found
    return _culprit(values[high], found[0], shortest)


def _culprit(node: Node, found: Difference, case: Case) -> Culprit:
    return Culprit(_name(node.target), stack_of_node(node), found, case)


def _name(target: object) -> str:
    return target if isinstance(target, str) else torch.typename(target)


def _ending_at(case: Case, node: Node) -> Case:
    return Case(_cut(case.graph, node, [node]), case.inputs, case.compile, case.seed)


def _cut(module: GraphModule, last: Node, results: Sequence[Node]) -> GraphModule:
    """The graph up to ``last``, returning ``results``."""
    graph = Graph()
    copies: dict[Node, Node] = {}
    for node in module.graph.nodes:
        copies[node] = graph.node_copy(node, lambda old: copies[old])
        if node is last:
            break
    for node in module.graph.nodes:
        if node.op == "placeholder" and node not in copies:
            raise AssertionError("a placeholder behind a call")
    graph.output(tuple(copies[node] for node in results))
    made = GraphModule(module, graph)
    made.meta = copy.copy(module.meta)
    signature = made.meta.get(SIGNATURE_KEY)
    if isinstance(signature, Signature):
        outputs = tuple(OutputDecl(OutputKind.USER) for _ in results)
        made.meta[SIGNATURE_KEY] = Signature(signature.inputs, outputs)
    return made


def _tensor_nodes(case: Case, nodes: Sequence[Node]) -> list[Node]:
    """Those of ``nodes`` whose value is one tensor, found by running the graph once."""
    kinds: dict[Node, type] = {}

    class Watching(Interpreter):
        def run_node(self, node: Node) -> Any:
            value = super().run_node(node)
            kinds[node] = type(value)
            return value

    torch.manual_seed(case.seed)
    with torch.no_grad():
        Watching(case.graph).run(*snapshot(case.inputs))
    return [node for node in nodes if issubclass(kinds.get(node, type(None)), Tensor)]


def _eager(graph: GraphModule) -> Callable[..., Any]:
    return Interpreter(graph).run
