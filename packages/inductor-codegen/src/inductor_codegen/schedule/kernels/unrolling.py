"""Unrolling: kernels that sum over windows compute several neighbouring points at once, which share what they load.

    for (w < 56)  out[w] = in[w - 1] * k0 + in[w] * k1 + in[w + 1] * k2
    for (v < 7)   out[8v] = in[8v - 1] * k0 + in[8v] * k1 + in[8v + 1] * k2;  out[8v + 1] = in[8v] * k0 + ...

Rows of a large window are not written out, but summed in a loop of the kernel: compiling takes a second for
9 taps that are written out, and half a minute for 49.

Eight points of three taps so load 10 elements and not 24. The dimension is one that does not run along memory, which is
left to vectors: the width of images whose channels come last. Points of a convolution's gradient take turns with the
step of the convolution in which taps they read; unrolled by it, each statement has its own taps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from math import gcd

from inductor_codegen.lower.values import Depthwise, Lowered
from inductor_codegen.schedule.fusion.groups import Group

WRITTEN_OUT = 9
"""Taps up to which a window is written out whole."""
MOST = 8
"""Points that are computed at once at most: as many totals are in registers, of four channels each."""


def loops_over_rows(formula: Depthwise) -> bool:
    """Whether the rows of a window are the turns of a loop. Those that are read at one point in two stay apart."""
    rows, columns = formula.windows
    large = rows.length > 1 and rows.length * columns.length > WRITTEN_OUT
    return large and not (formula.transposed and rows.step > 1)


def unrolled_axes(group: Group, lowered: Lowered) -> tuple[int, ...]:
    """The dimensions of the group's domain, which is cut for them, that become statements; none without a window."""
    if not group.windows:
        return ()
    (number,) = group.windows
    value = lowered.values[number]
    assert isinstance(value.formula, Depthwise)
    found: list[int] = []
    budget = MOST
    steps = [window.step if value.formula.transposed else 1 for window in value.formula.windows]
    for dim, step in ((2, steps[0]), (3, steps[1])):
        runs = group.domain.align(value.sizes)
        assert runs is not None
        if not runs[dim]:
            continue
        axis = runs[dim][-1]
        factor = _factor(group.domain.dims[axis], step, step if dim == 2 else budget)
        budget //= factor if dim == 2 else 1
        if factor > 1:
            if group.domain.dims[axis] != factor:
                group.domain.cut(axis, factor)
                axis += 1
            found.append(axis)
    return tuple(found)


def _factor(size: object, step: int, most: int) -> int:
    """By how much to unroll a dimension: the largest of its divisors up to ``most`` that the ``step`` divides, if one
    is, else the largest."""
    if not isinstance(size, int):
        return 1
    divisors = [factor for factor in range(1, max(most, step) + 1) if size % factor == 0]
    return max(divisors, key=lambda factor: (gcd(factor, step) == step, factor <= most, factor))


def turns(group: Group, axes: tuple[int, ...]) -> Iterator[dict[int, int]]:
    """Where each statement stands along the unrolled dimensions."""
    ranges = [range(group.domain.dims[axis]) for axis in axes]  # type: ignore[arg-type]
    for places in itertools.product(*ranges):
        yield dict(zip(axes, places, strict=True))
