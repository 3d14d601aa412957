"""Diagonals above, on and below the main one, in dense and strided matrices."""

from __future__ import annotations

import pytest
import torch

from fx_interface.tensor_spec import TensorSpec
from primtorch_decomps import LIBRARY
from primtorch_decomps.testing import SymbolicTwins, check_operator

ATEN = torch.ops.aten


@pytest.mark.parametrize("offset", [-2, 0, 1, 3])
@pytest.mark.parametrize("dims", [(0, 1), (1, 2), (-1, 0)])
def test_a_diagonal_is_replaced_and_differentiated(offset: int, dims: tuple[int, int]) -> None:
    x = torch.randn(4, 5, 6)
    values = torch.randn_like(ATEN.diagonal.default(x, offset, *dims))
    check_operator("aten.diagonal_scatter.default", x, values, offset, *dims)
    check_operator("aten.diagonal_backward.default", values, [4, 5, 6], offset, *dims)


def test_a_replaced_diagonal_keeps_the_layout() -> None:
    for x in (torch.randn(4, 6).t(), torch.randn(4, 8)[:, ::2], torch.randn(4, 1).expand(4, 3)):
        check_operator("aten.diagonal_scatter.default", x, x.diagonal().clone())
        check_operator("aten.select_scatter.default", x, x.select(0, 0).clone(), 0, 1)
        check_operator("aten.slice_scatter.default", x, x[1:3].clone(), 0, 1, 3)


@pytest.mark.parametrize("offset", [-1, 0, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool], ids=str)
def test_a_matrix_from_its_diagonal(offset: int, dtype: torch.dtype) -> None:
    x = torch.ones(2, 3).to(dtype)
    check_operator("aten.diag_embed.default", x, offset)
    check_operator("aten.diag_embed.default", x, offset, 0, 2)


def test_traces() -> None:
    check_operator("aten.trace.default", torch.randn(3, 5))
    check_operator("aten.trace.default", torch.arange(6).reshape(3, 2))


def test_blocks_along_the_diagonal() -> None:
    blocks = [torch.randn(2, 3), torch.randn(4), torch.tensor(2), torch.randn(1, 1)]
    check_operator("aten.block_diag.default", blocks)


def test_a_main_diagonal_is_as_long_as_a_side() -> None:
    twins = SymbolicTwins()
    found = LIBRARY.infer(torch.ops.aten.diagonal.default, (twins(torch.randn(5, 5)),), {}, twins.env)
    assert isinstance(found, TensorSpec)
    assert [str(size) for size in found.sizes] == ["s0"]
