"""LSTMs over sequences and batches of symbolic size: one oneDNN call for each layer and direction, as in eager.

Where eager does not call oneDNN (other dtypes and devices, projections, nothing to compute), torch unrolls the steps,
and their number is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

aten = torch.ops.aten

_LSTM = 2
"""oneDNN's number for this kind of recurrence."""


def lstm(*args: Any, **kwargs: Any) -> Any:
    """``torch.lstm``: (input, states, weights, has_biases, num_layers, dropout, train, bidirectional, batch_first)."""
    if len(args) == 9 and not kwargs and _by_layer(args[0], args[1], args[2]):
        return _lstm(*args)
    return torch.lstm(*args, **kwargs)


def _by_layer(data: Any, states: Any, weights: Any) -> bool:
    if (
        isinstance(states, torch.Tensor)
        or not torch._C._get_mkldnn_enabled()
        or torch.is_autocast_enabled("cpu")
    ):
        return False
    tensors = [data, *states, *weights]
    return (
        data.dim() == 3
        and any(isinstance(n, torch.SymInt) for tensor in (data, *states) for n in tensor.shape)
        and all(tensor.device.type == "cpu" and tensor.dtype is torch.float32 for tensor in tensors)
        and states[0].shape[2] == states[1].shape[2]
        and all(size != 0 for size in data.shape)
    )


def _lstm(
    data: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
    has_biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    directions, parts = 1 + bidirectional, 4 if has_biases else 2
    flow = (data.transpose(0, 1) if batch_first else data).contiguous()
    hidden, cell = (state.contiguous() for state in states)
    width = int(hidden.shape[2])
    last_hidden, last_cell = [], []
    for layer in range(layers):
        outputs = []
        for direction in range(directions):
            place = layer * directions + direction
            own = list(weights[place * parts : (place + 1) * parts])
            if not has_biases:
                own += [torch.zeros(weight.shape) for weight in own]
            output, last, last_of_cell, _ = aten.mkldnn_rnn_layer.default(
                flow, *own, hidden[place], cell[place], direction == 1, [], _LSTM, width, layers, has_biases,
                bidirectional, batch_first, train,
            )  # fmt: skip
            outputs.append(output)
            last_hidden.append(last)
            last_cell.append(last_of_cell)
        flow = outputs[0] if directions == 1 else torch.cat(outputs, -1)
        if train and dropout != 0 and layer < layers - 1:
            flow = torch.dropout(flow, dropout, True)
    return flow.transpose(0, 1) if batch_first else flow, torch.stack(last_hidden), torch.stack(last_cell)
