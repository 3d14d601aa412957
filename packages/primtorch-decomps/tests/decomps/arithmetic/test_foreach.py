"""Operators over lists of tensors."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps import DECOMPOSITIONS
from primtorch_decomps.registry import overload
from primtorch_decomps.testing import check_operator

X = [torch.randn(3, 4), torch.rand(5)]
Y = [torch.rand(4) + 0.5, torch.rand(5) + 0.5]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "maximum", "minimum", "clamp_min", "clamp_max"])
def test_two_operands(name: str) -> None:
    check_operator(f"aten._foreach_{name}.List", X, Y)
    check_operator(f"aten._foreach_{name}.Scalar", X, 0.25)
    check_operator(f"aten._foreach_{name}.ScalarList", X, [0.25, 2.0])


def test_the_other_operand_may_be_one_tensor_or_scaled() -> None:
    check_operator("aten._foreach_mul.Tensor", X, torch.tensor(0.5))
    check_operator("aten._foreach_add.List", X, Y, alpha=2.0)


@pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
def test_multiply_add(name: str) -> None:
    check_operator(f"aten._foreach_{name}.Scalar", X, X, Y, 0.5)
    check_operator(f"aten._foreach_{name}.Scalar", X, X, Y)
    check_operator(f"aten._foreach_{name}.ScalarList", X, X, Y, [0.5, -2.0])


def test_powers_and_interpolation() -> None:
    check_operator("aten._foreach_pow.List", Y, Y)
    check_operator("aten._foreach_pow.Scalar", Y, 2.0)
    check_operator("aten._foreach_pow.ScalarAndTensor", 0.9, Y)
    check_operator("aten._foreach_lerp.Scalar", X, X, 0.3)
    check_operator("aten._foreach_lerp.List", Y, Y, Y)


@pytest.mark.parametrize("name", ["sqrt", "neg", "abs", "exp", "reciprocal", "sign", "tanh"])
def test_one_operand(name: str) -> None:
    check_operator(f"aten._foreach_{name}.default", Y)


def test_norms() -> None:
    check_operator("aten._foreach_norm.Scalar", X)
    check_operator("aten._foreach_norm.Scalar", X, 1)
    check_operator("aten._foreach_norm.Scalar", [x.bfloat16() for x in X], 2, torch.float32)


def test_an_overload_that_reads_numbers_out_of_a_tensor_stays_a_library_call() -> None:
    assert overload("aten._foreach_addcdiv.Tensor") is not None
    check_operator("aten._foreach_addcdiv.Tensor", X, X, Y, torch.tensor([0.5, 2.0]), library_call=True)


def test_the_whole_family_is_declared() -> None:
    declared = {str(op) for op in DECOMPOSITIONS}
    assert {
        "aten._foreach_add.List",
        "aten._foreach_sigmoid.default",
        "aten._foreach_copy.default",
    } <= declared
    assert not any(name.partition(".")[0].endswith("_") for name in declared if "_foreach" in name)
