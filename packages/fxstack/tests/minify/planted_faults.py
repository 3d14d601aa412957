"""Backends that are wrong in one way each: what a defect of the stack would do."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.fx import GraphModule, Interpreter, Node

Run = Callable[..., Sequence[Any]]


def _replacing(name: str, other: Callable[..., Any]) -> Callable[..., Run]:
    """A backend that computes ``other`` where a graph calls the function or method of this name."""

    class Faulty(Interpreter):
        def run_node(self, node: Node) -> Any:
            if getattr(node.target, "__name__", node.target) != name:
                return super().run_node(node)
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            return other(*args, **kwargs)

    def backend(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
        return Faulty(graph_module).run

    return backend


class _WrongExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad * ctx.saved_tensors[0] * 1.01


def crashing_pointwise(graph_module: GraphModule, example_inputs: Sequence[Any]) -> Run:
    if any("softplus" in node.name for node in graph_module.graph.nodes):
        raise RuntimeError("IND999: no loop for this operator")
    return graph_module.forward


def _die(*args: Any, **kwargs: Any) -> Any:
    os.kill(os.getpid(), signal.SIGSEGV)


def _hang(*args: Any, **kwargs: Any) -> Any:
    while True:
        time.sleep(0.1)


def _draw_twice(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    torch.rand(1)
    return torch.nn.functional.dropout(x, p, training)


_ROWS: list[int] = []


def _arange_of_the_first_size(*args: Any, **kwargs: Any) -> Tensor:
    """Positions, as if there never were more than at first."""
    made = torch.arange(*args, **kwargs)
    _ROWS.append(made.shape[0])
    return made.clamp(max=_ROWS[0] - 1)


wrong_pointwise = _replacing("erf", lambda x: torch.tanh(x))
wrong_reduction = _replacing("var", lambda x, *args, **kwargs: torch.var(x, *args, **kwargs) * 1.001)
dying_scan = _replacing("cumsum", _die)
copied_view = _replacing("unfold", lambda x, *args: x.unfold(*args).clone())
wrong_view = _replacing("flip", lambda x, dims: x.clone())
lost_write = _replacing("add_", lambda x, *args, **kwargs: torch.add(x, *args, **kwargs))
doubled_write = _replacing("mul_", lambda x, *args: x.mul_(*args).mul_(*args))
drawn_twice = _replacing("dropout", _draw_twice)
fixed_size = _replacing("arange", _arange_of_the_first_size)
wrong_gradient = _replacing("exp", lambda x: _WrongExp.apply(x))
endless = _replacing("topk", _hang)
slow = _replacing("sort", lambda x, *args: (time.sleep(0.05), torch.sort(x, *args))[1])
