"""Two-operand arithmetic agrees with eager over dtypes, broadcasting, layouts and Python numbers."""

from __future__ import annotations

from itertools import product

import pytest
import torch

from primtorch_decomps.testing import check_operator

FLOATS = torch.randn(3, 4)
HALVES = torch.randn(3, 4).bfloat16()
INTEGERS = torch.randint(1, 9, (3, 4))
BOOLS = torch.rand(3, 4) > 0.5
SCALAR = torch.tensor(2.5)
OPERANDS = {
    "float": FLOATS,
    "bfloat16": HALVES,
    "int64": INTEGERS,
    "int32": INTEGERS.int(),
    "bool": BOOLS,
    "scalar": SCALAR,
    "double_scalar": torch.tensor(0.1, dtype=torch.float64),
    "row": torch.rand(4) + 0.5,
    "column": torch.rand(3, 1) + 0.5,
    "3": 3,
    "0.1": 0.1,
}
ARITHMETIC = ("add", "mul", "div", "remainder", "fmod")


@pytest.mark.parametrize(
    ("one", "other", "name"),
    [
        case
        for case in product(["float", "bfloat16", "int64", "row", "scalar"], OPERANDS, ARITHMETIC)
        if case not in (("int64", "bool", "remainder"), ("int64", "bool", "fmod"))  # division by False
    ],
)
def test_promotion(name: str, one: str, other: str) -> None:
    number = not isinstance(OPERANDS[other], torch.Tensor)
    overload = "Scalar" if number and name in ("remainder", "fmod") else "Tensor"
    check_operator(f"aten.{name}.{overload}", OPERANDS[one], OPERANDS[other])


@pytest.mark.parametrize("other", [k for k in OPERANDS if k != "bool"])
def test_subtraction(other: str) -> None:
    check_operator("aten.sub.Tensor", FLOATS, OPERANDS[other], alpha=2)
    check_operator("aten.rsub.Scalar", FLOATS, 1.5, 2)


def test_booleans() -> None:
    check_operator("aten.add.Tensor", BOOLS, ~BOOLS)
    check_operator("aten.mul.Tensor", BOOLS, BOOLS.t().reshape(3, 4))
    check_operator("aten.add.Tensor", BOOLS, 1)


def test_subtracting_booleans_raises_what_eager_raises() -> None:
    from primtorch_decomps.testing import check_spec

    with pytest.raises(RuntimeError, match="Subtraction"):
        torch.ops.aten.sub.Tensor(BOOLS, BOOLS)
    with pytest.raises(RuntimeError, match="Subtraction"):
        check_spec(torch.ops.aten.sub.Tensor, (BOOLS, BOOLS), {})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(3, 1, 1)),
        (torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last), torch.randn(2, 3, 4, 5)),
        (torch.randn(4, 5).t(), torch.randn(5, 4)),
        (torch.randn(5, 4), torch.randn(4, 5).t()),
        (torch.randn(4, 5).t(), torch.randn(4)),
        (torch.randn(1, 4).expand(5, 4), torch.randn(4)),
        (torch.randn(6, 4)[::2], torch.randn(3, 4)),
        (torch.randn(0, 1), torch.randn(1)),
        (torch.randn(2, 1, 3).transpose(0, 2), torch.randn(3, 7, 1)),
        (torch.randn(2, 3, 4).permute(1, 2, 0), torch.randn(2, 3, 4).permute(1, 2, 0)),
    ],
)
def test_layouts(one: torch.Tensor, other: torch.Tensor) -> None:
    check_operator("aten.mul.Tensor", one, other)
    check_operator("aten.add.Tensor", one, 2.0)


@pytest.mark.parametrize("mode", [None, "floor", "trunc"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.bfloat16], ids=str)
def test_division_modes(mode: str | None, dtype: torch.dtype) -> None:
    one = torch.tensor([7, -7, 8, -9, 1]).to(dtype)
    other = torch.tensor([2, 2, -3, -3, 5]).to(dtype)
    check_operator("aten.div.Tensor_mode", one, other, rounding_mode=mode)
    check_operator("aten.floor_divide.default", one, other)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 0.5, -0.5, -1, -2, 2.5, -3.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_powers(exponent: float, dtype: torch.dtype) -> None:
    x = torch.tensor([0.0, 0.5, 1.0, 2.0, 3.0, float("inf"), float("nan"), -1.5]).to(dtype)
    check_operator("aten.pow.Tensor_Scalar", x, exponent)


def test_integer_powers() -> None:
    for exponent in (0, 1, 2, 3):
        check_operator("aten.pow.Tensor_Scalar", INTEGERS, exponent)
    check_operator("aten.pow.Tensor_Tensor", FLOATS.abs(), FLOATS)
    check_operator("aten.pow.Scalar", 2, FLOATS)


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extremes_and_nan(name: str) -> None:
    nan = float("nan")
    one, other = torch.tensor([1.0, nan, 3.0, nan]), torch.tensor([2.0, 1.0, nan, nan])
    for dtype in (torch.float32, torch.bfloat16):
        check_operator(f"aten.{name}.default", one.to(dtype), other.to(dtype))
    check_operator(f"aten.{name}.default", INTEGERS, torch.tensor(4))


@pytest.mark.parametrize("name", ["atan2", "hypot", "logaddexp", "xlogy.Tensor", "heaviside"])
def test_special_functions(name: str) -> None:
    inf, nan = float("inf"), float("nan")
    one = torch.tensor([0.0, -0.0, 1.0, -2.0, inf, -inf, nan, 3.0])
    other = torch.tensor([1.0, 2.0, -3.0, 4.0, inf, -inf, 1.0, -0.0])
    name = name if "." in name else f"{name}.default"
    check_operator(f"aten.{name}", one, other)


@pytest.mark.parametrize("name", ["bitwise_and", "bitwise_or", "bitwise_xor"])
def test_bits(name: str) -> None:
    check_operator(f"aten.{name}.Tensor", INTEGERS, INTEGERS.flip(0))
    check_operator(f"aten.{name}.Tensor", BOOLS, BOOLS.flip(0))
    check_operator(f"aten.{name}.Scalar", INTEGERS, 5)


def test_shifts() -> None:
    check_operator("aten.bitwise_left_shift.Tensor", INTEGERS, torch.tensor(2))
    check_operator("aten.bitwise_right_shift.Tensor_Scalar", INTEGERS, 1)
