"""Views: shape-only primitives as maps of indices and, where possible, of strides."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import ZERO, Index, flatten, rejoined, unflatten

Sizes: TypeAlias = tuple[IntLike, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a strided tensor lie: ``offset + sum(index * stride)`` elements behind its
    buffer's first.
    """

    sizes: Sizes
    strides: Sizes
    offset: IntLike

    def address(self, index: Sequence[Index]) -> Index:
        """The position of one element in the buffer."""
        total = Index(self.offset)
        for position, stride in zip(index, self.strides, strict=True):
            total = total + position * stride
        return rejoined(total)


@dataclass(frozen=True, slots=True)
class Permute:
    """Dimension ``k`` of the result is dimension ``dims[k]`` of the operand."""

    dims: tuple[int, ...]
    sizes: Sizes

    def map(self, index: tuple[Index, ...], env: ShapeEnv) -> tuple[Index, ...]:
        """The operand's index of the result's element ``index``."""
        source: list[Index] = [ZERO] * len(index)
        for axis, dim in enumerate(self.dims):
            source[dim] = index[axis]
        return tuple(source)

    def restride(self, layout: Layout) -> Layout | None:
        """The result's layout in the operand's buffer, or None if strides cannot say it."""
        return Layout(self.sizes, tuple(layout.strides[dim] for dim in self.dims), layout.offset)


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Axis ``i`` of the operand is axis ``dims[i]`` of the result; operand axes of size 1 and new axes
    repeat.
    """

    operand_sizes: Sizes
    dims: tuple[int, ...]
    sizes: Sizes

    def map(self, index: tuple[Index, ...], env: ShapeEnv) -> tuple[Index, ...]:
        return tuple(
            ZERO if is_one(size) else index[dim]
            for size, dim in zip(self.operand_sizes, self.dims, strict=True)
        )

    def restride(self, layout: Layout) -> Layout | None:
        strides: list[IntLike] = [0] * len(self.sizes)
        for axis, dim in enumerate(self.dims):
            repeats = is_one(self.operand_sizes[axis]) and not is_one(self.sizes[dim])
            strides[dim] = 0 if repeats else layout.strides[axis]
        return Layout(self.sizes, tuple(strides), layout.offset)


@dataclass(frozen=True, slots=True)
class Slice:
    """Element ``i`` of an axis is the operand's element ``start + i * step``."""

    starts: Sizes
    steps: Sizes
    sizes: Sizes

    def map(self, index: tuple[Index, ...], env: ShapeEnv) -> tuple[Index, ...]:
        return tuple(i * step + start for i, step, start in zip(index, self.steps, self.starts, strict=True))

    def restride(self, layout: Layout) -> Layout | None:
        offset = layout.offset
        for start, stride in zip(self.starts, layout.strides, strict=True):
            offset = offset + start * stride
        strides = tuple(stride * step for stride, step in zip(layout.strides, self.steps, strict=True))
        return Layout(self.sizes, strides, offset)


@dataclass(frozen=True, slots=True)
class Flip:
    """The named axes run backwards."""

    dims: tuple[int, ...]
    sizes: Sizes

    def map(self, index: tuple[Index, ...], env: ShapeEnv) -> tuple[Index, ...]:
        return tuple(
            i * -1 + (size - 1) if axis in self.dims else i
            for axis, (i, size) in enumerate(zip(index, self.sizes, strict=True))
        )

    def restride(self, layout: Layout) -> Layout | None:
        return None


@dataclass(frozen=True, slots=True)
class Segment:
    """Consecutive axes of a reshape's operand and result that hold the same elements."""

    operand: range
    result: range


@dataclass(frozen=True, slots=True)
class Reshape:
    """The same elements in row-major order under other sizes."""

    operand_sizes: Sizes
    sizes: Sizes
    segments: tuple[Segment, ...]

    def map(self, index: tuple[Index, ...], env: ShapeEnv) -> tuple[Index, ...]:
        source: list[Index] = [ZERO] * len(self.operand_sizes)
        for segment in self.segments:
            if len(segment.operand) == len(segment.result) == 1:
                source[segment.operand.start] = index[segment.result.start]
                continue
            position = flatten([index[k] for k in segment.result], [self.sizes[k] for k in segment.result])
            inside = unflatten(position, [self.operand_sizes[k] for k in segment.operand], env)
            for axis, value in zip(segment.operand, inside, strict=True):
                source[axis] = value
        return tuple(source)

    def restride(self, layout: Layout) -> Layout | None:
        strides: list[IntLike] = [1] * len(self.sizes)
        for segment in self.segments:
            step = _merged_stride([(layout.sizes[k], layout.strides[k]) for k in segment.operand])
            if step is None:
                return None
            for axis in reversed(segment.result):
                strides[axis] = step
                step = step * self.sizes[axis]
        for axis in reversed(
            range(len(self.sizes) - 1)
        ):  # in no segment; kernels ask for multiples of their width
            if is_one(self.sizes[axis]):
                strides[axis] = strides[axis + 1] * self.sizes[axis + 1]
        return Layout(self.sizes, tuple(strides), layout.offset)


View: TypeAlias = Permute | Broadcast | Slice | Flip | Reshape


def is_one(size: IntLike) -> bool:
    """Whether a size is 1 for certain (symbolic sizes are 2 or more)."""
    return isinstance(size, int) and size == 1


def _merged_stride(axes: list[tuple[IntLike, IntLike]]) -> IntLike | None:
    """The stride of the one axis that these (size, stride) axes amount to; None if they do not."""
    axes = [axis for axis in axes if not is_one(axis[0])]
    if not axes:
        return 1
    for (_, outer), (size, stride) in pairwise(axes):
        if outer != size * stride:
            return None
    return axes[-1][1]


def reshape(operand_sizes: Sizes, sizes: Sizes) -> Reshape:
    """A reshape, cut into the smallest segments that are found."""
    return Reshape(operand_sizes, sizes, tuple(_segments(operand_sizes, sizes)))


def _segments(operand: Sizes, result: Sizes) -> list[Segment]:
    found: list[Segment] = []
    a = b = 0
    while a < len(operand) or b < len(result):
        a_end, b_end = _grow(operand, result, a, b)
        found.append(Segment(range(a, a_end), range(b, b_end)))
        a, b = a_end, b_end
    return found


def _grow(operand: Sizes, result: Sizes, a: int, b: int) -> tuple[int, int]:
    """Ends of the smallest segment that starts at ``a`` and ``b``; all the rest where symbolic sizes hide
    it.
    """
    a_end, b_end = min(a + 1, len(operand)), min(b + 1, len(result))
    if a_end == a or b_end == b:
        return len(operand), len(result)
    left, right = operand[a], result[b]
    while left != right:
        if divides(right, left) and b_end < len(result):
            right = right * result[b_end]
            b_end += 1
        elif (divides(left, right) and a_end < len(operand)) or (
            isinstance(left, int) and isinstance(right, int) and 0 < left < right and a_end < len(operand)
        ):
            left = left * operand[a_end]
            a_end += 1
        elif isinstance(left, int) and isinstance(right, int) and 0 < right < left and b_end < len(result):
            right = right * result[b_end]
            b_end += 1
        else:
            return len(operand), len(result)
    return a_end, b_end


def divides(divisor: IntLike, value: IntLike) -> bool:
    """Whether it does so for certain."""
    if isinstance(divisor, int) and divisor == 0:
        return False
    remainder = value % divisor
    return isinstance(remainder, int) and remainder == 0
