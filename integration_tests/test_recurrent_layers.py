"""Recurrent layers and cells, to the bit of eager: batches of any size, also of none, and 16-bit floats."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import fxstack


def test_a_layer_without_gradients_meets_an_empty_batch() -> None:
    """oneDNN's layer divides by the size of a batch: of none it ended the process."""
    layer = nn.LSTM(3, 4)
    fast = fxstack.compile(layer, backend="aot_eager", dynamic=True)
    with torch.no_grad():
        for batch in (4, 6, 9, 0, 1):
            x = torch.randn(5, batch, 3)
            torch.testing.assert_close(fast(x), layer(x), rtol=0, atol=0)


@pytest.mark.parametrize("batch", [4, 8, 9, 33])
@pytest.mark.parametrize("grad", [True, False])
def test_a_cell_rounds_as_eager_does(batch: int, grad: bool) -> None:
    """Eager computes gates in place, in rows with gaps: not by the instructions of a tensor without gaps."""
    cell = nn.GRUCell(3, 4)
    fast = fxstack.compile(cell, backend="aot_eager", dynamic=True)
    x, hidden = torch.randn(batch, 3), torch.randn(batch, 4, requires_grad=grad)
    with torch.set_grad_enabled(grad):
        expected, actual = cell(x, hidden), fast(x, hidden)
    assert torch.equal(actual, expected)
    if grad:
        of_expected, of_actual = (torch.autograd.grad(y.cos().sum(), hidden) for y in (expected, actual))
        assert torch.equal(of_actual[0], of_expected[0])


def test_gradients_of_a_layer_under_autocast_are_rounded_to_its_dtype() -> None:
    layer, x = nn.LSTM(3, 4), torch.randn(5, 4, 3)
    fast = fxstack.compile(layer, backend="aot_eager")

    def gradients(run: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            output = run(x)[0]
        return torch.autograd.grad(output.float().cos().sum(), list(layer.parameters()))

    expected = gradients(layer)
    assert all(torch.equal(g, g.bfloat16().float()) for g in expected)
    torch.testing.assert_close(gradients(fast), expected, rtol=0, atol=0)
