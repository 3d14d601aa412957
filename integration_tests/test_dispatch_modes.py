"""Modes of ``__torch_dispatch__`` around compiled functions and their backwards see the operators that eager runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import fxstack
from fx_interface import INTERFACE_VERSION

W = torch.arange(9.0).reshape(3, 3) / 10


class Log(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Ignoring(Log):
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


class Counting:
    interface_version = INTERFACE_VERSION

    def __init__(self) -> None:
        self.backend = fxstack.backend("inductor")
        self.graphs: list[Any] = []

    def __call__(self, graph_module: Any, example_inputs: Any) -> Any:
        self.graphs.append(graph_module)
        return self.backend(graph_module, example_inputs)


def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return ((x @ w).sin() + torch.ones(3)).sum()


def forward_only(function: Callable[..., Any], x: torch.Tensor, w: torch.Tensor, mode: Any) -> None:
    with mode:
        result = function(x, w)
    result.backward()


def backward_only(function: Callable[..., Any], x: torch.Tensor, w: torch.Tensor, mode: Any) -> None:
    result = function(x, w)
    with mode:
        result.backward()


def both(function: Callable[..., Any], x: torch.Tensor, w: torch.Tensor, mode: Any) -> None:
    with mode:
        function(x, w).backward()


def run(use: Callable[..., None], function: Any, mode: Callable[[], Any]) -> list[Any]:
    found = []
    for size in (2, 2, 4):
        w, entered = W.clone().requires_grad_(), mode()
        use(function, torch.ones(size, 3), w, entered)
        found.append((w.grad, entered))
    return found


@pytest.mark.parametrize(
    ("use", "graphs"), [(forward_only, 0), (backward_only, 2), (both, 0)], ids=["forward", "backward", "both"]
)
def test_a_mode_sees_what_eager_runs(use: Callable[..., None], graphs: int) -> None:
    counting = Counting()
    compiled = fxstack.compile(layer, backend=counting)
    for (g, one), (h, other) in zip(run(use, layer, Log), run(use, compiled, Log), strict=True):
        assert torch.equal(g, h)
        assert one.seen == other.seen
    assert len(counting.graphs) == graphs


def test_operations_are_counted_as_in_eager() -> None:
    def counter() -> Any:
        return FlopCounterMode(display=False)

    pairs = zip(run(both, layer, counter), run(both, fxstack.compile(layer), counter), strict=True)
    assert all(one.get_total_flops() == other.get_total_flops() > 0 for (_, one), (_, other) in pairs)


def test_a_mode_that_ignores_compiled_code_sees_what_is_between() -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = layer(x, w)
        fxstack.graph_break()
        return y * 2

    counting = Counting()
    compiled = fxstack.compile(program, backend=counting)
    for (g, _), (h, mode) in zip(run(both, program, Log), run(both, compiled, Ignoring), strict=True):
        assert torch.allclose(g, h)
        assert not [name for name in mode.seen if "sin" in name or "mm" in name]
    assert len(counting.graphs) == 3  # the first part for one size and for all
    before = len(counting.graphs)
    run(both, compiled, Ignoring)
    assert len(counting.graphs) == before


def test_beside_one_that_does_not_all_runs_as_written() -> None:
    compiled = fxstack.compile(layer)
    with Log() as log, Ignoring() as ignoring:
        compiled(torch.ones(2, 3), W)
    assert log.seen == ignoring.seen
    assert "aten.sin.default" in log.seen


def test_an_operator_of_which_nothing_is_known_does_not_run_again() -> None:
    calls = []

    @torch.library.custom_op("dispatch_modes::noting", mutates_args=())
    def noting(x: torch.Tensor) -> torch.Tensor:
        calls.append(x.shape)
        return x * 2

    noting.register_fake(torch.empty_like)
    noting.register_autograd(lambda ctx, gradient: gradient * 2)
    w = W.clone().requires_grad_()
    result = fxstack.compile(lambda w: noting(w).sum(), fullgraph=True)(w)
    with Log():
        result.backward()
    assert w.grad is not None
    assert torch.equal(w.grad, torch.full((3, 3), 2.0))
    assert len(calls) == 1
