"""Launch sizes: powers of two that cover all rows and points, within what a program can hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inductor_codegen.codegen.triton.launch.sizes import (
    LEAST_PARTS,
    POINTS,
    PROGRAMS,
    choose,
    choose_tile,
    joining,
    part_length,
    power_of_two,
)
from inductor_codegen.ir.gpu.blocks import LONGEST, LONGEST_ALONG_ROWS, longest_of_taps


@given(st.integers(0, 10**7), st.none() | st.integers(1, 10**6), st.booleans())
def test_covers_everything(rows: int, points: int | None, along_rows: bool) -> None:
    launch = choose(rows, points, along_rows=along_rows)
    assert launch.programs * launch.rows >= rows
    assert (launch.programs - 1) * launch.rows < max(rows, 1)
    assert launch.rows == power_of_two(launch.rows)
    assert launch.points == power_of_two(launch.points)
    assert launch.rows * launch.points <= max(LONGEST, POINTS)
    if points is not None and points <= (LONGEST_ALONG_ROWS if along_rows else LONGEST):
        assert launch.points >= points


@given(st.integers(1, 10**7), st.none() | st.integers(1, 10**6), st.booleans())
def test_depends_on_the_classes_of_sizes_alone(rows: int, points: int | None, along_rows: bool) -> None:
    launch = choose(rows, points, along_rows=along_rows, splits=True)
    rounded = None if points is None else power_of_two(points)
    largest = choose(power_of_two(rows), rounded, along_rows=along_rows, splits=True)
    assert replace(launch, programs=largest.programs) == largest


@given(st.integers(1, 10**4), st.integers(1, 10**8), st.booleans())
def test_parts_cover_all_points(rows: int, points: int, along_rows: bool) -> None:
    launch = choose(rows, points, along_rows=along_rows, splits=True)
    if launch.parts == 1:
        return
    length = part_length(points, launch)
    assert length % launch.points == 0
    assert launch.parts * length >= points
    assert launch.parts >= LEAST_PARTS
    assert launch.programs * launch.parts <= (2 if along_rows else 1) * PROGRAMS
    joined = joining(rows, launch.parts)
    assert joined.points == launch.parts
    assert joined.programs * joined.rows >= rows


@given(st.integers(1, 10**6), st.integers(16, 1 << 21))
def test_tiles_cover_everything(rows: int, points: int) -> None:
    launch = choose_tile(rows, points)
    assert launch.programs * launch.rows >= rows
    assert launch.parts * launch.points >= points
    assert launch.parts < 1 << 16
    largest = choose_tile(power_of_two(rows), power_of_two(points))
    assert (launch.rows, launch.points, launch.warps) == (largest.rows, largest.points, largest.warps)


@pytest.mark.parametrize(
    ("channels", "points"), [(8, 8), (16, 16), (24, 32), (40, 16), (64, 64), (72, 32), (144, 64), (184, 64)]
)
def test_windows_leave_few_lanes_idle(channels: int, points: int) -> None:
    assert choose_tile(1 << 14, channels, windows=channels).points == points
    assert choose_tile(1 << 14, power_of_two(channels), windows=channels).points == points


@given(st.integers(1, 10**6), st.integers(1, 4096))
def test_tiles_of_windows_cover_everything(rows: int, points: int) -> None:
    launch = choose_tile(rows, points, windows=points)
    assert launch.programs * launch.rows >= rows
    assert launch.parts * launch.points >= points
    assert points < 16 or 3 * launch.parts * launch.points < 6 * points


@given(st.integers(1, 10**6), st.integers(1, 10**4), st.integers(1, 81))
def test_sums_of_taps_are_in_registers(rows: int, points: int, totals: int) -> None:
    launch = choose(rows, points, along_rows=True, totals=totals)
    longest = longest_of_taps(totals)
    assert launch.programs * launch.rows >= rows
    assert launch.points >= min(points, longest)
    assert launch.rows * launch.points <= 32 * longest == launch.warps * 32 * (4 if totals <= 12 else 2)


def test_few_points_are_not_split() -> None:
    assert choose(1, 1 << 15, along_rows=False, splits=True).parts == 1
    assert choose(1, 1 << 16, along_rows=False, splits=True).parts == 32
    assert choose(1, 1 << 20, along_rows=False, splits=True).parts == 512
    assert choose(1, 1 << 20, along_rows=False).parts == 1
    assert choose(1 << 10, 1 << 16, along_rows=True, splits=True).parts == 64


def test_rows_that_few_programs_read_are_split() -> None:
    """A batch norm of 80 channels over 64 images of 14 x 14: two programs alone."""
    assert choose(80, 64 * 14 * 14, along_rows=True, splits=True).parts >= 64
    assert choose(80, 512, along_rows=True, splits=True).parts == 1


def test_power_of_two() -> None:
    assert [power_of_two(n) for n in (0, 1, 2, 3, 1024, 1025)] == [1, 1, 2, 4, 1024, 2048]
