"""Specs of Fourier transforms in several layouts, with plain and symbolic sizes."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec, check_spec

aten = torch.ops.aten
DIMS = ([3], [1], [1, 3], [3, 1], [0, 2], [3, 2, 1], [0, 1, 2, 3])


@pytest.mark.parametrize("dims", DIMS)
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_transforms_of_any_size(dims: list[int], order: tuple[int, ...]) -> None:
    x = torch.randn(3, 4, 5, 6).permute(order)
    check_open_spec("aten._fft_r2c.default", x, dims, 0, True)
    check_open_spec("aten._fft_r2c.default", x, dims, 0, False)
    check_open_spec("aten._fft_c2c.default", torch.complex(x, x), dims, 0, True)


@pytest.mark.parametrize("dims", DIMS)
def test_back_to_real_numbers(dims: list[int]) -> None:
    x = torch.randn(3, 4, 5, 6, dtype=torch.complex64)
    for layout in (x, x.permute(2, 0, 3, 1), x[:1].expand(3, 4, 5, 6)):
        check_spec(aten._fft_c2r.default, (layout, dims, 0, 2 * layout.shape[dims[-1]] - 2), {})


def test_no_dimension_is_transformed() -> None:
    check_open_spec("aten._fft_c2c.default", torch.randn(2, 3, dtype=torch.complex64).t(), [], 0, True)
