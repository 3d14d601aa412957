"""Specs of variances and of normalisations' gradients equal the real results', with symbolic sizes too."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator, check_spec

ATEN = torch.ops.aten


@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
@pytest.mark.parametrize("keepdim", [True, False])
@pytest.mark.parametrize("dim", [None, [1], [0, -1]])
def test_variances(name: str, dim: list[int] | None, keepdim: bool) -> None:
    x = torch.randn(4, 5, 6).transpose(0, 2)
    check_operator(f"aten.{name}.correction", x, dim, correction=1, keepdim=keepdim, magnitude=4.0)


def test_the_variance_of_complex_numbers_is_real() -> None:
    check_spec(ATEN.var_mean.correction, (torch.randn(4, 5, dtype=torch.complex64), [1]), {})


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False], [False, True, True]])
@pytest.mark.parametrize("weighted", [True, False])
def test_layer_norm_backward(mask: list[bool], weighted: bool) -> None:
    x, grad = torch.randn(4, 5, 6), torch.randn(4, 5, 6)
    weight, bias = (torch.randn(5, 6), torch.randn(5, 6)) if weighted else (None, None)
    _, mean, rstd = ATEN.native_layer_norm.default(x, [5, 6], weight, bias, 1e-5)
    mask = mask if weighted else [mask[0], False, False]
    if any(mask):
        check_operator(
            "aten.native_layer_norm_backward.default",
            grad,
            x,
            [5, 6],
            mean,
            rstd,
            weight,
            bias,
            mask,
            magnitude=8.0,
        )


@pytest.mark.parametrize("mask", [[True, True, True], [True, False, False]])
def test_group_norm_backward(mask: list[bool]) -> None:
    x, grad, weight = torch.randn(2, 6, 3, 4), torch.randn(2, 6, 3, 4), torch.randn(6)
    _, mean, rstd = ATEN.native_group_norm.default(x, weight, None, 2, 6, 12, 3, 1e-5)
    args = (grad, x, mean, rstd, weight, 2, 6, 12, 3, mask)
    check_operator("aten.native_group_norm_backward.default", *args, magnitude=8.0)


@pytest.mark.parametrize("size", [(4, 3), (1, 1)])
def test_group_norm_keeps_the_memory_format_that_its_input_suggests(size: tuple[int, int]) -> None:
    # channels last, by its strides even where it is one pixel
    x = torch.randn(2, *size, 6).permute(0, 3, 1, 2)
    pixels = size[0] * size[1]
    check_operator("aten.native_group_norm.default", x, None, None, 2, 6, pixels, 3, 1e-5)
    _, mean, rstd = ATEN.native_group_norm.default(x, None, None, 2, 6, pixels, 3, 1e-5)
    args = (torch.randn_like(x), x, mean, rstd, None, 2, 6, pixels, 3, [True, False, False])
    check_operator("aten.native_group_norm_backward.default", *args, magnitude=8.0)
