"""``fxstack.compile(optimizer.step)``: one graph, the same parameters and state as eager, no recompilation later."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import lr_scheduler

import fxstack
from fxstack.backends import backend

STEPS = 6
OPTIMIZERS: dict[str, tuple[type[torch.optim.Optimizer], dict[str, Any]]] = {
    "SGD": (torch.optim.SGD, {"lr": 0.1}),
    "SGD-momentum": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
    "SGD-nesterov": (torch.optim.SGD, {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    "Adam": (torch.optim.Adam, {"lr": 0.01}),
    "Adam-amsgrad": (torch.optim.Adam, {"lr": 0.01, "amsgrad": True}),
    "AdamW": (torch.optim.AdamW, {"lr": 0.01}),
    "Adagrad": (torch.optim.Adagrad, {"lr": 0.1}),
    "RMSprop": (torch.optim.RMSprop, {"lr": 0.01}),
    "RMSprop-centered": (torch.optim.RMSprop, {"lr": 0.01, "momentum": 0.9, "centered": True}),
    "Adamax": (torch.optim.Adamax, {"lr": 0.01}),
    "Adadelta": (torch.optim.Adadelta, {"lr": 0.5}),
    "NAdam": (torch.optim.NAdam, {"lr": 0.01}),
    "Rprop": (torch.optim.Rprop, {"lr": 0.01}),
}


class Counted:
    """A backend that counts the graphs it is given."""

    def __init__(self, name: str) -> None:
        self.graphs = 0
        self._compile = backend(name)

    def __call__(self, graph_module: Any, example_inputs: Sequence[Any]) -> Any:
        self.graphs += 1
        return self._compile(graph_module, example_inputs)


Step = Callable[[], Any]
Made = tuple[Step, torch.optim.Optimizer, Any]
"""What is called at each step, the optimizer, and a scheduler or None."""


def _train(make: Callable[[nn.Module], Made], counted: Counted | None) -> tuple[list[Tensor], list[int]]:
    """Parameters and state after each of some steps, and how many graphs there were by then."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 2)).double()
    step, optimizer, scheduler = make(model)
    if counted is not None:
        step = fxstack.compile(step, backend=counted, fullgraph=True)
    seen: list[Tensor] = []
    graphs: list[int] = []
    for number in range(STEPS):
        torch.manual_seed(number)
        model.zero_grad(set_to_none=number % 2 == 0)
        model(torch.randn(3, 4).double()).square().sum().backward()
        step()
        if scheduler is not None:
            scheduler.step()
        state = [value for entry in optimizer.state.values() for value in entry.values()]
        seen += [p.detach().clone() for p in model.parameters()]
        seen += [value.clone() for value in state if isinstance(value, Tensor)]
        graphs.append(0 if counted is None else counted.graphs)
    return seen, graphs


def _check(make: Callable[[nn.Module], Made], name: str = "aot_eager") -> None:
    expected, _ = _train(make, None)
    found, graphs = _train(make, Counted(name))
    assert len(found) == len(expected)
    for one, other in zip(expected, found, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-7, atol=1e-9)  # some state is float32
    assert graphs[0] == 1
    assert graphs[-1] == graphs[2] <= 3, graphs


@pytest.mark.parametrize("foreach", [False, True], ids=["loop", "foreach"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_rate_changes_at_every_step(name: str, foreach: bool) -> None:
    cls, options = OPTIMIZERS[name]

    def make(model: nn.Module) -> Made:
        optimizer = cls(model.parameters(), foreach=foreach, **options)  # type: ignore[call-arg]
        return optimizer.step, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.9)

    _check(make)


@pytest.mark.parametrize("foreach", [False, True], ids=["loop", "foreach"])
@pytest.mark.parametrize("name", ["SGD-nesterov", "AdamW", "Adagrad", "RMSprop"])
def test_with_generated_code(name: str, foreach: bool) -> None:
    cls, options = OPTIMIZERS[name]

    def make(model: nn.Module) -> Made:
        optimizer = cls(model.parameters(), foreach=foreach, **options)  # type: ignore[call-arg]
        return optimizer.step, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.9)

    _check(make, "inductor")


def test_a_rate_that_is_a_tensor() -> None:
    def make(model: nn.Module) -> Made:
        optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1), momentum=0.9)  # type: ignore[arg-type]
        return optimizer.step, optimizer, lr_scheduler.ExponentialLR(optimizer, 0.9)

    _check(make)


def test_groups_of_parameters() -> None:
    def make(model: nn.Module) -> Made:
        first, _, last = model.children()
        groups = [{"params": first.parameters(), "lr": 0.1}, {"params": last.parameters()}]
        optimizer = torch.optim.AdamW(groups, lr=0.01)
        return optimizer.step, optimizer, lr_scheduler.CosineAnnealingLR(optimizer, 10)

    _check(make)


@pytest.mark.parametrize("set_to_none", [False, True])
def test_clipping_and_zeroing_around_the_step(set_to_none: bool) -> None:
    def make(model: nn.Module) -> Made:
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

        def step() -> None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=set_to_none)
            assert all((p.grad is None) == set_to_none for p in model.parameters())

        return step, optimizer, None

    _check(make)


def test_a_gradient_scaler_breaks_and_agrees() -> None:
    def run(compiled: bool) -> list[Tensor]:
        torch.manual_seed(0)
        model = nn.Linear(4, 2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=4.0)

        def step() -> None:
            scaler.step(optimizer)
            scaler.update()

        if compiled:
            step = fxstack.compile(step, backend="aot_eager")
        for number in range(STEPS):
            optimizer.zero_grad()
            data = torch.full((3, 4), float("inf") if number == 2 else 1.0)  # that step is skipped
            scaler.scale(model(data).sum()).backward()
            step()
        return [*(p.detach() for p in model.parameters()), torch.tensor(scaler.get_scale())]

    torch.testing.assert_close(run(True), run(False))
