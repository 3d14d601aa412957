"""How many rows and points one program of a Triton kernel takes, from the sizes of a call.

Sizes are powers of two, and depend on those of rows and points alone, so that a dynamic size compiles a kernel a few
times only. Where rows lie along memory
(``Vector.OUTER``) a program takes many of them; else it takes few rows and as long a run of points as fits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fx_interface.python_runtime.quick_dataclasses import dataclass
from inductor_codegen.ir.gpu.blocks import (
    CHANNELS_OF_TAPS,
    LEAST_PARTS,
    LONGEST,
    LONGEST_ALONG_ROWS,
    PROGRAMS,
    ROWS_SIDE_BY_SIDE,
    THREADS_OF_TAPS,
    has_many_points,
    longest_of_taps,
)
from inductor_codegen.ir.gpu.strips import STRIP

POINTS = 1024
"""Elements of a pointwise program: eight a thread at four warps."""
POINTS_APART, WARPS_APART = 512, 8
"""The same, with its warps, where neighbours load what does not lie side by side: two a thread, so that all threads
load what is near. On an H200 pooling by maximum of bfloat16 moves 2.6 TB/s so, and 1.1 with eight a thread."""
OPTIONS = {"enable_fp_fusion": True, "enable_reflect_ftz": False, "debug": True, "sanitize_overflow": False}
"""How every kernel is compiled, as torch's own kernels are: multiply-add is fused, and the functions of ``libdevice``
keep numbers below the smallest normal one (without them ``1e-40 % 1e-40`` is NaN). Assertions are kept."""


TILE = 64
"""Rows, and points, of a tile."""
LARGE = 1 << 26
"""Points of all rows together from which programs of a split reduction take more rows side by side."""
OF_WINDOWS = 512
"""Channels of points that a program which sums over windows has at once, of each of which it computes several: four a
thread, so that all their totals are in registers."""
SPLIT_POINTS = 2048
"""Points that a program of a split reduction holds at once, of one row."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The constants of one launch. ``programs`` counts blocks of rows; each row's points are split in ``parts``;
    ``stages`` of a loop overlap, 0 where Triton chooses."""

    programs: int
    rows: int
    points: int
    warps: int
    parts: int = 1
    stages: int = 0

    def to_data(self) -> list[int]:
        """JSON data."""
        return [self.programs, self.rows, self.points, self.warps, self.parts, self.stages]

    @staticmethod
    def from_data(data: Iterable[Any]) -> Launch:
        """What ``to_data`` wrote; ValueError or TypeError for anything else."""
        programs, rows, points, warps, parts, stages = map(int, data)
        return Launch(programs, rows, points, warps, parts, stages)


def power_of_two(value: int) -> int:
    """The least power of two that is not below ``value``."""
    return 1 << max(value - 1, 0).bit_length()


def choose(
    rows: int,
    points: int | None,
    *,
    along_rows: bool,
    splits: bool = False,
    totals: int = 0,
    apart: bool = False,
) -> Launch:
    """The launch for ``rows`` rows of ``points`` points; None where nothing is reduced.

    ``splits`` says that the kernel can be split; ``totals`` counts the sums of each row where they are taps; ``apart``:
    neighbouring rows load what does not lie side by side.
    """
    if points is None:
        block = min(POINTS_APART if apart else POINTS, power_of_two(rows))
        return Launch(-(-rows // block), block, 1, WARPS_APART if apart else 4)
    longest = LONGEST_ALONG_ROWS if along_rows else LONGEST
    if totals:
        return _of_taps(rows, points, totals)
    launch = _rows_at_once(rows, min(longest, power_of_two(points)), along_rows)
    if not splits or not has_many_points(power_of_two(rows) * power_of_two(points), launch.programs):
        return launch
    if along_rows:
        split, programs = _part_of_columns(rows, points), 2 * PROGRAMS
    else:
        split, programs = _rows_at_once(rows, min(SPLIT_POINTS, launch.points), along_rows), PROGRAMS
    blocks = max(1, power_of_two(rows) // split.rows)
    parts = min(programs // blocks, power_of_two(points) // split.points)
    return replace(split, parts=parts) if parts >= LEAST_PARTS else launch


def _part_of_columns(rows: int, points: int) -> Launch:
    """A launch whose programs hold some of the points of rows that lie side by side, 2048 elements.

    On an H200 the sums of a batch norm's gradient took 8 us so for 1152 rows of 2048 points (64 x 64 elements: 11), 27
    for 672 of 12,544 (39), and 110 with 64 x 32 elements for 64 of 802,816 (132 with 64 x 64, 136 with 32 x 64).
    """
    large = power_of_two(rows) * power_of_two(points) >= LARGE
    block = min(64 if large else 32, power_of_two(rows))
    return Launch(-(-rows // block), block, min(2048 // block, power_of_two(points)), 8 if large else 4)


def _of_taps(rows: int, points: int, totals: int) -> Launch:
    """A launch for the sums of a window's taps, of rows that lie side by side. A thread holds few elements of each."""
    block, held = min(CHANNELS_OF_TAPS, power_of_two(rows)), power_of_two(points)
    longest = longest_of_taps(totals)
    if held > longest:
        held = longest * CHANNELS_OF_TAPS // block
    return Launch(-(-rows // block), block, held, THREADS_OF_TAPS // 32)


def _rows_at_once(rows: int, points: int, along_rows: bool) -> Launch:
    """A launch whose programs hold ``points`` points of their rows at once."""
    block = (
        min(ROWS_SIDE_BY_SIDE, power_of_two(rows))
        if along_rows
        else max(1, min(POINTS // points, power_of_two(rows)))
    )
    held = points * block
    warps = 8 if along_rows else 4 if held <= POINTS else 8 if held <= 4 * POINTS else 16
    return Launch(-(-rows // block), block, points, warps)


def _few_idle(points: int) -> int:
    """Points that a program takes of rows of so many, as many as leave at most a quarter of the lanes idle: 64 of 144,
    32 of 72, 16 of 40. Rows of fewer than 16 would take a line of memory each for half of its elements."""
    taken = {held: -(-points // held) * held for held in (TILE, TILE // 2, TILE // 4)}
    enough = (held for held, lanes in taken.items() if 3 * lanes <= 4 * points)
    return min(next(enough, min(taken, key=taken.__getitem__)), power_of_two(points))


def choose_tile(rows: int, points: int, *, strips: bool = False, windows: int = 0) -> Launch:
    """The launch for tiles over ``rows`` and ``points``, or for ``strips`` of rows: ``parts`` of them lie across.
    ``windows``: the exact number of points of a kernel that sums over windows, 0 for others."""
    if windows:
        held = _few_idle(windows)
        block = min(max(1, OF_WINDOWS // held), power_of_two(rows))
        return Launch(-(-rows // block), block, held, 4, -(-points // held))
    if strips:
        held = min(STRIP, power_of_two(points))
        block = min(max(1, STRIP // held), power_of_two(rows))
    else:
        block, held = min(TILE, power_of_two(rows)), min(TILE, power_of_two(points))
    return Launch(-(-rows // block), block, held, 8 if block * held > POINTS else 4, -(-points // held))


def joining(rows: int, parts: int) -> Launch:
    """The launch that joins ``parts`` totals of each row."""
    block = min(max(1, POINTS // parts), power_of_two(rows))
    return Launch(-(-rows // block), block, parts, 4)


def part_length(points: int, launch: Launch) -> int:
    """The points of one part: whole blocks."""
    blocks = -(-points // launch.points)
    return -(-blocks // launch.parts) * launch.points
