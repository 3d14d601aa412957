"""``torch.autograd.grad`` in the backward of a program's function: adjoints of ODE solvers, recomputation by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import fxstack

BACKENDS = pytest.mark.parametrize("backend", ["eager", "aot_eager", "inductor"])


class Field(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))
        self.unused = nn.Parameter(torch.ones(2))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(y) * t


class Adjoint(torch.autograd.Function):
    """Euler's steps; the backward takes the steps back, with gradients of each."""

    @staticmethod
    def forward(
        ctx: Any, field: Any, y: torch.Tensor, times: torch.Tensor, *params: torch.Tensor
    ) -> torch.Tensor:
        with torch.no_grad():
            for i in range(len(times) - 1):
                y = y + field(times[i], y) * (times[i + 1] - times[i])
        ctx.field = field
        ctx.save_for_backward(times, y, *params)
        return y

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        times, y, *params = ctx.saved_tensors
        a = gradients[0]
        found = [torch.zeros_like(p) for p in params]
        for i in range(len(times) - 1, 0, -1):
            step = times[i] - times[i - 1]
            with torch.enable_grad():
                t, y = times[i].detach().requires_grad_(True), y.detach().requires_grad_(True)
                slope = ctx.field(t, y)
                _, to_y, *to_params = torch.autograd.grad(slope, (t, y, *params), a, allow_unused=True)
            found = [f if g is None else f + g * step for f, g in zip(found, to_params, strict=True)]
            y, a = y.detach() - step * slope.detach(), a + step * to_y
        return None, a, None, *found


def _gradients(program: Any, inputs: list[torch.Tensor], create_graph: bool = False) -> Any:
    result = program(*inputs)
    wanted = [x for x in inputs if x.requires_grad]
    return result, torch.autograd.grad(result.sum(), wanted, allow_unused=True, create_graph=create_graph)


@BACKENDS
def test_an_adjoint_is_one_graph(backend: str) -> None:
    field = Field()

    def program(y: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        return Adjoint.apply(field, y.sin(), times, *field.parameters()).square()

    fast = fxstack.compile(program, backend=backend, fullgraph=True)
    for size in (2, 2, 4):
        y, times = torch.randn(size, 3, requires_grad=True), torch.linspace(0.1, 1, 4)
        for p in field.parameters():
            p.grad = None
        program(y, times).sum().backward()
        expected = [y.grad, *[p.grad for p in field.parameters()]]
        y.grad = None
        for p in field.parameters():
            p.grad = None
        fast(y, times).sum().backward()
        for one, other in zip(expected, [y.grad, *[p.grad for p in field.parameters()]], strict=True):
            torch.testing.assert_close(one, other)


class Again(torch.autograd.Function):
    """Runs its forward again in the backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return (x * w).sin()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            own = x.detach().requires_grad_(True), w.detach().requires_grad_(True)
            y = (own[0] * own[1]).sin()
            return torch.autograd.grad(y, own, gradients[0])


class OfSaved(torch.autograd.Function):
    """Takes gradients of tensors that it was given, which may have been computed before."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, w)
        return x * w.exp()

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        x, w = ctx.saved_tensors
        with torch.enable_grad():
            return torch.autograd.grad(x * w.exp(), (x, w), gradients[0])


def of_leaves(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return OfSaved.apply(x, w)


def of_computed_ones(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return OfSaved.apply(x * 2, w + x)


def of_its_own(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return Again.apply(x.exp(), w) * Again.apply(w, x)


@BACKENDS
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("program", [of_leaves, of_computed_ones, of_its_own], ids=lambda p: p.__name__)
def test_gradients_are_eagers(program: Any, create_graph: bool, backend: str) -> None:
    fast = fxstack.compile(program, backend=backend)
    for size in (3, 4, 5):
        inputs = [torch.randn(size, requires_grad=True) for _ in range(2)]
        expected, actual = _gradients(program, inputs, create_graph), _gradients(fast, inputs, create_graph)
        torch.testing.assert_close(expected, actual)
        for one, other in zip(expected[1], actual[1], strict=True):
            assert one.requires_grad == other.requires_grad


@BACKENDS
def test_hooks_of_a_parameter_are_called(backend: str) -> None:
    seen: list[torch.Tensor] = []
    w = torch.randn(3, requires_grad=True)
    w.register_hook(lambda gradient: seen.append(gradient.clone()))
    fast = fxstack.compile(of_leaves, backend=backend)
    x = torch.randn(3, requires_grad=True)
    runs = []
    for run in (of_leaves, fast):
        seen.clear()
        gradients = torch.autograd.grad(run(x, w).sum(), (x, w))
        runs.append((gradients, list(seen)))
    torch.testing.assert_close(*runs)


class OffAtFirst(torch.autograd.Function):
    """Computes a part while gradients are off, as they are where a backward begins."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        own = ctx.saved_tensors[0].detach().requires_grad_(True)
        part = own.exp()
        with torch.enable_grad():
            found = torch.autograd.grad((part * own).sum(), own)[0]
        return gradients[0] * found


@BACKENDS
def test_what_is_computed_without_gradients_leads_nowhere(backend: str) -> None:
    fast = fxstack.compile(lambda x: OffAtFirst.apply(x).sin(), backend=backend)
    x = torch.randn(3, requires_grad=True)
    expected = _gradients(lambda x: OffAtFirst.apply(x).sin(), [x])
    torch.testing.assert_close(_gradients(fast, [x]), expected)


@BACKENDS
def test_a_gradient_penalty_of_a_module_that_is_made_inside(backend: str) -> None:
    """The graph ends where its parameters become leaves: what eager makes there is an input of the next one."""

    def program(x: torch.Tensor) -> Any:
        net = nn.Linear(4, 4)
        total = net(x).tanh().sum()
        print(end="")
        (slope,) = torch.autograd.grad(total, x, create_graph=True)
        ((slope.norm() - 1) ** 2).backward()
        return net.weight.grad

    def found(function: Any) -> Any:
        torch.manual_seed(0)
        x = torch.randn(3, 4, requires_grad=True)
        return function(x), x.grad

    compiled = fxstack.compile(program, backend=backend)
    for _ in range(2):
        torch.testing.assert_close(found(compiled), found(program))


class Stopping(torch.autograd.Function):
    """x * w, of which only w gets a gradient."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * w

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor]:
        (x,) = ctx.saved_tensors
        return None, grad * x


OPERATORS = {
    "attention": lambda x: nn.functional.scaled_dot_product_attention(x * 2, x, x),
    "masked": lambda x: nn.functional.scaled_dot_product_attention(x, x, x, torch.eye(4, dtype=torch.bool)),
    "lstm": nn.LSTM(8, 8, batch_first=True),
    "layer_norm": lambda x: nn.functional.layer_norm(x, (8,)),
    "linear": nn.Linear(8, 8),
}


@BACKENDS
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_that_no_gradient_reaches(backend: str, name: str) -> None:
    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = OPERATORS[name](x)
        return Stopping.apply(y[0] if isinstance(y, tuple) else y, w).sum()

    found = []
    for run in (program, fxstack.compile(program, backend=backend)):
        shape = (3, 4, 8) if name == "lstm" else (1, 2, 4, 8)
        x = torch.linspace(-1, 1, 2 * 4 * 8 if name != "lstm" else 96).reshape(shape).requires_grad_()
        w = torch.full(shape, 0.5, requires_grad=True)
        run(x, w).backward()
        found.append((x.grad, w.grad))
    assert found[0][0] is None
    assert found[1][0] is None
    torch.testing.assert_close(found[1][1], found[0][1])
