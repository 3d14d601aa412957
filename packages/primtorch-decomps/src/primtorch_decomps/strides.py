"""Memory layout: the strides that eager gives to results, for views, for copies and for pointwise operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.symbols import IntLike, Relation, ShapeEnv
from fx_interface.tensor_spec import contiguous_strides
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.shapes import Sizes, below, is_multiple, same, same_sizes


class HasLayout(Protocol):
    """A tensor's sizes and strides."""

    @property
    def sizes(self) -> Sizes: ...

    @property
    def strides(self) -> Sizes: ...


@dataclass(frozen=True, slots=True)
class Layout:
    """Sizes and strides alone."""

    sizes: Sizes
    strides: Sizes


def is_one(size: IntLike) -> bool:
    """Whether a size is the integer 1; symbolic sizes are at least 2."""
    return isinstance(size, int) and size == 1


def is_contiguous(sizes: Sizes, strides: Sizes, order: Sequence[int] | None = None) -> bool:
    """Whether the strides are dense with the dimensions in ``order``, outermost first (default: row-major)."""
    expected: IntLike = 1
    for axis in reversed(range(len(sizes)) if order is None else order):
        size = sizes[axis]
        if isinstance(size, int):
            if size == 1:
                continue
            if size == 0:
                return True
        if strides[axis] is not expected and strides[axis] != expected:
            return any_zero(sizes)
        expected = expected * size
    return True


def any_zero(sizes: Sizes) -> bool:
    """Whether the tensor has no elements."""
    return 0 in sizes


def channels_last_order(rank: int) -> tuple[int, ...] | None:
    """The dimension order of the channels-last format, outermost first; None if the rank has none."""
    return {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}.get(rank)


def ordered_strides(sizes: Sizes, order: Sequence[int]) -> Sizes:
    """Dense strides with the dimensions laid out in ``order``, outermost first."""
    strides: list[IntLike] = [1] * len(sizes)
    running: IntLike = 1
    for axis in reversed(order):
        strides[axis] = running
        running = running * sizes[axis]
    return tuple(strides)


def is_channels_last(sizes: Sizes, strides: Sizes) -> bool:
    """Whether a 4- or 5-dimensional tensor is dense in the channels-last format."""
    order = channels_last_order(len(sizes))
    return order is not None and not any_zero(sizes) and is_contiguous(sizes, strides, order)


def is_strided_channels_last(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> bool:
    """Whether torch's ``suggest_memory_format`` says channels-last: the strides grow in that order, dense or not."""
    order = channels_last_order(len(sizes))
    if order is None or any_zero(sizes) or (isinstance(strides[1], int) and strides[1] == 0):
        return False
    least: IntLike = 0
    for axis in reversed(order):
        if below(strides[axis], least, env):
            return False
        if axis == 0 and same(least, strides[1], env):
            return False
        least = strides[axis] if is_one(sizes[axis]) else strides[axis] * sizes[axis]
    return True


def is_inside(one: IntLike, other: IntLike, env: ShapeEnv) -> bool:
    """Whether the stride (or size) ``one`` is less than ``other``; sizes from data count as at least 2."""
    if isinstance(one, int) and isinstance(other, int):
        return one < other
    asked = Relation("<", one, other)
    settled = env.known_in_general(asked)
    if settled is None and env.is_from_data(asked):
        multiple = is_multiple(other, one, env)
        settled = multiple if multiple or is_multiple(one, other, env) else None
    return below(one, other, env) if settled is None else settled


def stride_order(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> list[int] | None:
    """Dimensions outermost first if the tensor is dense without overlap in some order, else None."""
    dims = [axis for axis in range(len(sizes)) if not is_one(sizes[axis])]
    ordered: list[int] = []
    for axis in dims:
        place = len(ordered)
        while place and is_inside(strides[ordered[place - 1]], strides[axis], env):
            place -= 1
        ordered.insert(place, axis)
    if not is_contiguous(sizes, strides, ordered):
        return None
    return ordered


def is_dense(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> bool:
    """Whether the tensor covers its memory without gap or overlap."""
    return is_contiguous(sizes, strides) or stride_order(sizes, strides, env) is not None


def preserved_strides(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> Sizes:
    """The strides of ``empty_like``, ``clone`` and the like under ``preserve_format``."""
    if is_contiguous(sizes, strides):
        return strides
    if is_dense(sizes, strides, env):
        return strides
    return pointwise_strides([Layout(sizes, strides)], sizes, env)


def overwritten_strides(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> Sizes:
    """The strides of a copy of which a part is replaced: the same, gaps included, unless elements share memory."""
    stretched = any(
        isinstance(stride, int) and stride == 0 and not is_one(size)
        for size, stride in zip(sizes, strides, strict=True)
    )
    return preserved_strides(sizes, strides, env) if stretched else strides


def format_strides(
    sizes: Sizes, strides: Sizes, memory_format: torch.memory_format | None, env: ShapeEnv
) -> Sizes:
    """The strides of a fresh copy in ``memory_format`` (default: preserve)."""
    if memory_format is None or memory_format is torch.preserve_format:
        return preserved_strides(sizes, strides, env)
    if memory_format is torch.contiguous_format:
        return contiguous_strides(sizes)
    order = channels_last_order(len(sizes))
    if order is None or (len(sizes) == 5) != (memory_format is torch.channels_last_3d):
        raise RuleMismatchError(f"{memory_format} does not fit {len(sizes)} dimensions")
    return ordered_strides(sizes, order)


def pointwise_strides(
    operands: Sequence[HasLayout], sizes: Sizes, env: ShapeEnv, numbers: bool = False
) -> Sizes:
    """The strides of a pointwise result of shape ``sizes``: TensorIterator's rule.

    Operands of one shape that are all contiguous, all channels-last, or all dense with equal strides keep that layout
    (``numbers``: a Python number takes part, so the shapes are not all one). Else dimensions are sorted by the
    operands' strides, the first operand that tells two dimensions apart decides, and the result is dense in that order.
    """
    row_major = contiguous_strides(sizes)
    for operand in operands:
        if operand.strides != row_major or operand.sizes != sizes:
            break
    else:
        if not numbers or not any_zero(sizes):
            return row_major
    if not numbers and all(operand.sizes == sizes for operand in operands):
        if all(is_contiguous(o.sizes, o.strides) for o in operands):
            return contiguous_strides(sizes)
        if all(is_channels_last(o.sizes, o.strides) for o in operands):
            return ordered_strides(sizes, channels_last_order(len(sizes)) or ())
        first = operands[0].strides
        if all(o.strides == first for o in operands) and is_dense(sizes, first, env):
            return first
    elif not any_zero(sizes) and all(o.strides == contiguous_strides(o.sizes) for o in operands):
        return contiguous_strides(sizes)
    return _sorted_strides(operands, sizes, env)


def _sorted_strides(operands: Sequence[HasLayout], sizes: Sizes, env: ShapeEnv) -> Sizes:
    rank = len(sizes)
    rows = [broadcast_strides(operand, sizes) for operand in operands if len(operand.sizes)]
    order = list(reversed(range(rank)))  # innermost first
    for end in range(1, rank):
        moving = end
        for place in range(end - 1, -1, -1):
            comparison = _compare_dims(order[place], order[moving], rows, sizes, env)
            if comparison > 0:
                order[place], order[moving] = order[moving], order[place]
                moving = place
            elif comparison < 0:
                break
    if order == list(reversed(range(rank))):
        return contiguous_strides(sizes)
    strides: list[IntLike] = [1] * rank
    running: IntLike = 1
    for axis in order:
        strides[axis] = running
        running = running * sizes[axis]
    return tuple(strides)


def broadcast_strides(operand: HasLayout, sizes: Sizes) -> list[IntLike]:
    """The operand's strides over the broadcast shape ``sizes``: 0 where it is stretched."""
    offset = len(sizes) - len(operand.sizes)
    row: list[IntLike] = [0] * len(sizes)
    for axis, (size, stride) in enumerate(zip(operand.sizes, operand.strides, strict=True), offset):
        row[axis] = 0 if is_one(size) and not is_one(sizes[axis]) else stride
    return row


def _compare_dims(
    inner: int, outer: int, rows: Sequence[Sequence[IntLike]], sizes: Sizes, env: ShapeEnv
) -> int:
    """Negative: ``inner`` stays inside ``outer``; positive: they swap; 0: no operand tells."""
    for row in rows:
        one, other = row[inner], row[outer]
        if (isinstance(one, int) and one == 0) or (isinstance(other, int) and other == 0):
            continue
        if one is not other and one != other:
            if is_inside(one, other, env):
                return -1
            if is_inside(other, one, env):
                return 1
        if is_inside(sizes[outer], sizes[inner], env):
            return 1
    return 0


def _goes_on(stride: IntLike, run: IntLike, base: IntLike, env: ShapeEnv) -> bool:
    """Whether a dimension continues a run of memory. A run of one element has no stride: either answer gives a view. So
    sizes from data count as at least 2: where they are less, only shapes are refused that memory would allow."""
    following = run * base
    if not (isinstance(stride, int) and isinstance(following, int)):
        asked = Relation("==", stride, following)
        settled = env.known_in_general(asked)
        if settled is not None:
            return settled
        if env.is_from_data(asked) and (
            is_multiple(stride, following, env) or is_multiple(following, stride, env)
        ):
            return False
    return same(stride, following, env)


def _fills(done: IntLike, size: IntLike, run: IntLike) -> bool:
    """Whether a further dimension surely belongs to a run: it has one element, or is just what is missing."""
    return is_one(size) or done * size == run


def view_strides(sizes: Sizes, strides: Sizes, target: Sizes, env: ShapeEnv) -> Sizes | None:
    """The strides under which memory of ``sizes``/``strides`` is seen as shape ``target``; None if there are none.

    Dimensions are grouped from the last into runs that are contiguous in memory; each run must be split exactly.
    """
    if any_zero(sizes):
        return strides if same_sizes(sizes, target, env) else contiguous_strides(target)
    if strides == contiguous_strides(sizes):
        return contiguous_strides(target)
    result: list[IntLike] = [1] * len(target)
    place = len(target) - 1
    base = strides[-1] if strides else 1
    run: IntLike = 1
    for axis in range(len(sizes) - 1, -1, -1):
        run = run * sizes[axis]
        if axis and (is_one(sizes[axis - 1]) or _goes_on(strides[axis - 1], run, base, env)):
            continue
        done: IntLike = 1
        while place >= 0 and (_fills(done, target[place], run) or is_inside(done, run, env)):
            result[place] = done * base
            done = done * target[place]
            place -= 1
        if not same(done, run, env):
            return None
        if axis:
            base, run = strides[axis - 1], 1
    return tuple(result) if place < 0 else None


__all__ = [
    "HasLayout",
    "Layout",
    "any_zero",
    "broadcast_strides",
    "channels_last_order",
    "format_strides",
    "is_channels_last",
    "is_contiguous",
    "is_dense",
    "is_one",
    "is_strided_channels_last",
    "ordered_strides",
    "overwritten_strides",
    "pointwise_strides",
    "preserved_strides",
    "view_strides",
]
