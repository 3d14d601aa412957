"""The gradient of a depthwise convolution's weight on a GPU, as kernels.

    between[part, i, j, c] = sum over the part's points of slope[n, c, h, w] * image[n, c, place(h, i), place(w, j)]
    result[c, 0, i, j] = sum over parts of between[part, i, j, c]

A program of the first kernel has some channels side by side and all taps of theirs: an element of either image is read
once or twice, and used for each tap. It goes along rows of several points at a time, which share what they load.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from fx_interface.symbols import IntLike, ShapeEnv, product, symbol
from fx_interface.tensor_spec import contiguous_strides
from inductor_codegen.ir.gpu.blocks import CHANNELS_OF_TAPS, PROGRAMS
from inductor_codegen.ir.index import Index, LoopVar, as_index, flatten
from inductor_codegen.ir.kernel import (
    Access,
    Accumulate,
    BufferParameter,
    Kernel,
    Parameter,
    Pass,
    SizeParameter,
    Store,
    Vector,
)
from inductor_codegen.ir.scalar import Constant, Scalar, ScalarBuilder
from inductor_codegen.ir.traverse import Rebuilder
from inductor_codegen.lower.values import ExternalCall, Lowered, Placed, Value, Window
from inductor_codegen.lower.views import is_one
from inductor_codegen.schedule.kernels.build import kernel_name
from inductor_codegen.schedule.kernels.called import Called, size_names
from inductor_codegen.schedule.kernels.loops import hint
from inductor_codegen.schedule.kernels.unrolling import MOST, WRITTEN_OUT
from inductor_codegen.schedule.kernels.windows import inside

_SINGLE = torch.float32


def depthwise_kernels(call: ExternalCall, lowered: Lowered, env: ShapeEnv) -> list[Called]:
    """The kernels in place of a call that gives the gradient of a depthwise weight; none of other calls."""
    number = next((one for one in call.results if one is not None and one in lowered.windows), None)
    if number is None:
        return []
    slope, image = call.args[:2]
    assert isinstance(slope, Placed)
    assert isinstance(image, Placed)
    gradient = _Gradient(slope, image, lowered.values[number], lowered.windows[number], env)
    return gradient.kernels(lowered)


class _Gradient:
    """The kernels of one gradient, while they are built."""

    def __init__(
        self, slope: Placed, image: Placed, result: Value, windows: tuple[Window, Window], env: ShapeEnv
    ) -> None:
        self.slope, self.image, self.result, self.windows, self.env = slope, image, result, windows, env
        self.images, channels, height, width = slope.layout.sizes
        assert isinstance(channels, int)
        assert isinstance(height, int)
        assert isinstance(width, int)
        self.channels, self.height, self.width = channels, height, width
        rows, columns = (window.length for window in windows)
        self.apart = rows if rows * columns > WRITTEN_OUT else 1
        """Into how many sums of programs of their own the rows of a window are divided."""
        self.parts = self._parts()

    def kernels(self, lowered: Lowered) -> list[Called]:
        taken = {value.name for value in lowered.values}
        name = f"{self.result.name}_parts"
        while name in taken:
            name += "_"
        sizes = (self.parts[0] * self.parts[1], *self.result.sizes[2:], self.channels)
        between = replace(
            self.result, name=name, sizes=sizes, strides=contiguous_strides(sizes), dtype=_SINGLE
        )
        return [replace(self._sums(between, lowered), between=between), self._joined(between)]

    def _parts(self) -> tuple[IntLike, int]:
        """Into how many parts images and rows are divided: enough that a GPU is busy, no more than are of use."""
        blocks = -(-self.channels // CHANNELS_OF_TAPS) * self.apart
        wanted = -(-PROGRAMS // blocks)
        if isinstance(self.images, int):
            of_images = _divisor(self.images, wanted)
            images: IntLike = of_images
        else:
            images, of_images = self.images, hint(self.images, self.env)
        return images, _divisor(self.height, -(-wanted // of_images))

    def _sums(self, between: Value, lowered: Lowered) -> Called:
        """The kernel that sums parts."""
        make = ScalarBuilder()
        images, rows = self.parts
        together = max(size for size in range(1, MOST + 1) if self.width % size == 0)
        along = self.images // images if isinstance(self.images, int) else 1
        vertical, horizontal = self.windows
        extents: list[IntLike] = [images, rows, self.apart, self.channels]
        extents += [along, self.height // rows, self.width // together]
        loops = [LoopVar(f"i{place}", extent) for place, extent in enumerate(extents)]
        of_images, of_rows, tap, channel, image, row, column = map(as_index, loops)
        points = _Points(make, self, lowered)
        n, h = flatten((of_images, image), (images, along)), flatten((of_rows, row), (rows, extents[5]))
        lines = [tap] if self.apart > 1 else [Index(i) for i in range(vertical.length)]
        columns = [column * together + turn for turn in range(together)]
        part = flatten((of_images, of_rows), (images, rows))
        reduced: list[Accumulate] = []
        stored: list[Store] = []
        for i, j in itertools.product(lines, range(horizontal.length)):
            place = len(reduced)
            reduced.append(Accumulate(place, "sum", points.sum((n, channel, h), columns, i, j), _SINGLE))
            address = between.layout.address((part, i, Index(j), channel))
            stored.append(Store("out0", address, make.total(place, _SINGLE)))
        buffers = [
            BufferParameter("in0", points.dtypes[0], Access.READ),
            BufferParameter("in1", points.dtypes[1], Access.READ),
            BufferParameter("out0", _SINGLE, Access.WRITE),
        ]
        passes = (Pass(tuple(reduced), tuple(stored)),)
        given = (self.slope, self.image, between)
        return self._called(buffers, loops[:4], loops[4:], passes, given, taps=True)

    def _joined(self, between: Value) -> Called:
        """The kernel that adds the parts up."""
        make = ScalarBuilder()
        parts, *taps_of, channels = between.sizes
        count = product(taps_of)
        tap, channel, part = (
            LoopVar(f"i{place}", size) for place, size in enumerate((count, channels, parts))
        )
        read = as_index(part) * (count * channels) + as_index(tap) * channels + as_index(channel)
        written = as_index(channel) * count + as_index(tap)
        total = make.convert(make.total(0, _SINGLE), self.result.dtype)
        reduced = Accumulate(0, "sum", make.load("in0", read, _SINGLE), _SINGLE)
        buffers = [
            BufferParameter("in0", _SINGLE, Access.READ),
            BufferParameter("out0", self.result.dtype, Access.WRITE),
        ]
        passes = (Pass((reduced,), (Store("out0", written, total),)),)
        return self._called(buffers, [tap, channel], [part], passes, (between, self.result))

    def _called(
        self,
        buffers: Sequence[BufferParameter],
        outer: Sequence[LoopVar],
        inner: Sequence[LoopVar],
        passes: tuple[Pass, ...],
        given: tuple[Placed | Value, ...],
        *,
        taps: bool = False,
    ) -> Called:
        """A kernel without the loops that turn once."""
        alone = {loop: Index(0) for loop in (*outer, *inner) if is_one(loop.extent)}
        step = _Placing(alone, self.env)
        outer, inner = ([loop for loop in loops if loop not in alone] for loops in (outer, inner))
        names = size_names(loop.extent for loop in (*outer, *inner))
        parameters: tuple[Parameter, ...] = (*buffers, *map(SizeParameter, names))
        comments = ("convolution_backward: the gradient of a depthwise weight",)
        placed = tuple(map(step.run, passes))
        kernel = Kernel("", parameters, tuple(outer), tuple(inner), Vector.OUTER, placed, comments, taps=taps)
        kernel = replace(kernel, name=kernel_name(kernel))
        return Called(kernel, given, tuple(map(symbol, names)))


class _Points:
    """What is read of slope and image."""

    def __init__(self, make: ScalarBuilder, of: _Gradient, lowered: Lowered) -> None:
        self._make, self._of = make, of
        self.dtypes = [lowered.values[placed.source].dtype for placed in (of.slope, of.image)]

    def sum(self, point: tuple[Index, Index, Index], columns: Sequence[Index], i: Index, j: int) -> Scalar:
        """What the tap in row ``i`` and column ``j`` of the window adds at these columns of a row of points."""
        make, of = self._make, self._of
        n, channel, h = point
        vertical, horizontal = of.windows
        _, _, height, width = of.image.layout.sizes
        zero = make.constant(0, self.dtypes[1])
        y = h * vertical.step + i * vertical.gap + (-vertical.pad)
        total: Scalar = make.constant(0, _SINGLE)
        for w in columns:
            x = w * horizontal.step + (j * horizontal.gap - horizontal.pad)
            above, beside = inside(y, height, of.env), inside(x, width, of.env)
            if above is None or beside is None:
                continue
            element = make.guarded((*above, *beside), self._load(1, of.image, (n, channel, y, x)), zero)
            term = self._product(self._load(0, of.slope, (n, channel, h, w)), element)
            first = isinstance(total, Constant)
            total = term if first else make.apply("add", (total, term), _SINGLE)
        return total

    def _load(self, number: int, placed: Placed, index: tuple[Index, ...]) -> Scalar:
        return self._make.load(f"in{number}", placed.layout.address(index), self.dtypes[number])

    def _product(self, one: Scalar, other: Scalar) -> Scalar:
        make = self._make
        return make.apply("mul", (make.convert(one, _SINGLE), make.convert(other, _SINGLE)), _SINGLE)


class _Placing(Rebuilder):
    """Puts loop variables to where they stand."""

    def __init__(self, places: Mapping[LoopVar, Index], env: ShapeEnv) -> None:
        super().__init__(
            ScalarBuilder(), env, atom=lambda atom: places.get(atom) if isinstance(atom, LoopVar) else None
        )

    def run(self, step: Pass) -> Pass:
        row = tuple(Store(s.buffer, self.index(s.index), self.scalar(s.value)) for s in step.row)
        return Pass(tuple(map(self.statement, step.points)), row)


def _divisor(size: int, wanted: int) -> int:
    """The least divisor of a size that is no less than ``wanted``; the size where it is less."""
    return next((part for part in range(1, size) if size % part == 0 and part >= wanted), size)
