"""Runs of equal blocks in a captured graph: a transformer's layers, which differ in the parameters that they take.

    a = f(x, w0); b = g(a, m); c = f(b, w1); d = g(c, m); e = f(d, w2); h = g(e, m)   # blocks of two calls

Calls one block apart are equal: they have the same target, constants, spec and line, and of their operands each is one
block apart too, or the same value from before the run (``m``), or an input that only its block takes (``w0``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import torch
from torch.fx import Graph, GraphModule, Node

from fx_interface import SHAPE_ENV_KEY, TensorSpec, signature_of
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.signature import SIGNATURE_KEY, InputDecl, Signature
from fx_interface.tensor_spec import SPEC_KEY
from fx_interface.torch_internals.graph_source import UnwrittenGraph

_TRIED = 8
"""How many distances between equal calls are tried as the length of a block."""


@dataclass(frozen=True, slots=True)
class EqualBlocks:
    """``count`` blocks of ``length`` calls each, from call ``start`` on, of which each has ``inputs`` inputs of its
    own, from input ``first_input`` on."""

    start: int
    length: int
    count: int
    first_input: int
    inputs: int


@dataclass(frozen=True, slots=True)
class _Call:
    """A call: ``kind`` is all of it but its operands."""

    kind: Hashable
    operands: tuple[Node, ...]


def equal_blocks(
    graph_module: GraphModule, example_inputs: Sequence[Any], at_least: int
) -> EqualBlocks | None:
    """The longest run of at least so many equal blocks, if there is one and nothing else depends on how many they
    are."""
    nodes = list(graph_module.graph.nodes)
    signature = signature_of(graph_module)
    places = {node: i for i, node in enumerate(nodes) if node.op in ("call_function", "call_method")}
    given = [node for node in nodes if node.op == "placeholder"]
    is_plain = len(places) + len(given) + 1 == len(nodes) and graph_module.meta.get(SHAPE_ENV_KEY) is None
    if not is_plain or signature is None or len(places) < 2 * at_least:
        return None
    if any("conv" in getattr(node.target, "__name__", "") for node in places):
        return None  # layouts of images are chosen for all convolutions together
    first = len(given)
    if any(node.op == "placeholder" for node in nodes[first:]):
        return None
    try:
        calls = [_call(node) for node in nodes[first:-1]]
    except TypeError:  # an argument that has no hash
        return None
    numbers = {node: position - first for node, position in places.items()}
    found = _run(calls, numbers, at_least)
    if found is None:
        return None
    start, end, length = found
    inputs = {node: position for position, node in enumerate(given)}
    run = _with_inputs(calls, numbers, inputs, start, end, length)
    if run is None or run.count < at_least or not _is_closed(run, calls, numbers, nodes[-1]):
        return None
    if _adds_up(run, calls, given, nodes[first:-1], example_inputs):
        return None
    return run if _are_alike(run, signature.inputs, example_inputs) else None


def _adds_up(
    run: EqualBlocks,
    calls: Sequence[_Call],
    given: Sequence[Node],
    made: Sequence[Node],
    example_inputs: Sequence[Any],
) -> bool:
    """Whether the blocks share something that is trained: its gradient is a sum with a term for each of them."""
    trained = {
        node
        for node, example in zip(given, example_inputs, strict=True)
        if isinstance(example, torch.Tensor) and example.requires_grad
    }
    for node, call in zip(made[: run.start], calls, strict=False):
        spec = node.meta.get(SPEC_KEY)
        is_whole = isinstance(spec, TensorSpec) and not spec.dtype.is_floating_point
        if not is_whole and any(operand in trained for operand in call.operands):
            trained.add(node)
    at = run.start + run.length
    pairs = zip(calls[at : at + run.length], calls[at + run.length :], strict=False)
    return any(
        a is b and a in trained
        for one, other in pairs
        for a, b in zip(one.operands, other.operands, strict=True)
    )


def _call(node: Node) -> _Call:
    operands: list[Node] = []
    arguments = _constants((node.args, node.kwargs), operands)
    meta = tuple(node.meta.items())
    hash(meta)
    return _Call((node.op, node.target, arguments, meta), tuple(operands))


def _constants(argument: Any, operands: list[Node]) -> Hashable:
    """An argument without the nodes in it, which are added to ``operands``."""
    kind = type(argument)
    if isinstance(argument, Node):
        operands.append(argument)
        return Node
    if isinstance(argument, (tuple, list)):
        return (kind, *[_constants(part, operands) for part in argument])
    if isinstance(argument, dict):
        return (kind, *[(name, _constants(part, operands)) for name, part in argument.items()])
    if kind is slice:
        return (
            kind,
            *[_constants(part, operands) for part in (argument.start, argument.stop, argument.step)],
        )
    hash(argument)
    return (kind, repr(argument) if kind in (float, complex) else argument)


def _run(calls: Sequence[_Call], numbers: dict[Node, int], at_least: int) -> tuple[int, int, int] | None:
    """The longest stretch of calls that are equal to those one block further, its end, and the length of a block."""
    known: dict[Hashable, int] = {}
    kinds = [known.setdefault(call.kind, len(known)) for call in calls]
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for position, kind in enumerate(kinds):
        if kind in last:
            distances[position - last[kind]] += 1
        last[kind] = position
    best: tuple[int, int, int] | None = None
    for length, times in sorted(distances.most_common(_TRIED)):
        if length < 2 or times < at_least - 1:
            continue
        start = 0
        for position in range(len(calls) - length + 1):
            other = position + length
            alike = other < len(calls) and kinds[position] == kinds[other]
            if alike and _goes_on(calls[position], calls[other], numbers, length):
                continue
            if position - start >= (at_least - 1) * length and (
                best is None or position - start > best[1] - best[0]
            ):
                best = (start, position, length)
            start = position + 1
    return best


def _goes_on(one: _Call, other: _Call, numbers: dict[Node, int], length: int) -> bool:
    """Whether the operands of two calls one block apart are one block apart, the same, or inputs."""
    for a, b in zip(one.operands, other.operands, strict=True):
        if a is b:
            continue
        place = numbers.get(a)
        if place is None:
            if b in numbers:
                return False
        elif numbers.get(b) != place + length:
            return False
    return True


def _with_inputs(
    calls: Sequence[_Call],
    numbers: dict[Node, int],
    inputs: dict[Node, int],
    start: int,
    end: int,
    length: int,
) -> EqualBlocks | None:
    """The blocks of a run, begun where no input is taken by two of them."""
    following: dict[Node, Node] = {}
    for position in range(start, end):
        for a, b in zip(calls[position].operands, calls[position + length].operands, strict=True):
            if a is b:
                if numbers.get(a, -1) >= start:
                    return None
            elif a in inputs and following.setdefault(a, b) is not b:
                return None
    own = {*following, *following.values()}
    if len(set(following.values())) != len(following):
        return None
    crossed: set[int] = set()
    for node in own:
        uses = [numbers.get(user, len(calls)) for user in node.users]
        low, high = min(uses), max(uses)
        if high - low >= length:
            return None
        crossed.update((place - start) % length for place in range(low + 1, high + 1))
    shift = next((place for place in range(length) if place not in crossed), None)
    if shift is None:
        return None
    begin = start + shift
    count = (end + length - begin) // length
    blocks = [
        sorted({inputs[o] for call in calls[at : at + length] for o in call.operands if o in own})
        for at in range(begin, begin + count * length, length)
    ]
    width, first = len(blocks[0]), blocks[0][0] if blocks[0] else 0
    for number, taken in enumerate(blocks):
        if taken != list(range(first + number * width, first + (number + 1) * width)):
            return None
    return EqualBlocks(begin, length, count, first, width)


def _is_closed(run: EqualBlocks, calls: Sequence[_Call], numbers: dict[Node, int], output: Node) -> bool:
    """Whether calls of a block read what it makes, or the block before it, or what is older than all blocks; those
    behind all blocks, and results, what the last one makes. Inputs of blocks are taken by nothing else."""
    results = _Call(None, tuple(output.all_input_nodes))
    end = run.start + run.count * run.length
    for place, call in [*enumerate(calls[run.start + run.length :], run.start + run.length), (end, results)]:
        block = min((place - run.start) // run.length, run.count)
        for operand in call.operands:
            number = numbers.get(operand, -1)
            if run.start <= number < run.start + (block - 1) * run.length:
                return False
    own = range(run.first_input, run.first_input + run.count * run.inputs)
    outside = [*calls[: run.start], *calls[end:], results]
    given = [node for node in output.graph.nodes if node.op == "placeholder"]
    taken = {given[position] for position in own}
    return not any(operand in taken for call in outside for operand in call.operands)


def _are_alike(run: EqualBlocks, declared: Sequence[InputDecl], example_inputs: Sequence[Any]) -> bool:
    """Whether the inputs of all blocks are alike, as far as tracing reads them, and no two inputs share memory."""
    memories: set[int] = set()
    for example in example_inputs:
        if not isinstance(example, torch.Tensor) or example.layout is not torch.strided:
            return False
        if example.device.type != "cpu":  # nobody has compared programs for a GPU yet
            return False
        memory = example.untyped_storage()._cdata
        if memory in memories:
            return False
        memories.add(memory)
    facts = [
        (declared[position].kind, declared[position].spec, _facts(example_inputs[position]))
        for position in range(run.first_input, run.first_input + run.count * run.inputs)
    ]
    first = facts[: run.inputs]
    return all(facts[at : at + run.inputs] == first for at in range(0, len(facts), max(run.inputs, 1)))


def _facts(tensor: torch.Tensor) -> tuple[Any, ...]:
    return (
        type(tensor),
        tensor.requires_grad,
        tensor.is_leaf,
        tensor.is_inference(),
        tensor.is_conj(),
        tensor.is_neg(),
        tensor._is_zerotensor(),
        tensor._is_view(),
        tensor.storage_offset(),
    )


def shortened(
    graph_module: GraphModule, example_inputs: Sequence[Any], run: EqualBlocks, kept: int
) -> tuple[GraphModule, list[Any]]:
    """The graph with ``kept`` of the blocks, and its example inputs: blocks in the middle are left out."""
    left_out = run.count - kept
    before = kept // 2
    calls_out = range(run.start + before * run.length, run.start + (before + left_out) * run.length)
    first_input = run.first_input + before * run.inputs
    inputs_out = range(first_input, first_input + left_out * run.inputs)
    graph = Graph()
    made: dict[Node, Node] = {}
    calls: list[Node] = []
    examples: list[Any] = []
    given = 0
    for node in graph_module.graph.nodes:
        if node.op == "placeholder":
            given += 1
            if given - 1 in inputs_out:
                continue
            examples.append(example_inputs[given - 1])
        elif node.op != "output":
            calls.append(node)
            place = len(calls) - 1
            if place in calls_out:
                earlier = place - left_out * run.length
                if earlier >= run.start:  # what the first blocks behind these read
                    made[node] = made[calls[earlier]]
                continue
        copied = graph.node_copy(node, made.__getitem__)
        copied.meta = dict(node.meta)
        made[node] = copied
    short = UnwrittenGraph(torch.nn.Module(), graph)
    signature = signature_of(graph_module)
    assert signature is not None
    declared = [one for position, one in enumerate(signature.inputs) if position not in inputs_out]
    short.meta = graph_module.meta | {SIGNATURE_KEY: Signature(tuple(declared), signature.outputs)}
    return short, examples
