"""Specs of distances of rows."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec, check_operator, check_spec


@pytest.mark.parametrize("batches", [((), ()), ((3,), (3,)), ((2, 1), (4,))], ids=str)
def test_distances(batches: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    x, y = torch.randn(*batches[0], 5, 3), torch.randn(*batches[1], 6, 3)
    check_operator("aten._cdist_forward.default", x, y, 1.0, None, library_call=True)
    check_operator("aten._euclidean_dist.default", x, y, library_call=True)
    found = torch.cdist(x, y, 1.0)
    gradient = (torch.randn_like(found), x, y, 1.0, found)
    check_operator("aten._cdist_backward.default", *gradient, library_call=True)


@pytest.mark.parametrize(
    "x, y", [((2, 3), (0, 4, 3)), ((1, 2, 3), (2, 0, 3)), ((0, 3), (2, 4, 3)), ((1, 2, 0), (2, 4, 0))]
)
def test_gradients_of_no_distances(x: tuple[int, ...], y: tuple[int, ...]) -> None:
    one, other = torch.randn(x), torch.randn(y)
    found = torch.cdist(one, other, 1.0)
    args = (torch.ones_like(found), one, other, 1.0, found)
    check_spec(torch.ops.aten._cdist_backward.default, args, {})


def test_distances_of_pairs_of_any_number() -> None:
    x = torch.rand(5, 3)
    check_open_spec("aten._pdist_forward.default", x, 2.0)
    made = torch.ops.aten._pdist_forward.default(x, 2.0)
    check_open_spec("aten._pdist_backward.default", made, x, 2.0, made)
