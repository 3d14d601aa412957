"""The margin: what counts as as good as eager's."""

from __future__ import annotations

import torch

from fxstack.verification.compare import difference

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
