from __future__ import annotations

import math

import torch

from fxstack.bench.compare import relative_error, results_error, tensors_in


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
