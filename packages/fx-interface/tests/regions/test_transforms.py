"""The transforms, run as they are, agree with ``torch.func``."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import func
from torch.fx import Graph, GraphModule

from fx_interface.errors import InvalidGraphError
from fx_interface.graph import call_block
from fx_interface.regions import gradient, mapped, moving, pushed
from fx_interface.signature import DIALECT_KEY
from fx_interface.tensor_spec import SPEC_KEY, spec_of
from fx_interface.verifier import verify

X = torch.linspace(-1, 1, 6).reshape(2, 3)
W = torch.linspace(0, 1, 3).requires_grad_()


def body(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return (x * y * W).sin().sum(), x + 1


def plain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return body(x, y)[0]


@pytest.mark.parametrize("trained", [True, False])
def test_gradient(trained: bool) -> None:
    x = X.clone().requires_grad_(trained)
    found, value, more = gradient(body, x, X, wrt=1)
    wanted, expected = func.grad_and_value(plain)(x, X)
    assert torch.equal(found, wanted)
    assert torch.equal(value, expected)
    assert torch.equal(more, x + 1)
    assert (found.requires_grad, more.requires_grad) == (wanted.requires_grad, trained)
    again = torch.autograd.grad(found.sum(), W, retain_graph=True)
    assert torch.allclose(again[0], torch.autograd.grad(wanted.sum(), W)[0])


def test_a_gradient_of_nothing_is_zero() -> None:
    found, _ = gradient(lambda x, y: (y.sum(),), X, X, wrt=1)
    assert torch.equal(found, torch.zeros_like(X))


def test_seeds() -> None:
    found, value = gradient(lambda x: (x.sin(),), X, X, wrt=1, seeds=1)
    assert torch.allclose(found, X.cos() * X)
    assert torch.equal(value, X.sin())


@pytest.mark.parametrize("trained", [True, False])
def test_pushed(trained: bool) -> None:
    x = X.clone().requires_grad_(trained)
    change, none, value, more, third = pushed(
        lambda a, b: (plain(a, b), b, a + 1), x, x * 2, X, wrt=1, results=2
    )
    expected, wanted = func.jvp(lambda a: plain(a, X), (x,), (x * 2,))
    assert torch.equal(change, wanted)
    assert torch.equal(none, torch.zeros_like(X))
    assert torch.equal(value, expected)
    assert torch.equal(more, X)
    assert torch.equal(third, x + 1)
    again = torch.autograd.grad(change, W, retain_graph=True)
    assert torch.allclose(again[0], torch.autograd.grad(wanted, W)[0])


def test_moving_tells_zeros_from_no_change() -> None:
    def body(a, b):
        return a * b, a.detach(), a > 0, b * 2, a * 0

    x = torch.randn(3)
    assert moving(body, x, torch.ones(3), x + 1, wrt=1, results=5) == (True, False, False, False, True)
    assert moving(body, x, torch.ones(3), x + 1, wrt=1, results=2) == (True, False)


def test_pushed_nests() -> None:
    def slope(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return pushed(lambda b: (b**3,), a, torch.ones_like(a), wrt=1, results=1)

    second, *_ = pushed(slope, X, torch.ones_like(X), wrt=1, results=1)
    assert torch.allclose(second, 6 * X)
    _, hessian = pushed(lambda a: gradient(body, a, X, wrt=1), X, X, wrt=1, results=2)[:2]
    assert hessian.shape == ()


def test_mapped_and_nested() -> None:
    rows, same = mapped(lambda r, y: (r * y, y), X, W, in_dims=(0,), out_dims=(1, None))
    assert torch.equal(rows, (X * W).T)
    assert same is W
    found, _, _ = mapped(lambda r, y: gradient(body, r, y, wrt=1), X, X[0], in_dims=(0,), out_dims=(0, 0, 0))
    assert torch.allclose(found, func.vmap(func.grad(plain), (0, None))(X, X[0]))


def test_levels_are_left_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError):
        mapped(lambda r: gradient(lambda x: (1 / 0,), r, wrt=1), X, in_dims=(0,), out_dims=(0, 0))
    with pytest.raises(ZeroDivisionError):
        pushed(lambda x: (1 / 0,), X, X, wrt=1, results=1)
    assert torch._C._functorch.maybe_current_level() is None
    assert torch.autograd.forward_ad._current_level == -1


@pytest.mark.parametrize(
    ("target", "options"),
    [
        *((gradient, options) for options in ({"wrt": 2}, {"wrt": 0}, {"wrt": 1, "seeds": 1}, {})),
        *((pushed, options) for options in ({"wrt": 1, "results": 1}, {"wrt": 0, "results": 1}, {"wrt": 1})),
    ],
)
def test_a_derivative_that_does_not_fit_is_invalid(target: Any, options: dict[str, int]) -> None:
    inner = Graph()
    place = inner.placeholder("x")
    place.meta[SPEC_KEY] = spec_of(X)
    inner.output((place,))
    part = GraphModule(torch.nn.Module(), inner)
    part.meta[DIALECT_KEY] = "torch"
    graph = Graph()
    x = graph.placeholder("x")
    x.meta[SPEC_KEY] = spec_of(X)
    held = graph.get_attr("part")
    call = graph.call_function(target, (held, x), options)
    call.meta[SPEC_KEY] = (spec_of(X), spec_of(X))
    graph.output((call,))
    root = torch.nn.Module()
    root.add_module("part", part)
    module = GraphModule(root, graph)
    module.meta[DIALECT_KEY] = "torch"
    with pytest.raises(InvalidGraphError, match="FXI113"):
        verify(module)


def _failing() -> GraphModule:
    graph = Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.matmul, (x, x)),))
    return GraphModule({}, graph)


def test_a_sub_graph_that_fails_prints_nothing_and_calls_no_hooks(capsys: Any) -> None:
    seen: list[Any] = []
    handle = torch.nn.modules.module.register_module_forward_pre_hook(lambda *given: seen.append(given))
    try:
        for call in (
            lambda: gradient(_failing(), X, wrt=1),
            lambda: pushed(_failing(), X, X, wrt=1, results=1),
            lambda: mapped(_failing(), X[None], in_dims=(0,), out_dims=(0,)),
            lambda: call_block(_failing(), X),
        ):
            with pytest.raises(RuntimeError, match=r"shapes cannot be multiplied|size"):
                call()
    finally:
        handle.remove()
    assert seen == []
    assert capsys.readouterr().err == ""
