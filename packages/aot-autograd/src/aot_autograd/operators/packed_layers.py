"""Recurrent layers over packed sequences, trained: torch's own forward, and a backward of their own.

torch's operators record each step: a slice of all rows, whose gradient is as large as all rows, so that a backward over
``T`` steps fills ``T`` times the memory of the input, and two products for each step's weights. Here the backward
computes the gates of all rows at once from what the forward gives, goes through the steps for the gradients of the
hidden state alone, and makes the gradients of the weights by one product each.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from aot_autograd.operators.recurrent_steps import Layer, Rows, backward_of
from aot_autograd.runtime.gradients.incoming_gradients import is_plain
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched

KINDS: Final[dict[str, Callable[..., Any]]] = {
    "gru": torch.gru,
    "lstm": torch.lstm,
    "rnn_tanh": torch.rnn_tanh,
    "rnn_relu": torch.rnn_relu,
}
"""Torch's operators, by the names of the formulas of their gradients."""
_GATES: Final = {"gru": 3, "lstm": 4, "rnn_tanh": 1, "rnn_relu": 1}
_LEAST_STEPS: Final = 16
"""With fewer, torch's own backward takes no longer."""
_DTYPES: Final = (torch.float32, torch.float64)


def called(kind: str, *args: Any, **kwargs: Any) -> Any:
    """As ``KINDS[kind]``, in all its forms."""
    if not kwargs and len(args) == 9 and isinstance(args[1], torch.Tensor) and isinstance(args[3], list):
        return _of_packed(kind, *args)
    return KINDS[kind](*args, **kwargs)


AT_LESS_COST: Final[dict[Callable[..., Any], Callable[..., Any]]] = {
    function: functools.partial(called, kind) for kind, function in KINDS.items()
}
"""What may be called in place of torch's operators where gradients may be rounded otherwise."""


def _of_packed(
    kind: str,
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    hx: Any,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
) -> Any:
    """As ``KINDS[kind]`` of a packed sequence: the results ``(N, D * H)`` of all rows, and the last states."""
    states = tuple(hx) if kind == "lstm" else (hx,)
    directions, of_layer = 1 + bidirectional, 2 + 2 * has_biases
    layers = [params[i : i + directions * of_layer] for i in range(0, len(params), directions * of_layer)]
    given = (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    if len(layers) != num_layers or not _fits(kind, data, batch_sizes, states, layers, directions):
        return KINDS[kind](*given)
    found: list[list[torch.Tensor]] = [[] for _ in states]
    for number, weights in enumerate(layers):
        if number and dropout and train:
            data = torch.dropout(data, dropout, True)
        begin = [state[number * directions : (number + 1) * directions] for state in states]
        data, *last = _apply(kind, has_biases, directions, batch_sizes, data, *begin, *weights)
        for one, every in zip(last, found, strict=True):
            every.append(one)
    return data, *(one[0] if len(one) == 1 else torch.cat(one) for one in found)


def _fits(
    kind: str,
    data: torch.Tensor,
    batch_sizes: torch.Tensor,
    states: Sequence[torch.Tensor],
    layers: Sequence[Sequence[torch.Tensor]],
    directions: int,
) -> bool:
    """Whether autograd follows plain tensors of the forms that the operator takes, and nobody watches how. It follows
    all weights: what torch does not save is not saved here."""
    weights = [weight for layer in layers for weight in layer]
    given = (data, *states, *weights)
    if not torch.is_grad_enabled() or not all(weight.requires_grad for weight in weights) or _is_watched():
        return False
    if (
        len(batch_sizes) < _LEAST_STEPS
        or not all(map(_is_plain, given))
        or len({tensor.dtype for tensor in given}) > 1
        or not data.numel()
    ):
        return False
    if batch_sizes.device.type != "cpu" or batch_sizes.dtype is not torch.int64 or data.dim() != 2:
        return False
    hidden = states[0].shape[-1]
    rows, batch = int(batch_sizes.sum()), int(batch_sizes[0])
    if rows != len(data) or any(s.shape != (len(layers) * directions, batch, hidden) for s in states):
        return False
    width, gates = data.shape[1], _GATES[kind] * hidden
    for layer in layers:
        part = len(layer) // directions
        for place, weight in enumerate(layer):
            form = ((gates, width), (gates, hidden), (gates,), (gates,))[place % part]
            if weight.shape != form:
                return False
        width = hidden * directions
    return True


def _is_plain(tensor: torch.Tensor) -> bool:
    is_known = type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter
    is_dense = is_known and tensor.layout is torch.strided and tensor.device.type == "cpu"
    return is_dense and tensor.dtype in _DTYPES and not tensor.is_inference()


def _is_watched() -> bool:
    """Whether something sees operators, or what they save, or takes other derivatives."""
    return (
        saved_tensors_are_watched()
        or torch._C._len_torch_dispatch_stack() > 0
        or torch._C._len_torch_function_stack() > 0
        or torch._C._functorch.maybe_current_level() is not None
        or torch.autograd.forward_ad._current_level >= 0
        or torch.is_autocast_enabled("cpu")
        or torch.is_anomaly_enabled()
    )


class _Layer(torch.autograd.Function):
    """One layer in all its directions. Saved are its arguments and a copy of its result, which may be written to."""

    @staticmethod
    def forward(
        ctx: Any, kind: str, has_biases: bool, directions: int, sizes: torch.Tensor, *given: Any
    ) -> Any:
        count = 1 + (kind == "lstm")
        data, states, weights = given[0], given[1 : 1 + count], given[1 + count :]
        ctx.form = (kind, has_biases, directions, count)
        ctx.set_materialize_grads(False)
        results = _called(kind, has_biases, directions, sizes, data, states, weights)
        ctx.save_for_backward(sizes, *given, results[0])
        return results[0].clone(), *results[1:]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        kind, _, directions, count = ctx.form
        sizes, *given, result = ctx.saved_tensors
        if torch.is_grad_enabled() or not all(map(is_plain, grads)):
            return None, None, None, None, *_again(ctx.form, sizes, given, grads, ctx.needs_input_grad[4:])
        data, states, weights = given[0], given[1 : 1 + count], given[1 + count :]
        of_data, of_states, of_weights = None, [], []
        hidden, part = states[0].shape[-1], len(weights) // directions
        for one in range(directions):
            layer = Layer(
                kind, data, [state[one] for state in states], weights[one * part : (one + 1) * part]
            )
            rows = Rows(sizes, is_reversed=one == 1)
            columns = slice(one * hidden, (one + 1) * hidden)
            arriving = [None if grads[0] is None else grads[0][:, columns]]
            arriving += [None if grad is None else grad[one] for grad in grads[1:]]
            found = backward_of(layer, rows, result[:, columns], arriving, needs_data=ctx.needs_input_grad[4])
            of_data = found.data if of_data is None or found.data is None else of_data + found.data
            of_states.append(found.states)
            of_weights += found.weights
        stacked = [torch.stack(every) for every in zip(*of_states, strict=True)]
        return None, None, None, None, of_data, *stacked, *of_weights


_apply: Callable[..., Any] = _Layer.apply


def _called(
    kind: str,
    has_biases: bool,
    directions: int,
    sizes: torch.Tensor,
    data: torch.Tensor,
    states: Sequence[torch.Tensor],
    weights: Sequence[torch.Tensor],
) -> Any:
    """What torch's operator gives for one layer."""
    hx = tuple(states) if kind == "lstm" else states[0]
    return KINDS[kind](data, sizes, hx, list(weights), has_biases, 1, 0.0, True, directions == 2)


def _again(
    form: tuple[str, bool, int, int],
    sizes: torch.Tensor,
    given: Sequence[torch.Tensor],
    grads: Sequence[Any],
    needed: Sequence[bool],
) -> list[torch.Tensor | None]:
    """Gradients that have a history, or of gradients that stand for several, by torch's own formulas."""
    kind, has_biases, directions, count = form
    are_followed = torch.is_grad_enabled()
    with torch.enable_grad():
        states, weights = given[1 : 1 + count], given[1 + count :]
        results = _called(kind, has_biases, directions, sizes, given[0], states, weights)
    pairs = [(one, grad) for one, grad in zip(results, grads, strict=True) if grad is not None]
    wanted = [tensor for tensor, is_needed in zip(given, needed, strict=True) if is_needed]
    ends, arriving = [one for one, _ in pairs], [grad for _, grad in pairs]
    found = iter(torch.autograd.grad(ends, wanted, arriving, create_graph=are_followed, allow_unused=True))
    return [next(found) if is_needed else None for is_needed in needed]
