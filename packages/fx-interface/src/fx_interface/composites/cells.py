"""One step of a GRU or LSTM on a batch of symbolic size: the operators that eager calls on a CPU.

Eager writes gates in place, where they have a row's stride: kernels compute such rows by other instructions than a
tensor without gaps, with other last bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

aten = torch.ops.aten


def gru_cell(*args: Any, **kwargs: Any) -> Any:
    """``torch.gru_cell``: (input, state, w_ih, w_hh, b_ih, b_hh)."""
    if kwargs or len(args) < 4 or not _fits(args[0], [args[1]], args[2:], 3):
        return torch.gru_cell(*args, **kwargs)
    data, hidden, w_ih, w_hh, b_ih, b_hh = (*args, None, None)[:6]
    width = int(w_hh.shape[1])
    of_data = _gates(data, w_ih, b_ih, width)
    of_state = _gates(hidden, w_hh, b_hh, width)
    reset = of_state[0].add_(of_data[0]).sigmoid_()
    update = of_state[1].add_(of_data[1]).sigmoid_()
    new = of_data[2].add(of_state[2].mul_(reset)).tanh_()
    return (hidden - new).mul_(update).add_(new)


def lstm_cell(*args: Any, **kwargs: Any) -> Any:
    """``torch.lstm_cell``: (input, states, w_ih, w_hh, b_ih, b_hh)."""
    if kwargs or len(args) < 4 or not _fits(args[0], args[1], args[2:], 4):
        return torch.lstm_cell(*args, **kwargs)
    data, (hidden, cell), w_ih, w_hh, b_ih, b_hh = (*args, None, None)[:6]
    gates = functional.linear(hidden, w_hh, b_hh) + functional.linear(data, w_ih, b_ih)
    taken, kept, new, shown = aten.split.Tensor(gates, int(w_hh.shape[1]), 1)
    state = kept.sigmoid() * cell + taken.sigmoid() * new.tanh()
    return shown.sigmoid() * state.tanh(), state


def _gates(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, width: int) -> Any:
    return aten.unsafe_split.Tensor(functional.linear(x, weight, bias), width, 1)


def _fits(data: Any, states: Sequence[Any], weights: Sequence[Any], gates: int) -> bool:
    """Whether a size is symbolic, and everything else as such a cell on a CPU has it."""
    parts = [data, *states, *(part for part in weights if part is not None)]
    if len(states) != gates - 2 or not all(isinstance(part, torch.Tensor) for part in parts):
        return False
    if not all(part.device.type == "cpu" and part.dtype is data.dtype for part in parts):
        return False
    w_ih, w_hh, *biases = weights
    if data.dim() != 2 or any(state.dim() != 2 for state in states) or w_ih.dim() != 2 or w_hh.dim() != 2:
        return False
    sizes = [*w_ih.shape, *w_hh.shape, data.shape[1], *(state.shape[1] for state in states)]
    if not all(isinstance(size, int) for size in sizes):
        return False
    width = w_hh.shape[1]
    rows = gates * width
    return (
        any(isinstance(size, torch.SymInt) for part in (data, *states) for size in part.shape)
        and (w_ih.shape[0], w_hh.shape[0], w_ih.shape[1]) == (rows, rows, data.shape[1])
        and all(state.shape[1] == width for state in states)
        and all(bias is None or tuple(bias.shape) == (rows,) for bias in biases)
    )
