"""Elements in other places."""

from __future__ import annotations

import pytest
import torch

from primtorch_decomps.testing import check_operator


def test_a_narrow_copy_is_dense() -> None:
    check_operator("aten.narrow_copy.default", torch.randn(4, 6).t(), 0, 2, 3)


@pytest.mark.parametrize(
    "index", [torch.tensor([[0, -1], [7, 3]]), torch.tensor(4)], ids=["matrix", "number"]
)
def test_elements_of_the_flat_tensor(index: torch.Tensor) -> None:
    check_operator("aten.take.default", torch.randn(4, 3).t(), index)


def test_channels_are_dealt_out() -> None:
    check_operator("aten.channel_shuffle.default", torch.randn(2, 6, 3, 4), 3)
    check_operator(
        "aten.channel_shuffle.default", torch.randn(2, 6, 3, 4).to(memory_format=torch.channels_last), 2
    )
