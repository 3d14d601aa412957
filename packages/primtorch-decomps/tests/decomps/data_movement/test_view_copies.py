"""Copies of views."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator

X = torch.randn(4, 1, 6)
CASES = {
    "permute_copy.default": ([2, 0, 1],),
    "transpose_copy.int": (0, 2),
    "expand_copy.default": ([4, 3, 6],),
    "squeeze_copy.dim": (1,),
    "unsqueeze_copy.default": (-1,),
    "slice_copy.Tensor": (0, 1, 3),
    "select_copy.int": (2, -1),
    "diagonal_copy.default": (0, 0, 2),
    "unfold_copy.default": (2, 3, 2),
    "split_with_sizes_copy.default": ([1, 3],),
    "unbind_copy.int": (0,),
    "alias_copy.default": (),
    "view_copy.default": ([24],),
}


@pytest.mark.parametrize("name", CASES)
def test_copies(name: str) -> None:
    check_operator(f"aten.{name}", X, *CASES[name])
    if name != "expand_copy.default":
        check_operator(f"aten.{name}", torch.randn(6, 1, 4).transpose(0, 2), *CASES[name])
