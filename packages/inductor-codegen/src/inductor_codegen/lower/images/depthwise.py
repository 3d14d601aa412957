"""Depthwise convolutions on a GPU as kernels of our own: what they give is a formula, and the gradient of their weight
a call that becomes a kernel (``schedule.programs.depthwise``).

Each channel has its own small window, so that nothing is a matrix product: a kernel waits for memory, and the library's
loses that, a second time for what is computed from the result, and the time in which it is loaded in each process. A
formula is fused with what is computed from it, and sums in float32.

Images must lie channels-last: neighbouring lanes take neighbouring channels, which read the same taps. Row-major ones,
other dtypes and sizes that vary in more than the number of images stay the library's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch._ops import OpOverload
from torch.fx import Node

from fx_interface.errors import UserLocation
from fx_interface.graph import spec_of_node
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.tensor_spec import TensorSpec
from inductor_codegen.lower.layouts import same_strides
from inductor_codegen.lower.storage import Values, operand_of
from inductor_codegen.lower.values import Depthwise, ExternalCall, Operand, Reduction, Value, Window
from inductor_codegen.lower.views import Layout, Sizes

aten = torch.ops.aten

_DTYPES = (torch.float16, torch.bfloat16, torch.float32)
_CHANNELS = 8
"""Fewer channels than this leave most lanes of a program idle."""
_MOST_TAPS = 81
"""Taps up to which they are written out one by one."""
_MUCH = 1 << 24
"""Products from which the weight is copied so that its channels lie side by side: a launch of some 2 us, in place of a
load of each number for each lane."""


@dataclass(frozen=True, slots=True)
class Convolution:
    """A depthwise convolution: the places of image and weight among its arguments, and its windows."""

    image: int
    weight: int
    windows: tuple[Window, Window]


def depthwise_convolution(node: Node) -> Convolution | None:
    """What a call convolves, if that is depthwise and kernels of our own do it."""
    target, args = node.target, node.args
    backward = target is aten.convolution_backward.default
    if not backward and target is not aten.convolution.default:
        return None
    place = 1 if backward else 0
    image, weight = spec_of_node(args[place]), spec_of_node(args[place + 1])  # type: ignore[arg-type]
    step, pad, gap, transposed, _, groups = args[place + 3 : place + 9]
    if not isinstance(image, TensorSpec) or not isinstance(weight, TensorSpec) or transposed:
        return None
    if not _fit(image, weight, groups):
        return None
    lengths = weight.sizes[2:]
    rows, columns = (
        Window(*numbers)
        for numbers in zip(lengths, *(_pair(numbers) for numbers in (step, pad, gap)), strict=True)
    )
    return Convolution(place, place + 1, (rows, columns))


def _fit(image: TensorSpec, weight: TensorSpec, groups: object) -> bool:
    """Whether each channel of an image of a GPU is convolved with its own window, of sizes that are known."""
    if image.device.type != "cuda" or image.dtype not in _DTYPES or image.rank != 4:
        return False
    channels, *kernel = (weight.sizes[0], *weight.sizes[2:])
    known = all(isinstance(size, int) for size in (*image.sizes[1:], *weight.sizes))
    if not known or not groups == channels == image.sizes[1] or weight.sizes[1] != 1:
        return False
    height, width = kernel
    return channels >= _CHANNELS and 1 < height * width <= _MOST_TAPS  # type: ignore[operator]


def _pair(numbers: Any) -> Sequence[int]:
    return list(numbers) * 2 if len(numbers) == 1 else list(numbers)


class DepthwiseConvolutions:
    """One depthwise convolution, or its gradient, while it is lowered."""

    def __init__(self, values: Values, name: str, found: Convolution, where: UserLocation | None) -> None:
        self._values, self._name, self._found, self._where = values, name, found, where

    def lowered(
        self, op: OpOverload, given: Sequence[Any], specs: Sequence[TensorSpec | None], asked: Sizes | None
    ) -> tuple[Operand | None, ...] | None:
        """The results; None where the images do not lie channels-last, so that a library call computes them.

        ``given``: the arguments as they were lowered; ``specs``: of the results, as they are to lie, None for those
        that nothing reads; ``asked``: the strides that the image is wanted with, if such were chosen.
        """
        image = given[self._found.image]
        if asked != channels_last(image.sizes) and not self._lies_last(image):
            return None
        if specs[0] is not None and not is_last(specs[0].sizes, specs[0].strides):
            return None
        if op is aten.convolution.default:
            assert specs[0] is not None
            _, weight, bias = given[:3]
            return (operand_of(self._sums(self._name, image, weight, bias, specs[0], transposed=False)),)
        return self._backward(given, *specs)

    def _backward(
        self,
        given: Sequence[Any],
        of_image: TensorSpec | None,
        of_weight: TensorSpec | None,
        of_bias: TensorSpec | None,
    ) -> tuple[Operand | None, ...]:
        slope, _, weight = given[:3]
        results: list[Operand | None] = [None] * 3
        if of_image is not None:
            made = self._sums(f"{self._name}_0", slope, weight, None, of_image, transposed=True)
            results[0] = operand_of(made)
        if of_weight is not None:
            results[1] = self._of_weight(given, of_weight)
        if of_bias is not None:
            total = Reduction("sum", slope, (0, 2, 3))
            results[2] = operand_of(self._values.add_value(f"{self._name}_2", of_bias, total, self._where))
        return tuple(results)

    def _sums(
        self,
        name: str,
        image: Operand,
        weight: Operand,
        bias: Operand | None,
        spec: TensorSpec,
        *,
        transposed: bool,
    ) -> Value:
        image = self._stored(image, channels_last(image.sizes))
        formula = Depthwise(image, self._weight(weight, spec), bias, self._found.windows, transposed)
        return self._values.add_value(name, spec, formula, self._where)

    def _of_weight(self, given: Sequence[Any], spec: TensorSpec) -> Operand:
        """The gradient of the weight, as a call of its own."""
        slope, image = given[:2]
        where, values = self._where, self._values
        last = tuple(values.place(operand, where, channels_last(operand.sizes)) for operand in (slope, image))
        made = values.add_value(f"{self._name}_1", spec, None, where)
        op: OpOverload = aten.convolution_backward.default
        made.call = ExternalCall(op, last, (), (made.number,), False, where)
        values.result.calls.append(made.call)
        values.result.windows[made.number] = self._found.windows
        return operand_of(made)

    def _weight(self, weight: Operand, spec: TensorSpec) -> Operand:
        """The weight as kernels read it: of large images, or where it is computed anyway, with its channels side by
        side."""
        channels, _, height, width = weight.sizes
        work = height * width
        for size in spec.sizes:
            work = work * size
        computed = self._values.result.values[weight.source].formula is not None
        if isinstance(work, int) and work < _MUCH and not computed:
            return weight
        return self._stored(weight, (1, channels, width * channels, channels))

    def _stored(self, operand: Operand, strides: Sizes) -> Operand:
        """``operand`` where its memory has these ``strides``: a copy if that is another."""
        placed = self._values.place(operand, self._where, strides)
        return (
            operand
            if placed.source == operand.source
            else operand_of(self._values.result.values[placed.source])
        )

    def _lies_last(self, operand: Operand) -> bool:
        layout = self._values.layout_of(operand)
        return layout is not None and same_strides(layout, channels_last(operand.sizes))


def is_last(sizes: Sizes, strides: Sizes) -> bool:
    """Whether an image lies channels-last."""
    return same_strides(Layout(sizes, strides, 0), channels_last(sizes))


def channels_last(sizes: Sizes) -> Sizes:
    """The strides of [N, C, H, W] with the channels last in memory."""
    _, channels, height, width = sizes
    return (channels * height * width, 1, width * channels, channels)
