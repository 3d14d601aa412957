"""Channels-last memory for the convolutions of a graph, and for what is computed around them.

Where convolutions are faster so (``convolutions``), a graph keeps its images channels-last: operands and results of
convolutions, and what is computed pointwise or pooled in between. What the graph gives out has eager's layout, and what
other operators read, too; copies are made there, in the kernel that computes the value where there is one.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import GraphModule, Node

from fx_interface.dialects.prims import PrimKind, PrimOp
from fx_interface.graph import call_block, spec_of_node
from fx_interface.operator_facts.collectives import reads_later
from fx_interface.signature import OutputKind, signature_of
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.lower.images.convolutions import (
    WEIGHTS,
    gain,
    is_on_a_cpu,
    is_one_pixel,
    loss,
    stays_row_major,
)
from inductor_codegen.lower.images.depthwise import channels_last
from inductor_codegen.lower.views import Sizes

aten = torch.ops.aten

_IMAGES: dict[OpOverload, tuple[tuple[int, ...], tuple[int, ...]]] = {
    aten.convolution.default: ((0, 1), (0,)),
    aten.convolution_backward.default: ((0, 1, 2), (0, 1)),
    aten.max_pool2d_with_indices.default: ((0,), (0, 1)),
    aten.max_pool2d_with_indices_backward.default: ((0, 1, 7), (0,)),
}
"""The operators that keep images as they are: which arguments and which results are images (or weights)."""


def choose_layouts(
    module: GraphModule,
    given: Mapping[int, Sizes] | None = None,
    *,
    saved: bool = False,
    exact: bool = False,
) -> Layouts:
    """The layouts for a graph in dialect ``prims``.

    ``given`` has the strides of inputs, by their number, that another graph has chosen for them. ``saved``: what the
    graph saves for another one may have another layout than its spec says; ``Layouts.saved`` tells which. ``exact``:
    library calls are given what the specs say, so that they compute eager's bits.
    """
    found = _of_inputs(module, given or {})
    gained = 0.0 if exact else _gain(module, training=saved or given is not None)
    if gained > 0:
        _Chooser(found).run(module)
        if _loss(module, found) >= gained:
            found, gained = _of_inputs(module, given or {}), 0.0
    if gained <= 0:
        _follow(module, found)
    if saved:
        _note_saved(module, found)
    found.exact = exact
    return found


def _of_inputs(module: GraphModule, given: Mapping[int, Sizes]) -> Layouts:
    """Those that another graph has chosen."""
    found = Layouts()
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for number, strides in given.items():
        found.move(placeholders[number], 0, strides)
    return found


def _loss(module: GraphModule, layouts: Layouts) -> float:
    """What a graph spends at the borders of what is channels-last: on the images that come to convolutions, and on
    results that have eager's layout."""
    converted: dict[Node, None] = {}
    for (node, place), strides in layouts.arguments.items():
        arg = node.args[place]
        if place != WEIGHTS.get(node.target) and isinstance(arg, Node) and _lies(arg, layouts) != strides:  # type: ignore[call-overload]
            converted[arg] = None
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    for arg in output.all_input_nodes:
        if _is_image(arg) and _lies(arg, layouts) != spec_of_node(arg).strides:  # type: ignore[union-attr]
            converted[arg] = None
    return sum(loss(spec) for spec in map(spec_of_node, converted) if isinstance(spec, TensorSpec))


def _lies(node: Node, layouts: Layouts) -> Sizes:
    """The strides of an image."""
    spec = spec_of_node(node)
    assert isinstance(spec, TensorSpec)
    return layouts.strides_of(node) or spec.strides


def _gain(module: GraphModule, *, training: bool) -> float:
    """What the graph's convolutions together gain channels-last. What is trained on a CPU stays: steps of some networks
    take a quarter less time so, but up to a quarter more memory, and all take a fifth longer to compile."""
    balance = 0.0
    for node in module.graph.nodes:
        if node.target is call_block:
            return 0.0
        if node.target in WEIGHTS and not (training and is_on_a_cpu(node)):
            balance += gain(node)
    return balance


class _Chooser:
    """One pass over a graph: images are channels-last from the first convolution on."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self.pinned: frozenset[Node] = frozenset()
        self.seen: dict[Node, Sizes] = {}
        """What is computed from channels-last images, or sees them otherwise: images and channels of these."""

    def run(self, module: GraphModule) -> None:
        self.pinned = frozenset(_pinned(module))
        for node in module.graph.nodes:
            if node.op != "call_function":
                continue
            if node.target in _IMAGES:
                self._keeper(node)
            elif isinstance(node.target, PrimOp):
                self._note_source(node)
                if node.target.kind is not PrimKind.VIEW:
                    self._computed(node)
            self.layouts.follow(node)

    def _keeper(self, node: Node) -> None:
        """An operator that keeps images as they are: convolutions always, others where an image comes to them so."""
        arguments, results = _IMAGES[node.target]  # type: ignore[index]
        images = [(place, node.args[place]) for place in arguments]
        if node in self.pinned or not all(_is_image(arg) for _, arg in images):
            return
        if node.target in WEIGHTS and stays_row_major(node):
            return
        if node.target not in WEIGHTS and not any(self._is_last(arg) for _, arg in images):
            return
        point = node.target in WEIGHTS and is_one_pixel(node)
        for place, arg in images:
            if not (point and place == WEIGHTS[node.target]):  # type: ignore[index]
                self.layouts.ask(node, place, channels_last(_sizes(arg)))
        spec = spec_of_node(node)
        listed = [spec] if isinstance(spec, TensorSpec) else list(spec)  # type: ignore[arg-type]
        for position in results[:1] if point else results:
            if position < len(listed) and isinstance(item := listed[position], TensorSpec):
                self.layouts.move(node, position, channels_last(item.sizes))

    def _computed(self, node: Node) -> None:
        """What a kernel computes from an image that is channels-last is so too, if it is an image itself; of one that
        it sees through views (as means of windows are computed), if it has its channels."""
        if node in self.pinned or not _is_image(node) or not spec_of_node(node).is_contiguous:  # type: ignore[union-attr]
            return
        sizes = _sizes(node)
        if any(self._is_last(arg) for arg in node.all_input_nodes) or self.seen.get(node) == sizes[:2]:
            self.layouts.move(node, 0, channels_last(sizes))

    def _note_source(self, node: Node) -> None:
        for arg in node.all_input_nodes:
            if self._is_last(arg):
                self.seen[node] = _sizes(arg)[:2]
                return
            if arg in self.seen:
                self.seen[node] = self.seen[arg]
                return

    def _is_last(self, arg: object) -> bool:
        strides = self.layouts.strides_of(arg) if isinstance(arg, Node) else None
        return strides is not None and _is_image(arg) and strides == channels_last(_sizes(arg))


def _is_image(arg: object) -> bool:
    spec = spec_of_node(arg) if isinstance(arg, Node) else None
    return isinstance(spec, TensorSpec) and spec.rank == 4


def _sizes(arg: Any) -> Sizes:
    spec = spec_of_node(arg)
    assert isinstance(spec, TensorSpec)
    return spec.sizes


def _pinned(module: GraphModule) -> Iterator[Node]:
    """What operators look at as memory, not as elements, keeps its layout."""
    for node in module.graph.nodes:
        op = node.target
        if isinstance(op, OpOverload) and (
            reads_later(op) or any(result.alias_info is not None for result in op._schema.returns)
        ):
            for arg in node.all_input_nodes:
                yield from _sources(arg)


def _sources(node: Node) -> Iterator[Node]:
    """The node, and what it is a view or a part of."""
    yield node
    while node.args and (
        node.target is operator.getitem
        or (isinstance(node.target, PrimOp) and node.target.kind is PrimKind.VIEW)
    ):
        assert isinstance(node.args[0], Node)
        node = node.args[0]
        yield node


def _follow(module: GraphModule, layouts: Layouts) -> None:
    """Views of inputs that have another layout than their spec says."""
    if layouts:
        for node in module.graph.nodes:
            if node.op == "call_function":
                layouts.follow(node)


def _note_saved(module: GraphModule, layouts: Layouts) -> None:
    signature = signature_of(module)
    (output,) = (node for node in module.graph.nodes if node.op == "output")
    declared = () if signature is None else signature.outputs
    for position, (told, arg) in enumerate(zip(declared, output.args[0], strict=False)):
        strides = layouts.strides_of(arg) if isinstance(arg, Node) else None
        if told.kind is OutputKind.SAVED and strides is not None:
            layouts.saved[position] = strides
