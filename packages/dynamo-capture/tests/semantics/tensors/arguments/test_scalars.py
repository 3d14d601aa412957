"""Numbers that vary as arguments of tensor operations."""

from __future__ import annotations

import random

import pytest
import torch

from dynamo_capture import optimize


def test_an_exponent_that_a_tensor_holds_has_the_bits_of_a_number():
    def power(x, exponent):
        return x ** (1 - exponent.item())

    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)(power)
    x = torch.linspace(0.5, 3, 7)
    for value in (0.5, 0.3, 0.5, -1.0, 0.4):
        exponent = torch.tensor(value, dtype=torch.float64)
        assert torch.equal(compiled(x, exponent), power(x, exponent))
    assert len(graphs) == 1


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x ** random.uniform(0.5, 2.0),
        lambda x: x.pow_(random.uniform(0.5, 2.0) + 1) * 2,
        lambda x: torch.pow(x, x.sum().item() / 16),
    ],
)
def test_exponents_that_nobody_knows_have_the_bits_of_numbers(program):
    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)(program)
    x = torch.linspace(0.01, 3, 37)
    for seed in range(4):
        random.seed(seed)
        expected = program(x * (1 + seed))
        random.seed(seed)
        assert torch.equal(compiled(x * (1 + seed)), expected)
    assert len(graphs) == 1


VALUES = (0.5, 0.7, -0.3, 1e300, float("inf"), 0.9, float("nan"))
OF_TWO_NUMBERS = [
    lambda x, a: torch.where(x > 0, a, 0.0),
    lambda x, a: torch.where(x > 0, 1, -a),
    lambda x, a: torch.where(x > 0, a, a * 2),
]
BESIDE_NUMBERS = [
    lambda x, a: torch.copysign(x, a),
    lambda x, a: x.clone().copysign_(-a),
    lambda x, a: torch.xlogy(x, a),
    lambda x, a: torch.xlogy(a, x),
]


def _outcomes(function, calls):
    outcomes = []
    for call in calls:
        try:
            outcomes.append(function(*call))
        except RuntimeError as error:
            outcomes.append(str(error))
    return outcomes


def _agree(function, x, values):
    """How many graphs the calls make; each is compared with eager."""
    graphs = []
    compiled = optimize(lambda graph, _: graphs.append(graph) or graph.forward)(function)
    calls = [(x, value) for value in values]
    for mine, eagers in zip(_outcomes(compiled, calls), _outcomes(function, calls), strict=True):
        if isinstance(eagers, str):
            assert mine == eagers
        else:
            torch.testing.assert_close(mine, eagers, rtol=0, atol=0, equal_nan=True)
    return len(graphs)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64])
def test_one_of_two_numbers_is_chosen_by_a_mask(dtype):
    x = torch.arange(-3, 4).to(dtype)
    for function in OF_TWO_NUMBERS:
        assert _agree(function, x, VALUES[:3]) == 2
        _agree(function, x, VALUES)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_numbers_beside_tensors(dtype):
    x = torch.linspace(-3, 4, 37).to(dtype)
    for function in BESIDE_NUMBERS:
        assert _agree(function, x, VALUES[:3]) == 2
        _agree(function, x, VALUES)


def test_a_mask_that_is_chosen_from_beside_a_number_stays_what_it_is():
    mask = torch.tensor([True, False])
    _agree(lambda x, a: (torch.where(x, a, x), x.where(x, a), torch.where(x, x, a)), mask, VALUES[:3])
