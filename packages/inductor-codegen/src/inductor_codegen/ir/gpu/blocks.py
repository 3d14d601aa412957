"""How a GPU takes a kernel: programs of some rows each, which hold all points of a row if these are few enough."""

from __future__ import annotations

from inductor_codegen.ir.gpu.strips import strip_loop
from inductor_codegen.ir.gpu.tiles import tile_of
from inductor_codegen.ir.index import LoopVar
from inductor_codegen.ir.kernel import Accumulate, Kernel, Vector, extent_product
from inductor_codegen.ir.scalar import Load
from inductor_codegen.ir.traverse import postorder, roots_of, statements_of

LONGEST = 8192
"""Points of a row that a program holds at once."""
LONGEST_ALONG_ROWS = 64
"""The same where neighbouring rows lie next to each other in memory."""
ROWS_SIDE_BY_SIDE = 64
"""How many of such rows a program takes."""
SPLIT_FROM = 1 << 20
"""Points of a reduction, of all rows together, from which its few rows are split among more programs."""
LONG_FOR_A_PROGRAM = 1 << 16
"""Points of one program from which the same is done of fewer in all. A program reads some 16 GB/s on an H200, so that
it takes 8 us for them, as long as the launches that a split adds."""
PROGRAMS = 512
"""Programs that keep a GPU busy: about four for each of its multiprocessors."""
LEAST_PARTS = 4
"""Fewer parts are not worth a second launch."""
CHANNELS_OF_TAPS = 32
"""Channels of a program that sums the taps of a window."""
THREADS_OF_TAPS = 128
"""Its threads: few, so that a multiprocessor has several such programs, which wait for memory in turns."""


def row_loops(kernel: Kernel) -> tuple[LoopVar, ...]:
    """The loops whose points are rows: all that do not stand inside of a program, across a tile or along a strip."""
    if reduces(kernel):
        return kernel.outer
    if kernel.windows:
        return _loops_of_points(kernel)[:-1]
    loops = (*kernel.outer, *kernel.inner)
    tile = tile_of(kernel)
    if tile is not None:
        return (*(loop for loop in loops if loop not in tile), tile[0])
    return loops if strip_loop(kernel) is None else loops[:-1]


def point_loops(kernel: Kernel) -> tuple[LoopVar, ...]:
    """The loops whose points a row has; none where every point is a row."""
    if reduces(kernel):
        return kernel.inner
    if kernel.windows:
        return _loops_of_points(kernel)[-1:]
    tile = tile_of(kernel)
    if tile is not None:
        return (tile[1],)
    along = strip_loop(kernel)
    return () if along is None else (along,)


def _loops_of_points(kernel: Kernel) -> tuple[LoopVar, ...]:
    """The loops of a kernel that sums over windows, without the one that it sums over."""
    return kernel.outer if kernel.passes[0].row else (*kernel.outer, *kernel.inner)


def takes_strips(kernel: Kernel) -> bool:
    """Whether programs take points of one row each, and the rows' numbers once."""
    return (
        not (reduces(kernel) or kernel.windows) and tile_of(kernel) is None and strip_loop(kernel) is not None
    )


def reduces(kernel: Kernel) -> bool:
    """Whether the kernel has a loop inside its programs, whose points they share."""
    if kernel.windows:
        return False
    return any(isinstance(node, Accumulate) for step in kernel.passes for node in step.points) or any(
        step.row for step in kernel.passes
    )


def loads_apart(kernel: Kernel) -> bool:
    """Whether neighbouring points of a pointwise kernel load what does not lie side by side: every second element, or
    from the end. A thread cannot load several of these at once."""
    loops = (*kernel.outer, *kernel.inner)
    if not loops or reduces(kernel) or kernel.windows or point_loops(kernel):
        return False
    nodes = postorder(root for statement in statements_of(kernel.passes) for root in roots_of(statement))
    return any(
        atom == loops[-1] and isinstance(coefficient, int) and coefficient not in (0, 1)
        for node in nodes
        if isinstance(node, Load)
        for atom, coefficient in node.index.terms
    )


def count_totals(kernel: Kernel) -> int:
    """How many reductions a kernel has."""
    return sum(isinstance(node, Accumulate) for step in kernel.passes for node in step.points)


def window_points(kernel: Kernel) -> int:
    """How many points a row of a kernel that sums over windows has, taken for a whole tile of them where that varies;
    0 for other kernels."""
    points = extent_product(point_loops(kernel)) if kernel.windows else 0
    return points if isinstance(points, int) else LONGEST_ALONG_ROWS


def longest_of_taps(totals: int) -> int:
    """Points that a program which has ``totals`` sums of taps for each channel holds at once: each thread has four of
    each, or two of many."""
    return THREADS_OF_TAPS * (4 if totals <= 12 else 2) // CHANNELS_OF_TAPS


def holds_rows(kernel: Kernel) -> bool:
    """Whether a program has all points of its rows at once, so that nothing is loaded or computed twice."""
    points = extent_product(kernel.inner)
    limit = LONGEST_ALONG_ROWS if kernel.vector is Vector.OUTER else LONGEST
    if kernel.taps:
        limit = longest_of_taps(count_totals(kernel))
    return isinstance(points, int) and points <= limit


def computes_again(kernel: Kernel) -> bool:
    """Whether a value may be loaded after a result was stored, so that no result may share memory with an operand."""
    return reduces(kernel) and len(kernel.passes) > 1 and not holds_rows(kernel)


def has_few_rows(rows: int, points: int, *, along_rows: bool) -> bool:
    """Whether a reduction of ``points`` points into each of ``rows`` rows has too few rows for a GPU, so that programs
    share the points of each. ``along_rows``: neighbouring rows lie next to each other in memory."""
    blocks = -(-rows // ROWS_SIDE_BY_SIDE) if along_rows else rows
    longest = LONGEST_ALONG_ROWS if along_rows else LONGEST
    many = has_many_points(rows * points, blocks)
    return many and points > longest and blocks * LEAST_PARTS <= PROGRAMS


def has_many_points(points: int, programs: int) -> bool:
    """Whether a reduction of so many points in all is worth a split, done by so many programs without one."""
    return points >= SPLIT_FROM or points >= programs * LONG_FOR_A_PROGRAM
