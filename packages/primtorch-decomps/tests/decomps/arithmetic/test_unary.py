"""Elementary functions, rounding and tests agree with eager in every dtype, layout and special value."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5, float("inf"), float("-inf"), float("nan")])
NAMES = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sigmoid"),
    *(
        "sin",
        "cos",
        "tan",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
        "tanh",
        "asinh",
        "acosh",
        "atanh",
        "erf",
        "erfc",
    ),
    *("lgamma", "neg", "abs", "sign", "sgn", "frac", "floor", "ceil", "trunc", "round", "square", "positive"),
    *("isnan", "isinf", "isposinf", "isneginf", "logical_not", "deg2rad", "rad2deg", "sinc"),
    *("logit", "nan_to_num"),
)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_on_special_values(name: str, dtype: torch.dtype) -> None:
    check_operator(f"aten.{name}.default", SPECIAL.to(dtype))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "frac"])  # not defined on integers
def test_on_integers(name: str) -> None:
    check_operator(f"aten.{name}.default", torch.tensor([[0, 1, -2], [3, -4, 5]]))


@pytest.mark.parametrize("name", ["exp", "neg", "floor", "isnan"])
@pytest.mark.parametrize(
    "layout",
    [
        lambda x: x,
        lambda x: x.permute(2, 0, 1, 3),
        lambda x: x.contiguous(memory_format=torch.channels_last),
        lambda x: x[:, ::2],
        lambda x: x[:1].expand(5, -1, -1, -1),
        lambda x: x[:0],
        lambda x: x[0, 0, 0, 0],
    ],
    ids=["row_major", "permuted", "channels_last", "strided", "expanded", "empty", "scalar"],
)
def test_layouts(name: str, layout) -> None:
    check_operator(f"aten.{name}.default", layout(torch.randn(2, 3, 4, 5)))


def test_bitwise_not() -> None:
    check_operator("aten.bitwise_not.default", torch.tensor([True, False]))
    check_operator("aten.bitwise_not.default", torch.tensor([1, -7]))


@pytest.mark.parametrize("name", ["sign", "logical_not", "exp"])
def test_booleans(name: str) -> None:
    check_operator(f"aten.{name}.default", torch.tensor([True, False]))


def test_arguments() -> None:
    check_operator("aten.logit.default", torch.tensor([0.0, 0.3, 1.0]), 0.1)
    check_operator("aten.nan_to_num.default", SPECIAL, 1.0, 2.0, -3.0)
