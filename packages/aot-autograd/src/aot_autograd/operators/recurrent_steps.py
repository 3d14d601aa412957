"""The gradients of one direction of a recurrent layer over packed rows.

Rows are packed by steps: ``sizes[t]`` rows of step ``t``, the longest sequences first. What a gate gives for all rows
is computed at once; the gradient of the hidden state alone goes from step to step:

    dh = dh + dout[t];  dgates[t] = dh * factors[t];  dh = dh * carried[t] + dgates[t] @ weight

(Cho et al. 2014 for the GRU, Hochreiter and Schmidhuber 1997 for the LSTM; in torch's variants, which ``torch.nn.GRU``
and ``torch.nn.LSTM`` state.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Layer:
    """``data``: (N, I); ``states``: (B, H), the first state, of an LSTM the first cell too; ``weights``: (G * H, I) and
    (G * H, H), then perhaps two biases (G * H,)."""

    kind: str
    data: torch.Tensor
    states: Sequence[torch.Tensor]
    weights: Sequence[torch.Tensor]

    def inputs(self) -> torch.Tensor:
        """What all rows give the gates: (N, G * H)."""
        return torch.nn.functional.linear(self.data, self.weights[0], *self.weights[2:3])

    def hidden(self, before: torch.Tensor) -> torch.Tensor:
        """What the states in front of all rows give the gates: (N, G * H)."""
        return torch.nn.functional.linear(before, self.weights[1], *self.weights[3:4])


@dataclass(frozen=True, slots=True)
class Gradients:
    """Of the layer's data, or None where that is not asked for, its states and its weights."""

    data: torch.Tensor | None
    states: list[torch.Tensor]
    weights: list[torch.Tensor]


class Rows:
    """Which rows belong to which step, and which state is in front of each."""

    def __init__(self, sizes: torch.Tensor, is_reversed: bool) -> None:
        self.sizes: list[int] = sizes.tolist()
        self.is_reversed = is_reversed
        ends = sizes.cumsum(0)
        self._spans = list(zip((ends - sizes).tolist(), ends.tolist(), self.sizes, strict=True))
        places = torch.arange(self._spans[-1][1])
        begin = (ends - sizes).repeat_interleave(sizes)
        batch = self.sizes[0]
        if is_reversed:
            following = torch.cat([sizes[1:], sizes.new_zeros(1)])
            lasts = places - begin >= following.repeat_interleave(sizes)
            self._before = torch.where(lasts, places - begin, places + batch + sizes.repeat_interleave(sizes))
        else:
            shift = torch.cat([sizes[:1], sizes[:-1]])
            self._before = places + batch - shift.repeat_interleave(sizes)

    def forwards(self) -> Iterator[tuple[int, int, int]]:
        """The first row, the end and the number of rows of each step, as the layer goes through them."""
        return reversed(self._spans) if self.is_reversed else iter(self._spans)

    def backwards(self) -> Iterator[tuple[int, int, int]]:
        """The same, in the order of a backward."""
        return iter(self._spans) if self.is_reversed else reversed(self._spans)

    def before(self, first: torch.Tensor, every: torch.Tensor) -> torch.Tensor:
        """The state in front of each row: one of ``first``, (B, H), or of ``every``, (N, H)."""
        return torch.cat([first, every]).index_select(0, self._before)


def backward_of(
    layer: Layer,
    rows: Rows,
    result: torch.Tensor,
    arriving: Sequence[torch.Tensor | None],
    *,
    needs_data: bool,
) -> Gradients:
    """The gradients where ``arriving`` are those of the ``result``, (N, H), and of the last states."""
    before = rows.before(layer.states[0], result)
    first = torch.zeros_like(result) if arriving[0] is None else arriving[0]
    lasts = [
        torch.zeros_like(state) if grad is None else grad.clone(memory_format=torch.contiguous_format)
        for grad, state in zip(arriving[1:], layer.states, strict=True)
    ]
    of_inputs, of_hidden = _FORMULAS[layer.kind](layer, rows, result, before, first, lasts)
    weights = [of_inputs.t() @ layer.data, of_hidden.t() @ before]
    if len(layer.weights) > 2:
        weights += [of_inputs.sum(0), of_hidden.sum(0)]
    return Gradients(of_inputs @ layer.weights[0] if needs_data else None, lasts, weights)


def _plain(
    layer: Layer,
    rows: Rows,
    result: torch.Tensor,
    before: torch.Tensor,
    arriving: torch.Tensor,
    lasts: list[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """``h' = tanh(W x + U h)``, or ``relu``."""
    factors = (result > 0).to(result.dtype) if layer.kind == "rnn_relu" else 1 - result * result
    gates = torch.empty_like(factors)
    (state,), weight = lasts, layer.weights[1]
    for begin, end, count in rows.backwards():
        of_state = state[:count].add_(arriving[begin:end])
        of_gates = torch.mul(of_state, factors[begin:end], out=gates[begin:end])
        torch.mm(of_gates, weight, out=of_state)
    return gates, gates


def _gru(
    layer: Layer,
    rows: Rows,
    result: torch.Tensor,
    before: torch.Tensor,
    arriving: torch.Tensor,
    lasts: list[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """``h' = (1 - z) n + z h``, ``n = tanh(W x + r U h)``."""
    inputs, hidden = layer.inputs(), layer.hidden(before)
    width = result.shape[1]
    reset, update = (inputs[:, : 2 * width] + hidden[:, : 2 * width]).sigmoid_().chunk(2, 1)
    of_new = hidden[:, 2 * width :]
    new = torch.addcmul(inputs[:, 2 * width :], reset, of_new).tanh_()
    keeps = 1 - update
    by_new = keeps * (1 - new * new)
    by_update = (before - new) * update * keeps
    by_reset = of_new * reset * (1 - reset)
    of_inputs, of_hidden = torch.empty_like(inputs), torch.empty_like(hidden)
    (state,), weight = lasts, layer.weights[1]
    for begin, end, count in rows.backwards():
        step = slice(begin, end)
        of_state, gates = state[:count].add_(arriving[step]), of_hidden[step]
        grad = torch.mul(of_state, by_new[step], out=of_inputs[step, 2 * width :])
        torch.mul(grad, by_reset[step], out=gates[:, :width])
        torch.mul(of_state, by_update[step], out=gates[:, width : 2 * width])
        torch.mul(grad, reset[step], out=gates[:, 2 * width :])
        of_state.mul_(update[step]).addmm_(gates, weight)
    of_inputs[:, : 2 * width] = of_hidden[:, : 2 * width]
    return of_inputs, of_hidden


def _lstm(
    layer: Layer,
    rows: Rows,
    result: torch.Tensor,
    before: torch.Tensor,
    arriving: torch.Tensor,
    lasts: list[torch.Tensor],
) -> tuple[torch.Tensor, torch.Tensor]:
    """``c' = f c + i g``, ``h' = o tanh(c')``."""
    width = result.shape[1]
    sums = (layer.inputs() + layer.hidden(before)).view(-1, 4, width)
    opens, keeps, news, shows = (
        part.tanh() if place == 2 else part.sigmoid() for place, part in enumerate(sums.unbind(1))
    )
    cells, held, added = torch.empty_like(result), torch.empty_like(result), opens * news
    cell = layer.states[1].clone()
    for begin, end, count in rows.forwards():
        step = slice(begin, end)
        held[step] = cell[:count]
        cell[:count] = torch.addcmul(added[step], keeps[step], held[step], out=cells[step])
    shown = cells.tanh_()
    by_show = shown * shows * (1 - shows)
    by_cell = shows * (1 - shown * shown)
    factors = (news * opens * (1 - opens), held * keeps * (1 - keeps), opens * (1 - news * news))
    by_gates = torch.stack(factors, 1)
    gates = torch.empty_like(sums)
    (state, memory), weight = lasts, layer.weights[1]
    for begin, end, count in rows.backwards():
        step = slice(begin, end)
        of_state, of_cell = state[:count].add_(arriving[step]), memory[:count]
        of_cell.addcmul_(of_state, by_cell[step])
        torch.mul(of_cell.unsqueeze(1), by_gates[step], out=gates[step, :3])
        torch.mul(of_state, by_show[step], out=gates[step, 3])
        of_cell.mul_(keeps[step])
        torch.mm(gates[step].view(count, -1), weight, out=of_state)
    flat = gates.view(len(gates), -1)
    return flat, flat


_FORMULAS: Final[dict[str, Callable[..., Any]]] = {
    "gru": _gru,
    "lstm": _lstm,
    "rnn_tanh": _plain,
    "rnn_relu": _plain,
}
