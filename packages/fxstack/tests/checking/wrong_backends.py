"""Backends that are wrong in one way each, and right otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule

from fx_interface.execution.undo import all_or_nothing

Run = Callable[..., Sequence[Any]]
Backend = Callable[[GraphModule, Sequence[Any]], Run]


class _Scaled(torch.autograd.Function):
    """The tensor itself; its gradient is another."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, factor: float) -> Tensor:
        ctx.factor = factor
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * ctx.factor, None


def around(results: Callable[[list[Any], Sequence[Any]], Sequence[Any]]) -> Backend:
    """A backend whose results are what ``results`` makes of eager's, given the inputs."""

    def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
        forward = graph_module.forward
        return lambda *inputs: results(list(forward(*inputs)), inputs)

    return backend


def _first(change: Callable[[Tensor], Any]) -> Backend:
    return around(lambda results, inputs: [change(results[0]), *results[1:]])


def _computing_beside(run: Callable[[Run, Sequence[Any]], Sequence[Any]]) -> Backend:
    def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
        return lambda *inputs: run(graph_module.forward, inputs)

    return backend


def _on_copies(forward: Run, inputs: Sequence[Any]) -> Sequence[Any]:
    return forward(*(x.clone() if isinstance(x, Tensor) else x for x in inputs))


def _writing(forward: Run, inputs: Sequence[Any]) -> Sequence[Any]:
    results = forward(*inputs)
    with torch.no_grad():
        inputs[0].add_(1)
    return results


def _drawing(forward: Run, inputs: Sequence[Any]) -> Sequence[Any]:
    torch.rand(1)
    return forward(*inputs)


def _raising(forward: Run, inputs: Sequence[Any]) -> Sequence[Any]:
    raise ValueError("never in eager")


def _forgiving(forward: Run, inputs: Sequence[Any]) -> Sequence[Any]:
    try:
        return forward(*inputs)
    except IndexError:
        return [torch.zeros(2, 2)]


def _with_nan(x: Tensor) -> Tensor:
    return torch.where(torch.arange(x.numel()).view(x.shape) == 0, torch.nan, x)


def _strided(x: Tensor) -> Tensor:
    return x.t().contiguous().t()


WRONG: dict[str, tuple[Backend, str]] = {
    "value": (_first(lambda x: x * 1.001), "result 0: off by"),
    "dtype": (_first(lambda x: x.double()), "torch.float64 of (2, 2) on cpu instead of torch.float32"),
    "shape": (_first(lambda x: x[None]), "of (1, 2, 2) on cpu instead of"),
    "strides": (_first(_strided), "result 0: strides: (1, 2) instead of (2, 1)"),
    "NaN": (_first(_with_nan), "not finite where eager is"),
    "no history": (_first(lambda x: x.detach()), "result 0: history: (False, True) instead of (True, False)"),
    "gradient": (_first(lambda x: _Scaled.apply(x, 1.01)), "gradient of input 0"),  # type: ignore[no-untyped-call]
    "gradient of NaN": (_first(lambda x: _Scaled.apply(x, torch.nan)), "gradient of input 0"),  # type: ignore[no-untyped-call]
    "result missing": (around(lambda results, inputs: results[:-1]), "results: 2 instead of 3"),
    "copy for a view": (
        around(lambda r, inputs: [r[0], r[1].clone(), r[2]]),
        "result 1: memory: its own instead of",
    ),
    "view for a copy": (
        around(lambda r, inputs: [r[0].view_as(r[0]), r[1], r[0]]),
        "result 2: memory: shares",
    ),
    "input as a result": (around(lambda r, inputs: [inputs[0], *r[1:]]), "result 0: memory: is input 0"),
    "write lost": (_computing_beside(_on_copies), "after the call: written: False instead of True"),
    "write of its own": (_computing_beside(_writing), "input 0 (x) after the call: written"),
    "random numbers": (_computing_beside(_drawing), "random numbers"),
    "exception": (_computing_beside(_raising), "exception: ValueError instead of nothing"),
}
"""By what is wrong: the backend, and a part of the report."""

forgiving: Backend = _computing_beside(_forgiving)
"""Raises nothing where eager raises an IndexError."""


def one_percent_off(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
    """For a script: a backend that can be imported by name."""
    return lambda *inputs: [x * 1.01 for x in graph_module.forward(*inputs)]


def without_trace(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
    """Wrong, and says that it leaves nothing behind where it raises."""
    return all_or_nothing(lambda *inputs: [x + 1 for x in graph_module.forward(*inputs)])


def changing(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
    """Changes the graph that it is given in place: eager's run must not see it."""
    for node in graph_module.graph.nodes:
        if node.target in (torch.tanh, "tanh"):
            node.op, node.target = "call_function", torch.sin
    graph_module.recompile()
    return graph_module.forward
