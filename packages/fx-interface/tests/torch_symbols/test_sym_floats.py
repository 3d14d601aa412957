"""Numbers that torch computes from symbolic sizes stay formulas until somebody needs the number."""

from __future__ import annotations

import math
import random

import pytest
import torch

from fx_interface.symbols import ShapeEnv, evaluate
from fx_interface.torch_symbols.sym_floats import FloatExpr, fixed, float_from_torch, floor_of_product
from fx_interface.torch_symbols.sym_nodes import SizeTable, from_torch


def test_arithmetic_of_sizes_and_floats_is_a_formula() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    number = 2.0 / (torch.sym_float(SizeTable(env).to_torch(size)) - 1.0)
    found = float_from_torch(number)
    assert found == FloatExpr("/", (2.0, FloatExpr("-", (size, 1.0))))
    assert not env.guards
    assert fixed(found, env.hint) == 0.5
    assert not env.replacements


def test_a_quotient_of_sizes_is_a_float() -> None:
    env = ShapeEnv()
    table = SizeTable(env)
    number = table.to_torch(env.create_symbol(5)) / table.to_torch(env.create_symbol(2))
    assert isinstance(number, torch.SymFloat)
    assert fixed(float_from_torch(number), env.hint) == 2.5


def test_who_needs_the_number_fixes_the_sizes() -> None:
    env = ShapeEnv()
    size = env.create_symbol(9)
    assert float(torch.sym_sqrt(SizeTable(env).to_torch(size))) == 3.0
    assert env.simplify(size) == 9


@pytest.mark.parametrize("other", [2.0, 20.0])
def test_a_question_fixes_the_sizes(other: float) -> None:
    env = ShapeEnv()
    size = env.create_symbol(9)
    assert bool(torch.sym_sqrt(SizeTable(env).to_torch(size)) > other) is (other == 2.0)
    assert env.simplify(size) == 9


def test_floors_of_products_are_rounded_as_floats_are() -> None:
    draw = random.Random(0)
    formulas = 0
    for hundredths in range(1, 400):
        factor = hundredths / 100
        size = ShapeEnv().create_symbol(5)
        assert not isinstance(size, int)
        (atom,) = size.symbols
        formula = floor_of_product(size, factor)
        formulas += formula is not None
        for n in (*range(200), *(draw.randrange(1 << 31) // 100 * 100 for _ in range(50))):
            assert formula is None or evaluate(formula, {atom: n}) == math.floor(float(n) * factor), (
                n,
                factor,
            )
    assert formulas > 250


def test_a_product_that_integers_do_not_give_has_no_formula() -> None:
    assert math.floor(90 * 0.7) == 62
    assert floor_of_product(ShapeEnv().create_symbol(5), 0.7) is None
    assert floor_of_product(ShapeEnv().create_symbol(5), math.pi) is None


def test_the_integer_part_of_a_scaled_size_is_a_formula() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    scaled = SizeTable(env).to_torch(size) * 1.5
    assert from_torch(torch.sym_int(scaled)) == from_torch(math.floor(scaled)) == 3 * size // 2
    assert not env.guards
    assert math.ceil(SizeTable(env).to_torch(size) * 0.7) == 4
    assert env.simplify(size) == 5


def test_a_comparison_of_whole_floats_is_one_of_sizes() -> None:
    env = ShapeEnv()
    size = env.create_symbol(5)
    freedom = torch.sym_float(SizeTable(env).to_torch(4 * size)) - 1.0
    assert not (freedom <= 0.0)
    assert freedom > 0
    assert not env.guards
    assert freedom < 100.0
    assert [(str(guard.relation), guard.fixes) for guard in env.guards] == [("4*s0 - 1 < 100", False)]
    assert freedom * 0.3 < 100.0
    assert [guard.fixes for guard in env.guards] == [False, True]
