"""Specs of distances of rows."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator


@pytest.mark.parametrize("batches", [((), ()), ((3,), (3,)), ((2, 1), (4,))], ids=str)
def test_distances(batches: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = torch.randn(*batches[0], 5, 3), torch.randn(*batches[1], 6, 3)
    check_operator("aten._cdist_forward.default", x, y, 1.0, None, library_call=True)
    check_operator("aten._euclidean_dist.default", x, y, library_call=True)
    found = torch.cdist(x, y, 1.0)
    gradient = (torch.randn_like(found), x, y, 1.0, found)
    check_operator("aten._cdist_backward.default", *gradient, library_call=True)
