"""Symbolic sizes compute and compare as integers do, and record what was decided."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from fx_interface.symbols import ShapeEnv, evaluate
from fx_interface.torch_symbols.sym_nodes import SizeTable, from_torch


@given(a=st.integers(2, 50), b=st.integers(2, 50), k=st.integers(1, 9))
def test_arithmetic_is_that_of_integers(a: int, b: int, k: int) -> None:
    env = ShapeEnv()
    exprs = [env.create_symbol(10), env.create_symbol(11)]
    x, y = map(SizeTable(env).to_torch, exprs)
    values = {e.as_symbol: v for e, v in zip(exprs, (a, b), strict=True)}
    for made, wanted in [
        (x + y * k - 3, a + b * k - 3),
        ((x * y + k) // k, (a * b + k) // k),
        ((x + y) % (k + 1), (a + b) % (k + 1)),
        (-x + 1, 1 - a),
        (torch.sym_max(x, y), max(a, b)),
        (torch.sym_min(x, k), min(a, k)),
        (torch.sym_sum([x, y, k]), a + b + k),
    ]:
        assert evaluate(from_torch(made), values) == wanted


def test_a_question_is_decided_by_hints_and_recorded() -> None:
    env = ShapeEnv()
    x, y = map(SizeTable(env).to_torch, [env.create_symbol(hint) for hint in (5, 7)])
    assert x < y
    assert not x == y  # noqa: SIM201  the operator under test
    assert [str(g.relation) for g in env.guards] == ["s0 < s1", "s0 != s1"]


def test_what_ranges_settle_is_not_recorded() -> None:
    env = ShapeEnv()
    x = SizeTable(env).to_torch(env.create_symbol(5))
    assert x >= 2
    assert x != 1
    assert not x * 3 == 0  # noqa: SIM201  the operator under test
    assert not env.guards


def test_a_size_that_must_be_an_int_is_fixed() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    assert int(SizeTable(env).to_torch(size)) == 5
    assert env.simplify(size) == 5


def test_plain_integers_stay_plain() -> None:
    assert type(SizeTable(ShapeEnv()).to_torch(3)) is int


def test_the_memory_of_a_tensor_spans_its_first_and_last_element() -> None:
    env = ShapeEnv()
    table, n = SizeTable(env), env.create_symbol(5)
    assert table.memory((n, 3), (3, 1)) == 3 * n
    assert table.memory((3, n), (1, 4)) == 4 * n - 1
    assert table.memory((n, 0), (1, 1)) == 0
    assert table.memory((), ()) == 1


def test_a_size_as_torch_prints_it() -> None:
    size = SizeTable(ShapeEnv()).to_torch(ShapeEnv().create_symbol(6) * 2)
    assert str(size) == size.node.str() == "2*s0"


def test_torch_asks_in_python() -> None:
    symbolic_shapes = pytest.importorskip("torch.fx.experimental.symbolic_shapes")
    env = ShapeEnv()
    table = SizeTable(env)
    known, other = (table.to_torch(env.create_symbol(hint)) for hint in (5, 7))
    from_data = table.to_torch(env.create_symbol(None, low=0))
    assert not symbolic_shapes.guard_or_false(known == other)
    assert [str(g.relation) for g in env.guards] == ["s0 != s1"]
    assert not symbolic_shapes.guard_or_false(from_data == other)
    assert symbolic_shapes.guard_or_true(from_data == other)
    assert symbolic_shapes.statically_known_true(known + 1 > 2)
    assert not symbolic_shapes.statically_known_true(known > 2)
    assert len(env.guards) == 1
