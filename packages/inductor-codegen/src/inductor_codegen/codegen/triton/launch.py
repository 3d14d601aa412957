"""How many rows and points one program of a Triton kernel takes, from the sizes of a call.

Sizes are powers of two, and depend on those of rows and points alone, so that a dynamic size compiles a kernel a few
times only. Where rows lie along memory
(``Vector.OUTER``) a program takes many of them; else it takes few rows and as long a run of points as fits.
"""

from __future__ import annotations

from dataclasses import dataclass

from inductor_codegen.ir.blocks import LONGEST, LONGEST_ALONG_ROWS

POINTS = 1024
"""Elements of a pointwise program: eight a thread at four warps."""
OPTIONS = {"enable_fp_fusion": True, "debug": True, "sanitize_overflow": False}
"""How every kernel is compiled: multiply-add is fused, as in torch's own kernels; assertions are kept."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The constants of one launch. ``programs`` is the size of the grid."""

    programs: int
    rows: int
    points: int
    warps: int


def power_of_two(value: int) -> int:
    """The least power of two that is not below ``value``."""
    return 1 << max(value - 1, 0).bit_length()


def choose(rows: int, points: int | None, *, along_rows: bool) -> Launch:
    """The launch for ``rows`` rows of ``points`` points; None where nothing is reduced."""
    if points is None:
        block = min(POINTS, power_of_two(rows))
        return Launch(-(-rows // block), block, 1, 4)
    if along_rows:
        block = min(64, power_of_two(rows))
        return Launch(-(-rows // block), block, min(LONGEST_ALONG_ROWS, power_of_two(points)), 8)
    held = min(LONGEST, power_of_two(points))
    block = max(1, min(POINTS // held, power_of_two(rows)))
    return Launch(-(-rows // block), block, held, 8 if held * block > POINTS else 4)
