"""The margin: what counts as as good as eager's."""

from __future__ import annotations

import pytest
import torch

from fxstack.verification.compare import Bounds, Difference, difference, distance, not_by_luck, nudge_

EXACT = torch.linspace(1, 2, 50, dtype=torch.float64)
EAGER = EXACT.float()


def test_a_rounding_is_allowed_and_a_wrong_digit_is_not() -> None:
    assert difference("r", EAGER, EXACT, EAGER * (1 + 1e-7)) is None
    found = difference("r", EAGER, EXACT, EAGER * (1 + 1e-4))
    assert found is not None
    assert found.compiled_error > found.allowed


def test_nan_and_infinity_must_be_where_eager_has_them() -> None:
    eager, exact = EAGER.clone(), EXACT.clone()
    eager[3], exact[3] = float("nan"), float("nan")
    assert difference("r", eager, exact, eager.clone()) is None
    assert difference("r", eager, exact, EAGER) is not None
    assert difference("r", EAGER, EXACT, eager) is not None


def test_shape_dtype_and_other_values() -> None:
    assert difference("r", EAGER, EXACT, EAGER.double()) is not None
    assert difference("r", EAGER, EXACT, EAGER[:4]) is not None
    assert difference("r", 3, 3, 3) is None
    assert difference("r", 3, 3, 3.0) is not None
    integers = torch.arange(4)
    assert difference("r", integers, integers, integers.clone()) is None
    assert difference("r", integers, integers, integers + 1) is not None


def test_a_lucky_run_of_eager_is_no_measure() -> None:
    far = Difference("x", "", 1e-9, 1e-6, 3e-9)
    other = Difference("y", "NaN in other places", float("inf"), float("inf"), 0.0)
    bounds = Bounds(margin=3.0)
    assert not_by_luck([far, other], [{"x": 5e-7}, {"x": 1e-9}], bounds) == [other]
    (left,) = not_by_luck([far], [{"x": 1e-7}], bounds)
    assert (left.eager_error, left.allowed) == (1e-7, pytest.approx(3e-7))


def test_infinities_have_the_same_signs() -> None:
    eager = torch.tensor([float("inf"), 1.0])
    assert difference("x", eager, eager.double(), eager) is None
    assert difference("x", eager, eager.double(), -eager) is not None
    assert difference("x", eager, eager.double(), torch.ones(2)) is not None


def test_a_nudge_is_one_rounding() -> None:
    x = torch.ones(100)
    nudge_(x, torch.Generator().manual_seed(0))
    assert 0 < distance(x, torch.ones(100).double()) <= 1.2e-7


def test_truth_values_are_not_apart() -> None:
    assert distance(torch.tensor([True]), torch.tensor([False])) == 0.0
