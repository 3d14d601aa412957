"""Domains are cut as finely as members need, and refuse sizes that do not divide."""

from __future__ import annotations

from fx_interface.symbols import ShapeEnv
from inductor_codegen.schedule.fusion.domain import Domain


def test_coarser_member_takes_runs() -> None:
    domain = Domain((2, 3, 4))
    assert domain.align((6, 4)) == ((0, 1), (2,))
    assert domain.dims == [2, 3, 4]


def test_finer_member_cuts() -> None:
    domain = Domain((6, 4))
    assert domain.align((2, 3, 4)) == ((0,), (1,), (2,))
    assert domain.dims == [2, 3, 4]


def test_sizes_of_one_take_nothing() -> None:
    assert Domain((1, 6, 1)).align((6, 1, 1)) == ((0,), (), ())


def test_sizes_that_do_not_divide_are_refused() -> None:
    assert Domain((6, 4)).align((4, 6)) is None
    assert Domain((6, 4)).align((6,)) is None
    assert Domain((6,)).align((6, 4)) is None


def test_refused_sizes_cut_nothing() -> None:
    domain = Domain((6, 8), (True, False))
    assert domain.align((6, 4)) is None
    assert domain.align_row((3,)) is None
    assert (domain.dims, domain.outer) == ([6, 8], [True, False])
    assert domain.align((2, 3, 3)) is None
    assert (domain.dims, domain.outer) == ([6, 8], [True, False])


def test_cutting_keeps_the_split() -> None:
    domain = Domain((6, 4), (True, False))
    domain.align((2, 3, 2, 2))
    assert domain.outer == [True, True, False, False]
    assert domain.align_row((6,)) == ((0, 1),)
    assert domain.align_row((3, 2)) is None


def test_rows_need_not_come_first() -> None:
    domain = Domain((2, 8, 5), (False, True, False))
    assert domain.align_row((1, 8, 1)) == ((), (1,), ())
    assert domain.outer_axes == (1,)


def test_symbolic_sizes() -> None:
    env = ShapeEnv()
    s, t = env.create_symbol(5, low=2), env.create_symbol(7, low=2)
    domain = Domain((s * t, 12))
    assert domain.align((s, t, 3, 4)) == ((0,), (1,), (2,), (3,))
    assert domain.dims == [s, t, 3, 4]
    assert domain.align((t, s, 12)) is None


def test_a_member_still_fits_after_a_cut_by_a_sum() -> None:
    env = ShapeEnv()
    n = env.create_symbol(8) // 2
    domain = Domain((5 * n - 15,))
    assert domain.align((n - 3, 5)) == ((0,), (1,))
    assert domain.align((5 * n - 15,)) == ((0, 1),)


def test_an_even_size_is_made_up_of_its_half_and_two() -> None:
    """That half of ``s + 3*s % 4`` divides it is not known; that two does is."""
    symbol = ShapeEnv().create_symbol(5)
    size = symbol + (3 * symbol) % 4
    domain = Domain((8, size, 32), (False, True, True))
    domain.cut(1, 2)
    assert domain.dims == [8, size // 2, 2, 32]
    assert domain.align((1, 8, size, 32)) == ((), (0,), (1, 2), (3,))
    assert domain.align_row((size, 16, 2)) == ((1, 2), (3,), (4,))
    assert domain.align((8, size, 31)) is None
