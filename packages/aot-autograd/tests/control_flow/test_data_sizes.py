"""Sizes from data between the parts of a program."""

from __future__ import annotations

import torch
from torch.fx import Graph

from aot_autograd.control_flow.data_sizes import example_number, symbols_in, told_by
from fx_interface.symbols import ShapeEnv
from fx_interface.tensor_spec import SPEC_KEY, SymSpec, TensorSpec


def test_what_values_tell() -> None:
    env, graph = ShapeEnv(), Graph()
    one, other = env.create_symbol(None), env.create_symbol(None)
    tensor, number, product = (graph.placeholder(name) for name in "tnp")
    cpu = torch.device("cpu")
    tensor.meta[SPEC_KEY] = TensorSpec(
        (3, one, one * other), (one * one * other, one * other, 1), torch.bool, cpu
    )
    number.meta[SPEC_KEY] = SymSpec(other)
    product.meta[SPEC_KEY] = SymSpec(one * 2)
    assert told_by(tensor) == {1: one.as_symbol}
    assert told_by(number) == {None: other.as_symbol}
    assert told_by(product) == told_by(graph.placeholder("x")) == {}
    assert set(symbols_in(tensor)) == {one.as_symbol, other.as_symbol}
    assert set(symbols_in(product)) == {one.as_symbol}


def test_examples_lie_within_the_range() -> None:
    env = ShapeEnv()
    ranges = ((0, None), (2, 5), (100, None), (None, None))
    atoms = [env.create_symbol(None, low=low, high=high).as_symbol for low, high in ranges]
    assert [example_number(env, atom) for atom in atoms if atom is not None] == [16, 5, 100, 16]
