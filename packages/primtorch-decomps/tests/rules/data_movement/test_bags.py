"""Specs of bags of embeddings in every mode."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_open_spec

INDICES, OFFSETS = torch.tensor([1, 2, 3, 4, 0]), torch.tensor([0, 2, 4])


@pytest.mark.parametrize("mode", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_bags(mode: int, dtype: torch.dtype) -> None:
    table = torch.rand(10, 4, dtype=dtype)
    for last in (False, True):
        rest = (False, mode, False, None, last)
        check_open_spec("aten._embedding_bag.default", table, INDICES, OFFSETS, *rest)
        check_open_spec("aten._embedding_bag.default", table, INDICES, OFFSETS, *rest, 2)
    made, bag, size, places = torch.ops.aten._embedding_bag.default(table, INDICES, OFFSETS, False, mode)
    rest = (OFFSETS, bag, size, places, 10, False, mode, False, None)
    check_open_spec("aten._embedding_bag_backward.default", made, INDICES, *rest)


def test_weights_of_their_own() -> None:
    table, weights = torch.rand(10, 4), torch.rand(5)
    made, bag, *_ = torch.ops.aten._embedding_bag.default(table, INDICES, OFFSETS, False, 1)
    args = (INDICES, OFFSETS, False, 0, False, weights)
    check_open_spec("aten._embedding_bag.default", table, *args)
    rest = (table, INDICES, OFFSETS, bag, 0)
    check_open_spec("aten._embedding_bag_per_sample_weights_backward.default", made, *rest)
