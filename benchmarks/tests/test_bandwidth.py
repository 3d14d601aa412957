"""What a kernel must move, and that the functions run on any device."""

from __future__ import annotations

import pytest
import torch

from benchmarks.bandwidth import FUNCTIONS, columns, moved_bytes, softmax


@pytest.mark.parametrize("function", FUNCTIONS)
def test_moves_each_input_and_result_once(function: object) -> None:
    x, y = torch.randn(8, 16), torch.randn(8, 16)
    assert callable(function)
    assert moved_bytes(function, x, y) >= x.nbytes
    assert moved_bytes(softmax, x, y) == 2 * x.nbytes
    assert moved_bytes(columns, x, y) == 2 * x.nbytes + 16 * 4
