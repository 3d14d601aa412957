"""Gradients taken inside of the program are part of its one graph; tensors may join autograd before the graph runs."""

import pytest
import torch
from torch import nn

from dynamo_capture import CaptureError, optimize, run_graph

torch.manual_seed(0)
NET = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 1)).double()


def _residual_of_an_equation(x):
    """As physics-informed networks are trained: two derivatives with respect to the input."""
    x.requires_grad_(True)
    u = NET(x)
    first = torch.autograd.grad(u, x, grad_outputs=torch.ones_like(u), create_graph=True)[0]
    second = torch.autograd.grad(first[:, 0].sum(), x, create_graph=True)[0][:, 0]
    return (second - u.squeeze(-1)).pow(2).mean()


def _penalty_on_gradients(x):
    between = (x * 0.3 + 0.7).requires_grad_(True)
    judged = NET(between)
    (found,) = torch.autograd.grad([judged], [between], [torch.ones_like(judged)], create_graph=True)
    return (found.norm(2, dim=1) - 1).square().mean() + judged.mean()


def _steps_inside(x):
    weights = dict(NET.named_parameters())
    for _ in range(2):
        loss = torch.func.functional_call(NET, weights, (x,)).pow(2).sum()
        found = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
        weights = {name: w - 0.1 * g for (name, w), g in zip(weights.items(), found, strict=True)}
    return torch.func.functional_call(NET, weights, (x,)).pow(2).mean()


def _forces(x):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        energy = NET(x).sum()
        force = -torch.autograd.grad(energy, x)[0]
    return energy.detach(), force


def _unused(x):
    lone = torch.ones(2, dtype=x.dtype, requires_grad=True)
    found = torch.autograd.grad(NET(x).sum(), [lone, NET[0].bias], allow_unused=True)
    return found[0] is None, found[1]


def _product_with_the_hessian(x):
    w = NET[0].weight
    (slope,) = torch.autograd.grad(NET(x).pow(2).sum(), w, create_graph=True)
    return torch.autograd.grad((slope * slope.detach()).sum(), w)[0]


def _without_history(x):
    with torch.no_grad():
        y = x * 2
    loss = (NET(x) * y.sum()).sum()
    return torch.autograd.grad(loss, NET[2].weight)[0]


def _outcome(function, x):
    NET.zero_grad()
    results = function(x)
    results = results if isinstance(results, tuple) else (results,)
    if isinstance(results[0], torch.Tensor) and results[0].requires_grad:
        results[0].backward()
    state = [x.requires_grad, x.grad, *(p.grad for p in NET.parameters())]
    return [None if part is None else part.clone() if isinstance(part, torch.Tensor) else part
            for part in (*results, *state)]  # fmt: skip


@pytest.mark.parametrize(
    "program",
    [
        _residual_of_an_equation,
        _penalty_on_gradients,
        _steps_inside,
        _forces,
        _unused,
        _product_with_the_hessian,
        _without_history,
    ],
)
def test_one_graph(program):
    compiled = optimize(run_graph, fullgraph=True)(program)
    for _ in range(2):
        x = torch.randn(4, 3, dtype=torch.float64)
        expected, actual = _outcome(program, x.clone()), _outcome(compiled, x.clone())
        torch.testing.assert_close(actual, expected, rtol=0, atol=0)


def test_what_torch_refuses_it_says_itself():
    def program(x):
        lone = torch.ones(2, requires_grad=True)
        return torch.autograd.grad(x.sum() * 2, lone)

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="appears to not have been used"):
        optimize(run_graph)(program)(x)
    with pytest.raises(CaptureError, match="CAP203"):
        optimize(run_graph, fullgraph=True)(program)(x)


def test_a_history_outside_of_the_graph_is_left_to_torch():
    def program(hidden, x):
        return torch.autograd.grad((hidden * 3).sum(), x)[0] + 1

    x = torch.ones(3, requires_grad=True)
    found = optimize(run_graph)(program)(x * x, x)
    assert torch.equal(found, torch.full((3,), 7.0))


def test_a_hook_sees_the_gradient():
    seen = []
    weight = nn.Parameter(torch.ones(3))

    def program(x):
        return torch.autograd.grad((x * weight).sum(), weight)[0]

    compiled = optimize(run_graph)(program)
    assert torch.equal(compiled(torch.ones(3)), torch.ones(3))
    weight.register_hook(lambda grad: seen.append(grad) or grad * 2)
    assert torch.equal(compiled(torch.ones(3)), torch.full((3,), 2.0))
    assert len(seen) == 1


@pytest.mark.parametrize("write", ["method", "attribute"])
def test_an_input_joins_autograd(write):
    def program(x):
        if write == "method":
            x.requires_grad_()
        else:
            x.requires_grad = True
        return (x * x).sum(), x.requires_grad, x.is_leaf

    x = torch.arange(3.0)
    loss, *state = optimize(run_graph, fullgraph=True)(program)(x)
    loss.backward()
    assert state == [True, True]
    assert torch.equal(x.grad, 2 * torch.arange(3.0))


def test_an_input_leaves_autograd_though_nothing_uses_it():
    def program(x):
        x.requires_grad_(False)

    x = torch.ones(2, requires_grad=True)
    optimize(run_graph, fullgraph=True)(program)(x)
    assert not x.requires_grad


def test_what_was_computed_before_stays_without_history():
    def program(x):
        before = x * 2
        x.requires_grad_()
        return (before * x).sum()

    x = torch.arange(3.0)
    optimize(run_graph)(program)(x).backward()
    assert torch.equal(x.grad, 2 * torch.arange(3.0))


def test_a_tensor_that_retains_its_gradient():
    def program(x):
        (found,) = torch.autograd.grad(x.sum(), x, create_graph=True)
        return found * 2

    x = torch.arange(3.0, requires_grad=True) * 1
    run = optimize(run_graph, fullgraph=True)(program)
    run(x)
    x.retain_grad()
    with pytest.raises(CaptureError, match="CAP203"):
        run(x)
    optimize(run_graph)(program)(x)
    assert torch.equal(x.grad, torch.ones(3))


def test_a_view_that_autograd_refuses():
    """The base of a view that ``unbind`` gave was written to since: asking for the view's history raises in eager."""

    base = torch.ones(2, 3, requires_grad=True) * 1
    one, _ = base.unbind()
    base.mul_(2)
    assert torch.equal(optimize(run_graph)(lambda x: x.detach() + 1)(one), torch.full((3,), 3.0))
