"""Numbers that torch computes from symbolic sizes stay formulas until somebody needs the number."""

from __future__ import annotations

import pytest
import torch

from fx_interface.sym_floats import FloatExpr, fixed, float_from_torch
from fx_interface.sym_nodes import SizeTable
from fx_interface.symbols import ShapeEnv


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
    assert (torch.sym_float(SizeTable(env).to_torch(size)) > other) is (other == 2.0)
    assert env.simplify(size) == 9
