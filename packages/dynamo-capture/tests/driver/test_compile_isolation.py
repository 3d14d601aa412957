from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from dynamo_capture import optimize


def _run(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
    with torch.enable_grad():  # as a backend that differentiates ahead of time does
        graph_module(*(x.detach().requires_grad_() for x in example_inputs))
    return graph_module.forward


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_meets_what_the_forward_saved(reentrant: bool) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Tanh())
    compiled = optimize(_run)(model)
    x = torch.randn(3, 4, requires_grad=True)
    found = []
    for function in (model, compiled, compiled):
        result = checkpoint(function, x * 2, use_reentrant=reentrant).sum()
        found.append(torch.autograd.grad(result, x)[0] if not reentrant else _backward(result, x))
    for gradient in found[1:]:
        torch.testing.assert_close(gradient, found[0], rtol=0, atol=0)


def _backward(result: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    x.grad = None
    result.backward()
    assert x.grad is not None
    return x.grad


def test_hooks_see_what_the_program_saves_and_nothing_else() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.exp() * x.sin()).sum()

    compiled, counts = optimize(_run)(function), []
    x = torch.randn(3, requires_grad=True)
    for run in (function, compiled, compiled):
        saved: list[torch.Tensor] = []
        with saved_tensors_hooks(lambda t, saved=saved: saved.append(t) or t, lambda t: t):
            run(x)
        counts.append(len(saved))
    assert counts[1:] == counts[:1] * 2


def test_the_tensors_of_the_compiling_call_are_freed() -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        for _ in range(50):
            x = x * 1.5 + y
        return x

    y = torch.ones(3)
    alive = weakref.ref(y)
    optimize(lambda graph_module, example_inputs: graph_module.forward)(function)(torch.ones(3), y)
    del y
    gc.collect(0)
    assert alive() is None


def test_collection_goes_on_afterwards() -> None:
    compiled = optimize(_run)(lambda x: x.sin())
    compiled(torch.ones(2))
    assert gc.isenabled()
    gc.disable()
    try:
        optimize(_run)(lambda x: x.cos())(torch.ones(2))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_exceptions_met_while_tracing_hold_no_tensors() -> None:
    class Bare:
        pass

    def inner(x: torch.Tensor) -> torch.Tensor:
        raise AttributeError(str(x.shape))

    def f(x: torch.Tensor, thing: Any) -> torch.Tensor:
        try:
            thing.missing
        except AttributeError:
            x = x + 1
        return inner(x)

    compiled = optimize(lambda graph_module, example_inputs: graph_module.forward)(f)
    gc.disable()
    try:
        x = torch.ones(3)
        alive = weakref.ref(x)
        with pytest.raises(AttributeError):
            compiled(x, Bare())
        del x
        assert alive() is None
    finally:
        gc.enable()


def test_backwards_of_compiling_are_not_the_programs() -> None:
    """Torch's compiled autograd gets the program's backwards, and none that a backend runs."""
    setter = torch._C._dynamo.compiled_autograd.set_autograd_compiler  # type: ignore[attr-defined]
    asked = []

    def refuse() -> Any:
        asked.append(1)
        raise RuntimeError("asked")

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        x = torch.ones(3, requires_grad=True)
        (x * 2).sum().backward()
        return graph_module.forward

    compiled = optimize(backend)(lambda x: x.sin() + 1)
    before = setter(refuse, False)
    try:
        compiled(torch.ones(3))
        assert not asked
        now, _ = setter(refuse, False)
        assert now is refuse, "put back"
    finally:
        setter(*before)
