"""Channels-last memory for the convolutions of a graph on a GPU, and for what is computed around them.

The library's kernels for matrix units read and write images with their channels last in memory. Of row-major tensors
they convert each operand and each result, which takes as long as a convolution with a small kernel itself. So a graph
of convolutions keeps its images channels-last: the convolutions' operands and results, and what is computed pointwise
or pooled in between. What the graph gives out has eager's layout, and so has what other operators read; copies are made
there, in the kernel that computes the value where there is one.

On one H100 (torch 2.11), us of a convolution row-major and channels-last, forward and with both gradients:

    bfloat16  32x64x56x56, 3x3 to 64         59   27     121    80
    bfloat16  32x512x7x7, 1x1 to 2048        29   12      54    25
    bfloat16  32x96x56x56, 7x7 of depth     332   74    1083   249
    bfloat16  32x16x112x112, 1x1 to 96       43   40      88    88
    float32   32x64x56x56, 3x3 to 64         91   48     230   145
    float32   32x144x56x56, 3x3 of depth    142   52     448   123
    float32   32x96x56x56, 7x7 of depth     321  189    1066  2602
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
from fx_interface.symbols import IntLike, product
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.chosen_layouts import Layouts
from inductor_codegen.lower.views import Sizes

aten = torch.ops.aten

_IMAGES: dict[OpOverload, tuple[tuple[int, ...], tuple[int, ...]]] = {
    aten.convolution.default: ((0, 1), (0,)),
    aten.convolution_backward.default: ((0, 1, 2), (0, 1)),
    aten.max_pool2d_with_indices.default: ((0,), (0, 1)),
    aten.max_pool2d_with_indices_backward.default: ((0, 1, 7), (0,)),
}
"""The operators that keep images as they are: which arguments and which results are images (or weights)."""
_WEIGHTS: dict[OpOverload, int] = {aten.convolution.default: 1, aten.convolution_backward.default: 2}
"""The convolutions, and where the weight stands: behind the image."""
_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_CHANNELS = 16
"""With fewer channels on both sides a convolution gains nothing."""
_DEPTHWISE_FLOAT32 = 9
"""Points of a float32 depthwise kernel up to which its gradients are faster channels-last."""
_NOMINAL = 64
"""What a dimension of unknown size counts as."""


def channels_last(sizes: Sizes) -> Sizes:
    """The strides of [N, C, H, W] with the channels last in memory."""
    _, channels, height, width = sizes
    return (channels * height * width, 1, width * channels, channels)


def choose_layouts(
    module: GraphModule, given: Mapping[int, Sizes] | None = None, *, saved: bool = False
) -> Layouts:
    """The layouts for a graph in dialect ``prims``.

    ``given`` has the strides of inputs, by their number, that another graph has chosen for them. ``saved``: what the
    graph saves for another one may have another layout than its spec says; ``Layouts.saved`` tells which.
    """
    found = Layouts()
    placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
    for number, strides in (given or {}).items():
        found.move(placeholders[number], 0, strides)
    if _gains(module):
        _Chooser(found).run(module)
    else:
        _follow(module, found)
    if saved:
        _note_saved(module, found)
    return found


def _gains(module: GraphModule) -> bool:
    """Whether most of the work of the graph's convolutions is faster channels-last."""
    balance = 0.0
    for node in module.graph.nodes:
        if node.target is call_block:
            return False
        if node.target in _WEIGHTS:
            work = _work(node)
            balance += work if work and _is_faster(node) else -work
    return balance > 0


def _operands(node: Node) -> tuple[TensorSpec, TensorSpec]:
    """The image and the weight of a convolution."""
    place = _WEIGHTS[node.target]  # type: ignore[index]
    image, weight = spec_of_node(node.args[place - 1]), spec_of_node(node.args[place])  # type: ignore[arg-type]
    assert isinstance(image, TensorSpec)
    assert isinstance(weight, TensorSpec)
    return image, weight


def _work(node: Node) -> float:
    """About the multiplications of a convolution."""
    image, weight = _operands(node)
    return float(_nominal(product(image.sizes)) * _nominal(product(weight.sizes)) / _nominal(image.sizes[1]))


def _nominal(size: IntLike) -> int:
    return size if isinstance(size, int) else _NOMINAL


def _is_faster(node: Node) -> bool:
    image, weight = _operands(node)
    if image.rank != 4 or image.device.type != "cuda" or image.dtype not in _DTYPES:
        return False
    outer, inner, height, width = map(_nominal, weight.sizes)
    depthwise = inner == 1 and _nominal(image.sizes[1]) > 1
    if depthwise and image.dtype is torch.float32 and height * width > _DEPTHWISE_FLOAT32:
        return False
    return max(outer, inner) >= _CHANNELS


class _Chooser:
    """One pass over a graph: images are channels-last from the first convolution on."""

    def __init__(self, layouts: Layouts) -> None:
        self.layouts = layouts
        self.pinned: frozenset[Node] = frozenset()

    def run(self, module: GraphModule) -> None:
        self.pinned = frozenset(_pinned(module))
        for node in module.graph.nodes:
            if node.op != "call_function":
                continue
            if node.target in _IMAGES:
                self._keeper(node)
            elif isinstance(node.target, PrimOp) and node.target.kind is not PrimKind.VIEW:
                self._computed(node)
            self.layouts.follow(node)

    def _keeper(self, node: Node) -> None:
        """An operator that keeps images as they are: convolutions always, others where an image comes to them so."""
        arguments, results = _IMAGES[node.target]  # type: ignore[index]
        images = [(place, node.args[place]) for place in arguments]
        if node in self.pinned or not all(_is_image(arg) for _, arg in images):
            return
        if node.target not in _WEIGHTS and not any(self._is_last(arg) for _, arg in images):
            return
        for place, arg in images:
            self.layouts.ask(node, place, channels_last(_sizes(arg)))
        spec = spec_of_node(node)
        listed = [spec] if isinstance(spec, TensorSpec) else list(spec)  # type: ignore[arg-type]
        for position in results:
            if position < len(listed) and isinstance(item := listed[position], TensorSpec):
                self.layouts.move(node, position, channels_last(item.sizes))

    def _computed(self, node: Node) -> None:
        """What a kernel computes from an image that is channels-last is so too, if it is an image itself."""
        if node in self.pinned or not _is_image(node) or not spec_of_node(node).is_contiguous:  # type: ignore[union-attr]
            return
        if any(self._is_last(arg) for arg in node.all_input_nodes):
            self.layouts.move(node, 0, channels_last(_sizes(node)))

    def _is_last(self, arg: object) -> bool:
        strides = self.layouts.strides_of(arg) if isinstance(arg, Node) else None
        return strides is not None and _is_image(arg) and strides == channels_last(_sizes(arg))


def _is_image(arg: object) -> bool:
    spec = spec_of_node(arg) if isinstance(arg, Node) else None
    return isinstance(spec, TensorSpec) and spec.rank == 4 and spec.device.type == "cuda"


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
