"""Which convolutions are faster with the channels of their images last in memory.

*On a GPU* the library's kernels for matrix units read and write channels-last images. Of row-major tensors they convert
each operand and each result, which takes as long as a convolution with a small kernel itself. On one H100 (torch 2.11),
us of a convolution row-major and channels-last, forward and with both gradients:

    bfloat16  32x64x56x56, 3x3 to 64         59   27     121    80
    bfloat16  32x512x7x7, 1x1 to 2048        29   12      54    25
    bfloat16  32x96x56x56, 7x7 of depth     332   74    1083   249
    bfloat16  32x16x112x112, 1x1 to 96       43   40      88    88
    float32   32x64x56x56, 3x3 to 64         91   48     230   145
    float32   32x144x56x56, 3x3 of depth    142   52     448   123
    float32   32x96x56x56, 7x7 of depth     321  189    1066  2602

Those of depth are kernels of our own where images lie channels-last (``depthwise``); the library's, with several
results for each channel, are slower so in float32 if they have large windows.

*On a CPU* oneDNN has images by blocks of channels, and converts row-major ones. What is saved grows with the image, and
is most of a small or a depthwise convolution. But a channels-last weight is a copy, out of which the blocks are made
more slowly, and where it is larger than the image that takes longer than anything saved. One thread with AVX-512 (torch
2.13, ``python -m benchmarks.convolutions``), ms of a convolution row-major and channels-last (its weight, too), forward
and with both gradients:

    float32   8x64x28x28, 3x3 of depth     1.91  0.79     2.04  0.39
    float32   8x96x14x14, 5x5 of depth     0.18  0.11     2.88  1.31
    float32   8x96x28x28, 7x7 of depth     3.85  1.08    24.4   9.86
    float32   8x16x56x56, 1x1 to 64        0.76  0.72     2.46  2.54
    float32   8x576x7x7, 1x1 to 96         0.59  0.49     1.24  0.98
    float32   8x64x28x28, 3x3 to 64        4.21  4.00     8.85  8.56
    float32   1x256x14x14, 3x3 to 256      2.02  2.02     4.84  4.98   0.33 to copy the weight
    float32   1x512x7x7, 3x3 to 512        2.77  3.65    16.0  22.8    1.45 to copy the weight
    bfloat16  8x96x28x28, 7x7 of depth     1.00  0.57    29.8  12.8
    bfloat16  8x16x56x56, 1x1 to 64        0.85  0.28     1.29  0.71
    bfloat16  8x64x28x28, 3x3 to 64        2.12  1.97     4.67  4.36

What is read or given out row-major is converted at the border by a kernel that goes across memory: 0.3 ns for each
element of 4 x 32 x 64 x 64, so that one convolution alone never gains (3.12 ms, row-major 2.89, with its relu).

oneDNN has no float16 there: torch's own kernels are up to eight times as fast channels-last, and up to six times as
slow (of depth, and backward), so that these stay as they are, as do float64's.
"""

from __future__ import annotations

import math

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fx_interface.graph import spec_of_node
from fx_interface.symbols import IntLike
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.images.depthwise import depthwise_convolution

aten = torch.ops.aten

WEIGHTS: dict[OpOverload, int] = {aten.convolution.default: 1, aten.convolution_backward.default: 2}
"""The convolutions, and where the weight stands: behind the image."""

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_CHANNELS = 16
"""With fewer channels on both sides a convolution gains nothing."""
_DEPTHWISE_FLOAT32 = 9
"""Points of a float32 depthwise kernel up to which its gradients are faster channels-last on a GPU."""
_NOMINAL = 64
"""What a dimension of unknown size counts as."""
_SAVED, _SAVED_BY_DEPTH, _SPENT = 0.1, 0.35, 1.0
"""What a CPU saves for each element of images, and of a depthwise one's result besides, and what it takes longer for
each of a weight that must be copied: nanoseconds."""
_CONVERTED = 0.3
"""What a CPU takes to bring an element of an image into another layout: nanoseconds."""


def gain(node: Node) -> float:
    """What a convolution gains from channels-last images, negative where it loses; on one device the gains of a
    graph's convolutions can be added."""
    image, weight = _operands(node)
    if image.rank != 4:
        return 0.0
    if image.device.type == "cpu":
        return _gain_on_a_cpu(node, image, weight)
    work = _count(image) * _count(weight) / _nominal(image.sizes[1])
    faster = depthwise_convolution(node) is not None or _is_faster_on_a_gpu(image, weight)
    return work if faster else -work


def loss(image: TensorSpec) -> float:
    """What an image costs that must be converted, where ``gain`` counts the same."""
    return _CONVERTED * _count(image) if image.device.type == "cpu" else 0.0


def stays_row_major(node: Node) -> bool:
    """Whether a convolution is faster with converted images than with a copy of its weight, on a CPU."""
    image, weight = _operands(node)
    if image.device.type != "cpu" or not _is_moved(weight):
        return False
    return _count(weight) > _elements(node, image)


def is_on_a_cpu(node: Node) -> bool:
    """Whether a convolution runs on the CPU."""
    return _operands(node)[0].device.type == "cpu"


def is_one_pixel(node: Node) -> bool:
    """Whether a convolution's weight lies the same either way, and on a CPU its gradient as the weight does."""
    image, weight = _operands(node)
    return image.device.type == "cpu" and all(size == 1 for size in weight.sizes[2:])


def _gain_on_a_cpu(node: Node, image: TensorSpec, weight: TensorSpec) -> float:
    elements, depthwise = _elements(node, image), _is_depthwise(image, weight)
    if not _has_blocks(image.dtype):
        return -_SAVED * elements
    if max(map(_nominal, weight.sizes[:2])) < _CHANNELS or stays_row_major(node):
        return 0.0
    saved = _SAVED * elements
    if depthwise:
        return saved + _SAVED_BY_DEPTH * elements / 2
    return saved - (_SPENT * _count(weight) if _is_moved(weight) else 0.0)


def _has_blocks(dtype: torch.dtype) -> bool:
    """Whether this machine's convolutions of a dtype are oneDNN's."""
    if dtype is torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return dtype is torch.float32 and torch._C._has_mkldnn


def _is_faster_on_a_gpu(image: TensorSpec, weight: TensorSpec) -> bool:
    if image.device.type != "cuda" or image.dtype not in _DTYPES:
        return False
    outer, inner, height, width = map(_nominal, weight.sizes)
    slow = image.dtype is torch.float32 and height * width > _DEPTHWISE_FLOAT32
    return max(outer, inner) >= _CHANNELS and not (slow and _is_depthwise(image, weight))


def _is_moved(weight: TensorSpec) -> bool:
    """Whether a weight's elements stand in another order where its channels come last."""
    _, inner, height, width = weight.sizes
    return inner != 1 and (height != 1 or width != 1)


def _is_depthwise(image: TensorSpec, weight: TensorSpec) -> bool:
    return _nominal(weight.sizes[1]) == 1 and _nominal(image.sizes[1]) > 1


def _operands(node: Node) -> tuple[TensorSpec, TensorSpec]:
    """The image and the weight of a convolution."""
    place = WEIGHTS[node.target]  # type: ignore[index]
    image, weight = spec_of_node(node.args[place - 1]), spec_of_node(node.args[place])  # type: ignore[arg-type]
    assert isinstance(image, TensorSpec)
    assert isinstance(weight, TensorSpec)
    return image, weight


def _elements(node: Node, image: TensorSpec) -> int:
    """Elements of the image and of what comes out, or the gradient that comes in."""
    other = spec_of_node(node if node.target is aten.convolution.default else node.args[0])  # type: ignore[arg-type]
    assert isinstance(other, TensorSpec)
    return _count(image) + _count(other)


def _count(spec: TensorSpec) -> int:
    return math.prod(map(_nominal, spec.sizes))


def _nominal(size: IntLike) -> int:
    return size if isinstance(size, int) else _NOMINAL
