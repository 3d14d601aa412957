"""Shape arithmetic, plain and symbolic."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fx_interface.errors import UnbackedSymbolError
from fx_interface.symbols import ShapeEnv, evaluate
from primtorch_decomps.errors import RuleMismatchError
from primtorch_decomps.shapes import (
    at_most,
    below,
    broadcast,
    canonical_dim,
    canonical_dims,
    expand_sizes,
    has_empty_rows,
    infer_size,
    reduced_sizes,
    same,
    slice_bounds,
)

SIZES = st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4)


@settings(deadline=None)
@given(st.lists(SIZES, min_size=1, max_size=3))
def test_broadcast_agrees_with_torch(shapes: list[list[int]]) -> None:
    try:
        expected = tuple(torch.broadcast_shapes(*shapes))
    except RuntimeError:
        with pytest.raises(RuleMismatchError):
            broadcast([tuple(s) for s in shapes], ShapeEnv())
    else:
        assert broadcast([tuple(s) for s in shapes], ShapeEnv()) == expected


@given(
    st.integers(0, 6),
    st.none() | st.integers(-8, 8),
    st.none() | st.integers(-8, 8),
    st.integers(1, 3),
)
def test_slice_bounds_agree_with_python(size: int, start: int | None, end: int | None, step: int) -> None:
    low, high, length = slice_bounds(size, start, end, step, ShapeEnv())
    assert list(range(size))[low:high:step] == list(range(size))[start:end:step]
    assert length == len(range(size)[start:end:step])


def test_symbolic_broadcast_asks_nothing_about_size_one() -> None:
    env = ShapeEnv()
    n, m = env.create_symbol(5), env.create_symbol(7)
    assert broadcast([(n, 1), (m,)], env) == (n, m)
    assert broadcast([(n, 3), (1, 1)], env) == (n, 3)
    assert env.guards == []
    with pytest.raises(RuleMismatchError):
        broadcast([(n,), (m,)], env)


def test_a_size_from_data_that_cannot_stretch_is_left_to_the_operator() -> None:
    env = ShapeEnv()
    count = env.create_symbol(None, low=3)
    assert broadcast([(4, 2), (count, 1)], env) == (4, 2)
    assert [str(relation) for relation in env.expected] == ["4 == u0"]
    assert expand_sizes((env.create_symbol(None, low=2),), (5,), env) == (5,)
    with pytest.raises(UnbackedSymbolError):
        broadcast([(4,), (env.create_symbol(None, low=0),)], env)


def test_a_slice_by_a_symbolic_step() -> None:
    env = ShapeEnv()
    size, step = env.create_symbol(24), env.create_symbol(5)
    low, high, length = slice_bounds(size, 1, None, step, env)
    assert (low, high) == (1, size)
    for rows, each in ((24, 5), (25, 4), (9, 9), (7, 20)):
        values = {size.as_symbol: rows, step.as_symbol: each}
        assert evaluate(length, values) == len(range(1, rows, each))


def test_a_slice_without_an_end_asks_nothing_of_a_size_from_data() -> None:
    env = ShapeEnv()
    count = env.create_symbol(None, low=0)
    assert slice_bounds(count, 0, 2**63 - 1, 1, env) == (0, count, count)
    assert slice_bounds(count + 1, None, count, 1, env) == (0, count, count)


def test_equal_hints_are_recorded() -> None:
    env = ShapeEnv()
    n, m = env.create_symbol(5), env.create_symbol(5)
    broadcast([(n,), (m,)], env)
    assert [str(guard.relation) for guard in env.guards] == ["s0 == s1"]


def test_multiples_compare_without_guards() -> None:
    env = ShapeEnv()
    n, m = env.create_symbol(5), env.create_symbol(7)
    assert below(n, n * m, env)
    assert not below(n * m, n, env)
    assert at_most(4, 4 * n, env)
    assert same(n + n, 2 * n, env)
    assert env.guards == []


def test_infer_size() -> None:
    env = ShapeEnv()
    n = env.create_symbol(5)
    assert infer_size([-1, 4], 8 * n, env) == (2 * n, 4)
    assert infer_size([n, -1], 8 * n, env) == (n, 8)
    for sizes in ([-1, -1], [3, 3], [-1, 0], [-1, 3]):
        with pytest.raises(RuleMismatchError):
            infer_size(sizes, 8, env)


def test_infer_size_of_rows_from_data() -> None:
    env = ShapeEnv()
    rows = env.create_symbol(None, low=0)
    assert infer_size([-1, 6], 3 * rows, env) == ((3 * rows) // 6, 6)
    (checked,) = env.expected
    assert checked.holds(dict.fromkeys(rows.symbols, 4))
    assert not checked.holds(dict.fromkeys(rows.symbols, 5))


def test_dimensions() -> None:
    assert canonical_dim(-1, 3) == 2
    assert canonical_dim(-1, 0) == 0
    assert canonical_dims(None, 2) == (0, 1)
    assert canonical_dims([], 2) == (0, 1)
    assert canonical_dims([], 2, empty_is_all=False) == ()
    assert canonical_dims([-1, 0], 3) == (0, 2)
    assert reduced_sizes((2, 3, 4), (1,), True) == (2, 1, 4)
    assert reduced_sizes((2, 3, 4), (1,), False) == (2, 4)
    with pytest.raises(RuleMismatchError):
        canonical_dim(3, 3)
    with pytest.raises(RuleMismatchError):
        canonical_dims([0, 0], 2)


def test_rows_without_elements() -> None:
    assert has_empty_rows((2, 0), 0)
    assert has_empty_rows((2, 3, 0), 1)
    assert not has_empty_rows((0, 2), 0)
    assert not has_empty_rows((2, 3), 0)
