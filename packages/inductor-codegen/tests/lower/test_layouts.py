"""What strides say of a tensor's elements."""

from __future__ import annotations

import pytest

from fx_interface.symbols import ShapeEnv
from inductor_codegen.lower.layouts import (
    is_dense,
    is_disjoint,
    is_disjoint_at_hand,
    same_strides,
    seen_through,
)
from inductor_codegen.lower.views import Layout, Permute, reshape


@pytest.mark.parametrize(
    ("sizes", "strides", "dense"),
    [
        ((2, 3), (3, 1), True),
        ((2, 3), (1, 2), True),
        ((2, 3), (4, 1), False),
        ((2, 3), (0, 1), False),
        ((2, 1, 3), (3, 99, 1), True),
        ((0, 3), (7, 7), True),
        ((), (), True),
    ],
)
def test_is_dense(sizes: tuple[int, ...], strides: tuple[int, ...], dense: bool) -> None:
    assert is_dense(sizes, strides) is dense


def test_symbolic_sizes() -> None:
    env = ShapeEnv()
    rows, columns = env.create_symbol(5), env.create_symbol(7)
    assert is_dense((rows, columns), (columns, 1))
    assert is_dense((rows, columns), (1, rows))
    assert not is_dense((rows, columns), (columns + 1, 1))
    assert is_disjoint((rows, columns), (columns + 1, 1), env)
    assert not is_disjoint((rows, columns), (columns - 1, 1), env)
    assert not is_disjoint((rows, columns), (0, 1), env)


def test_the_sizes_at_hand_tell_of_diagonals_and_windows() -> None:
    env = ShapeEnv()
    rows, columns = env.create_symbol(5), env.create_symbol(7)
    diagonals = (3, rows), (rows * columns, columns + 1)
    windows = (3, rows // 2, 2), (rows * 2, 4, 2)
    for sizes, strides in (diagonals, windows):
        assert is_disjoint_at_hand(sizes, strides, env)
    assert is_disjoint_at_hand((2, 4), (20, 6), env)
    assert not is_disjoint_at_hand((2, 4), (18, 6), env)
    assert not is_disjoint_at_hand((rows, columns), (columns - 1, 1), env)
    assert not is_disjoint_at_hand((rows, 2), (0, 1), env)


def test_strides_of_one_element_do_not_matter() -> None:
    layout = Layout((1, 3), (9, 1), 0)
    assert same_strides(layout, (3, 1))
    assert not same_strides(layout, (3, 2))
    assert same_strides(Layout((0, 3), (9, 1), 0), (3, 2))


def test_seen_through_views() -> None:
    layout = Layout((2, 3, 4), (12, 4, 1), 5)
    turned = Permute((2, 0, 1), (4, 2, 3))
    assert seen_through(layout, []) == layout
    assert seen_through(layout, [turned]) == Layout((4, 2, 3), (1, 12, 4), 5)
    assert seen_through(layout, [turned, reshape((4, 2, 3), (4, 6))]) == Layout((4, 6), (1, 4), 5)
    assert seen_through(layout, [turned, reshape((4, 2, 3), (8, 3))]) is None
