from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from benchmarks.compare import relative_error, results_error, training_error
from benchmarks.models import Workload
from fxstack_dashboard.measuring.steps import tensors_in


def test_relative_error_is_measured_against_the_expected_norm() -> None:
    expected = torch.tensor([3.0, 4.0])
    assert relative_error(expected, expected) == 0.0
    assert math.isclose(relative_error(expected + torch.tensor([0.5, 0.0]), expected), 0.1, rel_tol=1e-6)


def test_what_differs_in_kind_is_infinitely_far() -> None:
    x = torch.ones(2)
    assert relative_error(x, torch.ones(1)) == math.inf
    assert relative_error(x, x.double()) == math.inf
    assert relative_error(torch.tensor([float("nan"), 1.0]), x) == math.inf
    assert relative_error(torch.tensor([float("nan"), 1.0]), torch.tensor([float("nan"), 1.0])) == 0.0


def test_nested_results_are_compared_by_path() -> None:
    x, y = torch.ones(2), torch.zeros(1)
    assert [path for path, _ in tensors_in({"a": (x, [y]), "b": 3})] == [
        "result['a'][0]",
        "result['a'][1][0]",
    ]
    assert results_error({"a": (x, [y])}, {"a": (x, [y])}) == 0.0
    assert results_error({"a": x}, {"b": x}) == math.inf
    assert results_error((x, y), (x, y + 1.0)) == 1.0
    assert results_error(3, 3) == math.inf


class _Kink(nn.Module):
    """A ReLU of a sum that is 0 or a rounding above it, as its terms are added in one order or in another."""

    def __init__(self, reordered: bool = False, factor: float = 1.0) -> None:
        super().__init__()
        self.terms = nn.Parameter(torch.tensor([1.0, 2.0**-25, -1.0]))
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))
        self.reordered, self.factor = reordered, factor

    def forward(self, x: Tensor) -> Tensor:
        one, two, three = self.terms
        kink = torch.relu((one + three) + two if self.reordered else (one + two) + three)
        scaled = self.weight + (self.factor - 1) * (
            self.weight - self.weight.detach()
        )  # of another gradient only
        return x * scaled + kink


def _error(compiler: Callable[[nn.Module], Any], kink: bool = True) -> float:
    def make() -> nn.Module:
        return _Kink() if kink else nn.Linear(2, 2)

    return training_error(Workload("kink", make, lambda length: {_INPUT[kink]: torch.ones(2)}), compiler)


_INPUT = {True: "x", False: "input"}


def _variant(**changes: Any) -> Callable[[nn.Module], Any]:
    def compiler(model: nn.Module) -> Any:
        for name, value in changes.items():
            setattr(model, name, value)
        return model

    return compiler


def test_a_unit_that_rounding_switches_is_no_error_where_eager_switches_it_too() -> None:
    assert _error(_variant(reordered=True)) == 0.0


def test_a_wrong_gradient_is_one_beside_such_a_unit_too() -> None:
    assert _error(_variant(factor=1.001)) > 5e-4
    assert _error(_variant(factor=1.001, reordered=True)) > 5e-4


def test_an_error_that_eager_does_not_have_between_its_starting_points_counts() -> None:
    def sometimes(model: nn.Module) -> Any:
        calls = iter([1.01, *[1.0] * 20])

        def called(input: Tensor) -> Tensor:
            factor, result = next(calls), model(input)
            changed: Tensor = result + (factor - 1) * (result - result.detach())
            return changed

        return called

    assert _error(sometimes, kink=False) > 5e-3
