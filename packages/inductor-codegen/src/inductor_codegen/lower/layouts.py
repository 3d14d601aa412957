"""What strides say of a tensor's elements: whether they fill their memory, share it, or are the same ones."""

from __future__ import annotations

from collections.abc import Iterable

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import IntLike, ShapeEnv
from inductor_codegen.ir.index import at_least
from inductor_codegen.lower.views import Layout, Sizes, View, is_one


def seen_through(layout: Layout, views: Iterable[View]) -> Layout | None:
    """Where elements lie that are seen through views, the first of which is nearest; None if strides cannot say it."""
    seen: Layout | None = layout
    for view in views:
        seen = None if seen is None else view.restride(seen)
    return seen


def is_dense(sizes: Sizes, strides: Sizes) -> bool:
    """Whether the strides are those of some order of the dimensions without gaps or overlaps."""
    axes = [(stride, size) for stride, size in zip(strides, sizes, strict=True) if not is_one(size)]
    expected: IntLike = 1
    while axes:
        found = next((axis for axis in axes if axis[0] == expected), None)
        if found is None:
            return any(isinstance(size, int) and size == 0 for size in sizes)
        axes.remove(found)
        expected = expected * found[1]
    return True


def is_disjoint(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> bool:
    """Whether no two elements share memory for certain, gaps between them allowed."""
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return True
    axes = [(stride, size) for stride, size in zip(strides, sizes, strict=True) if not is_one(size)]
    try:
        axes.sort(key=lambda axis: env.hint(axis[0]))
    except UnbackedSymbolError:
        return False
    reach: IntLike = 1
    for stride, size in axes:
        if not at_least(env, stride, reach):
            return False
        reach = stride * size
    return True


def is_disjoint_at_hand(sizes: Sizes, strides: Sizes, env: ShapeEnv) -> bool:
    """The same at the sizes at hand. Where symbolic sizes become others at which elements share memory, those hold one
    number, if the strides are those of a tensor that eager has there."""
    if any(isinstance(size, int) and size == 0 for size in sizes):
        return True
    axes = [(stride, size) for stride, size in zip(strides, sizes, strict=True) if not is_one(size)]
    try:
        spans = sorted((env.hint(stride), env.hint(size)) for stride, size in axes)
    except UnbackedSymbolError:
        return False
    end = 1  # behind the last element of the axes so far
    for stride, size in spans:
        if stride < end:
            return False
        end += stride * (size - 1)
    return True


def same_strides(layout: Layout, strides: Sizes) -> bool:
    """Whether ``strides`` address the same elements; those of dimensions of size 0 and 1 do not matter."""
    if any(isinstance(size, int) and size == 0 for size in layout.sizes):
        return True
    return all(
        is_one(size) or have == wanted
        for size, have, wanted in zip(layout.sizes, layout.strides, strides, strict=True)
    )
