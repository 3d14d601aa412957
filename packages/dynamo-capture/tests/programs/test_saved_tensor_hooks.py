"""Hooks on saved tensors are called for operations whose results nothing uses, and only they keep those alive."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from dynamo_capture import optimize

_SAVES_NOTHING = hasattr(torch.utils.checkpoint, "_NoopSaveInputs")
"""Whether torch's checkpoints (before 2.13) save an empty tensor of their own beside what they are given."""


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:  # type: ignore[override]
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient


def product(x: Tensor, y: Tensor) -> Tensor:
    _ = x * y
    return x + 1


def chain(x: Tensor, y: Tensor) -> Tensor:
    (x.exp() * y.sum()).split(1)
    return x + 1


def last(x: Tensor, y: Tensor) -> None:
    x.sin()


def of_inputs_without_history(x: Tensor, y: Tensor) -> Tensor:
    _ = y * y
    with torch.no_grad():
        _ = x * x
    return x + 1


def overwritten(x: Tensor, y: Tensor) -> Tensor:
    z = x * 2
    z = x.sin() if z.dim() == 1 else z
    return x + 1


def custom(x: Tensor, y: Tensor) -> Tensor:
    Cubed.apply(x)
    return x + 1


def run_again(x: Tensor, y: Tensor) -> Tensor:
    checkpoint(torch.sin, x * 3, use_reentrant=False)
    return x + 1


def run_again_without_history(x: Tensor, y: Tensor) -> Tensor:
    checkpoint(lambda a, b, c: b.sin() * a, y, y * 2, x, use_reentrant=False)
    return x + 1


def differentiated(x: Tensor, y: Tensor) -> Tensor:
    torch.autograd.grad((x * x).sum(), x)
    return x + 1


def mapped(x: Tensor, y: Tensor) -> Tensor:
    torch.vmap(torch.sin)(x)
    return x + 1


FUNCTIONS = (
    product,
    chain,
    last,
    of_inputs_without_history,
    overwritten,
    custom,
    run_again,
    run_again_without_history,
    differentiated,
    mapped,
)


def inside(function: Any) -> Any:
    def entered(x: Tensor, y: Tensor, hooks: Any) -> Any:
        doubled = x * 2
        with hooks:
            result = function(x, y)
        return result, doubled * x

    return entered


def around(function: Any) -> Any:
    def called(x: Tensor, y: Tensor, hooks: Any) -> Any:
        with hooks:
            return function(x, y)

    return called


def seen(program: Any, watched: bool) -> list[Any]:
    log: list[Any] = []

    def pack(tensor: Tensor) -> Tensor:
        if tensor.numel() or not _SAVES_NOTHING:
            log.append(("pack", tensor.detach().clone().tolist()))
        return tensor

    def unpack(tensor: Tensor) -> Tensor:
        log.append("unpack")
        return tensor

    x = torch.tensor([0.5, -2.0], requires_grad=True)
    program(x, torch.tensor([3.0, 4.0]), saved_tensors_hooks(pack, unpack) if watched else nullcontext())
    return log


@pytest.mark.parametrize("entered", [False, True], ids=["around", "inside"])
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_what_nothing_uses_is_saved_where_hooks_watch(function: Any, first: bool, entered: bool) -> None:
    compiled = optimize("eager")(inside(function)) if entered else around(optimize("eager")(function))
    plain = inside(function) if entered else around(function)
    for watched in (first, not first, first, not first):
        assert seen(compiled, watched) == seen(plain, watched)


def test_without_hooks_what_nothing_uses_is_not_computed() -> None:
    graphs = []

    def backend(module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append([node.target for node in module.graph.nodes if node.op.startswith("call")])
        return module.forward

    x, y = torch.ones(2, requires_grad=True), torch.ones(2)
    compiled = optimize(backend)(product)
    compiled(x, y)
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        compiled(x, y)
        compiled(x, y)
    compiled(x, y)
    assert [len(calls) for calls in graphs] == [1, 2]


def test_a_graph_without_unused_operations_is_used_with_hooks_too() -> None:
    graphs = []

    def backend(module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(module)
        return module.forward

    def function(x: Tensor) -> Tensor:
        first, _ = (x * x).split(1)
        return first

    compiled, x = optimize(backend)(function), torch.ones(2, requires_grad=True)
    compiled(x)
    with saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        compiled(x)
    assert len(graphs) == 1


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        x, y = ctx.saved_tensors
        return gradient * y, gradient * x


def test_the_order_in_which_a_function_saves_is_that_in_which_hooks_see_it() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        return Product.apply(x + y, x) + Product.apply(y, x)

    found = []
    for run in (function, optimize("eager")(function)):
        log: list[Any] = []
        x, y = torch.tensor([1.0], requires_grad=True), torch.tensor([2.0], requires_grad=True)
        with saved_tensors_hooks(
            lambda t, log=log: log.append(t.tolist()) or t, lambda t, log=log: log.append(t.tolist()) or t
        ):
            result = run(x, y)
        result.backward()
        found.append(log)
    assert found[0] == found[1]


def _gradient(x: Tensor) -> Tensor:
    return torch.func.grad(lambda t: (t**3).sum())(x)


def _pulled_back(x: Tensor) -> Any:
    return torch.func.vjp(torch.sin, x)[1](x)[0]


def _outcome(function: Any, x: Tensor) -> Any:
    try:
        return function(x).tolist()
    except RuntimeError as error:
        return str(error)


@pytest.mark.parametrize("function", [_gradient, _pulled_back, torch.func.jacrev(torch.sin)])
def test_function_transforms_that_refuse_hooks_do(function: Any) -> None:
    def called(x: Tensor) -> Tensor:
        return function(x) * 2

    compiled, x = optimize("eager")(called), torch.tensor([0.5, -2.0])
    for watched in (False, True, False):
        with saved_tensors_hooks(lambda t: t, lambda t: t) if watched else nullcontext():
            expected, found = _outcome(called, x), _outcome(compiled, x)
        assert found == expected
        assert isinstance(found, str) is watched


def test_what_is_saved_is_unpacked_as_often_as_it_is_read(same):
    """A frame that is given a node reads it where the program does, each time: neither a guard nor the capture does."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return None, None

    def program(node, grad):
        first, second = node.saved_tensors
        return first * grad + second, second.sum()

    def power(node, grad):
        return node._saved_result + grad

    x, unpacked = torch.ones(2, requires_grad=True), []

    def unpack(tensor):
        unpacked.append(tensor.sum().item())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, unpack):
        results = (
            Product.apply(x, x + 1),
            x.exp(),
        )  # before torch 2.13 a node in Python does not outlive its results
    nodes = [result.grad_fn for result in results]
    for function, node in zip((program, power), nodes, strict=True):
        expected, counted = function(node, torch.ones(2)), list(unpacked)
        unpacked.clear()
        captured = optimize(lambda graph, inputs: graph)(function)
        for _ in range(3):
            torch.testing.assert_close(captured(node, torch.ones(2)), expected)
            assert unpacked == counted
            unpacked.clear()


class Stopped(BaseException):
    """As an interrupt from the keyboard, it comes out of a graph at any place."""


@pytest.mark.parametrize("kind", [ValueError, Stopped, KeyboardInterrupt, RecursionError])
def test_blocks_are_left_by_what_a_graph_raises_that_cannot_run_again(kind, unknown, noted):
    """The rest of a function after a graph break begins in the blocks that the break was in."""

    def pack(tensor):
        if tensor.sum() > 5:
            raise kind("pack")
        return tensor

    def program(x, log):
        for scale in (1.0, 10.0, 2.0):
            try:
                with saved_tensors_hooks(pack, lambda tensor: tensor), noted(log):
                    unknown(x)
                    y = (x * scale).sin()
                    log.append(unknown(y.detach()))
            except kind as error:
                log.append(str(error))
            finally:
                log.append("left")
        return x + 1

    logs = [], []
    x = torch.ones(2, requires_grad=True)
    program(x, logs[0])
    optimize(lambda graph, inputs: graph)(program)(x, logs[1])
    assert logs[0] == logs[1]
    assert "pack" in logs[0]
    assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None


@pytest.mark.parametrize("saved_first", [False, True])
def test_numbers_that_were_taken_for_granted_under_hooks(saved_first):
    """A graph whose assumption fails runs again only where no hook has been called for it."""
    packed = []

    def pack(tensor):
        packed.append(tensor.sum().item())
        return tensor

    def program(x, y):
        if saved_first:
            x = x.sin()
        if y.sum() > 5:
            x = x + 1
        return x.exp()

    compiled = optimize(lambda graph, inputs: graph)(program)
    for value in (1.0, 1.0, 10.0, 1.0):
        found = []
        for function in (program, compiled):
            packed.clear()
            x = torch.ones(2, requires_grad=True)
            with saved_tensors_hooks(pack, lambda tensor: tensor):
                result = function(x, torch.full((2,), value))
            found.append((result.tolist(), list(packed)))
        assert found[0] == found[1]
