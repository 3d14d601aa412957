"""By how much kernels over windows are unrolled."""

from __future__ import annotations

import pytest

from inductor_codegen.lower.values import Depthwise, Operand, Window
from inductor_codegen.schedule.kernels.unrolling import _factor, loops_over_rows

IMAGE = Operand(0, (), (), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "step", "most", "factor"),
    [
        (56, 1, 8, 8),
        (14, 1, 8, 7),
        (7, 1, 8, 7),
        (13, 1, 8, 1),
        (56, 2, 4, 4),
        (14, 2, 4, 2),
        (7, 2, 4, 1),
        (9, 3, 2, 3),
    ],
)
def test_factors_divide(size: int, step: int, most: int, factor: int) -> None:
    assert _factor(size, step, most) == factor


@pytest.mark.parametrize(
    ("length", "step", "transposed", "loops"),
    [(3, 1, False, False), (5, 1, False, True), (5, 2, False, True), (5, 2, True, False), (7, 1, True, True)],
)
def test_large_windows_are_loops(length: int, step: int, transposed: bool, loops: bool) -> None:
    window = Window(length, step, 0, 1)
    assert loops_over_rows(Depthwise(IMAGE, IMAGE, None, (window, window), transposed)) is loops
