"""LSTM layers keep what their backward needs, though the compiled forward runs with gradients off."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from aot_autograd import aot_module


@pytest.mark.parametrize("grad", [True, False])
def test_lstm_layers(grad: bool, library: Any, interpreter: Any) -> None:
    layers = torch.nn.LSTM(3, 4, num_layers=2, bidirectional=True, batch_first=True, dropout=0.5)
    x = torch.randn(2, 5, 3, requires_grad=grad)
    outcomes = []
    for run in (layers, aot_module(layers, operators=library, forward_compiler=interpreter)):
        torch.manual_seed(0)
        with torch.set_grad_enabled(grad):
            output, (hidden, cell) = run(x)
        wanted = [x, *layers.parameters()] if grad else []
        loss = (output.sum() + hidden.square().sum() + cell.sum(),)
        outcomes.append((output, hidden, cell, *(torch.autograd.grad(loss, wanted) if grad else ())))
    torch.testing.assert_close(outcomes[1], outcomes[0], rtol=0, atol=0)
