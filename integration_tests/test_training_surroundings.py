"""What surrounds a training step in real programs: hooks, graphs used twice, gradients of gradients, subclasses, and
operators of one's own. Each compiled program behaves as in eager."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

import fxstack

Program = Callable[..., Any]


def _same(found: Any, expected: Any) -> None:
    one, other = pytree.tree_leaves(found), pytree.tree_leaves(expected)
    assert len(one) == len(other)
    for left, right in zip(one, other, strict=True):
        if isinstance(left, Tensor):
            torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
            assert left.requires_grad == right.requires_grad
        else:
            assert left == right


def _network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


def _batch() -> Tensor:
    return torch.linspace(-1, 1, 12).view(3, 4)


def _gradients(model: nn.Module) -> list[Tensor | None]:
    return [p.grad for p in model.parameters()]


def tensor_hooks(compile: Program) -> Any:
    x, seen = _batch().requires_grad_(), []
    x.register_hook(lambda grad: seen.append(grad.clone()))
    result = compile(lambda x: x.sin() * 2)(x)
    result.register_hook(lambda grad: grad * 3)
    result.sum().backward()
    return x.grad, seen


def hooks_registered_inside(compile: Program) -> Any:
    seen = []

    def function(x: Tensor) -> Tensor:
        y = x.exp()
        y.register_hook(lambda grad: grad * 2)
        return y.sin()

    x = _batch().requires_grad_()
    compile(function)(x).sum().backward()
    return x.grad, seen


def module_hooks(compile: Program) -> Any:
    model, seen = _network(), []
    model[0].register_forward_hook(lambda module, args, output: output * 1.5)
    model[1].register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    model.register_full_backward_hook(lambda module, inputs, outputs: seen.append(outputs[0].clone()))
    x = _batch().requires_grad_()
    compile(model)(x).sum().backward()
    return x.grad, seen, _gradients(model)


def post_accumulate_hooks(compile: Program) -> Any:
    model, order = _network(), []
    for name, parameter in model.named_parameters():
        parameter.register_post_accumulate_grad_hook(
            lambda p, name=name: order.append((name, p.grad.clone()))
        )
    compile(model)(_batch()).sum().backward()
    return sorted(order, key=lambda pair: pair[0])


def retained_graph(compile: Program) -> Any:
    x = _batch().requires_grad_()
    result = compile(lambda x: x.exp().sin())(x)
    result.sum().backward(retain_graph=True)
    first = x.grad.clone()
    result.square().sum().backward()
    return first, x.grad


def gradient_outside(compile: Program) -> Any:
    x, y = _batch().requires_grad_(), _batch().requires_grad_()
    result = compile(lambda x, y: (x * y, x.sum()))(x, y)
    return torch.autograd.grad([result[0].sum(), result[1]], [x, y])


def gradient_inside(compile: Program) -> Any:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = (x.sin() * x).sum()
        (grad,) = torch.autograd.grad(y, x)
        return y, grad * 2

    return compile(function)(_batch().requires_grad_())


def gradient_inside_with_a_graph(compile: Program) -> Any:
    def penalty(x: Tensor) -> Tensor:
        (grad,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
        return grad.square().sum()

    x = _batch().requires_grad_()
    loss = compile(penalty)(x)
    loss.backward()
    return loss, x.grad


def backward_inside(compile: Program) -> Any:
    model = _network()

    def step(x: Tensor) -> Tensor:
        loss = model(x).square().mean()
        loss.backward()
        return loss.detach()

    step = compile(step)
    return step(_batch()), step(_batch() * 2), _gradients(model)


def accumulated_gradients(compile: Program) -> Any:
    model = _network()
    run = compile(model)
    for scale in (1, 2, 3):
        run(_batch() * scale).sum().backward()
    return _gradients(model)


def set_to_none(compile: Program) -> Any:
    model = _network()
    run, found = compile(model), []
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for none in (True, False, True):
        optimizer.zero_grad(set_to_none=none)
        found.append([g is None for g in _gradients(model)])
        run(_batch()).square().sum().backward()
        optimizer.step()
    return found, [p.detach().clone() for p in model.parameters()]


def frozen_then_trained(compile: Program) -> Any:
    model = _network()
    run, found = compile(model), []
    for frozen in (True, False):
        model[0].requires_grad_(not frozen)
        model.zero_grad()
        run(_batch()).sum().backward()
        found.append(_gradients(model))
    return found


def autocast(compile: Program) -> Any:
    model = _network()
    run = compile(model)
    with torch.autocast("cpu", torch.bfloat16):
        result = run(_batch())
        loss = F.cross_entropy(result, torch.tensor([0, 1, 0]))
    loss.backward()
    return result.dtype, loss.float(), [g.dtype for g in _gradients(model) if g is not None]


def autocast_inside(compile: Program) -> Any:
    def function(x: Tensor, w: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            y = x @ w
            with torch.autocast("cpu", enabled=False):
                z = x @ w
        return y.float().sum() + z.sum()

    x, w = _batch(), torch.ones(4, 4, requires_grad=True)
    result = compile(function)(x, w)
    result.backward()
    return w.grad


def complex_numbers(compile: Program) -> Any:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        z = torch.fft.fft(x) * torch.complex(x, x)
        return z.abs(), torch.view_as_real(z.conj() * z)

    x = _batch().requires_grad_()
    one, two = compile(function)(x)
    (one.sum() + two.sum()).backward()
    return one, two, x.grad


def complex_leaf(compile: Program) -> Any:
    z = torch.complex(_batch(), _batch() + 1).requires_grad_()
    result = compile(lambda z: (z * z.conj()).real.sum() + z.exp().imag.sum())(z)
    result.backward()
    return result, z.grad


def integer_inputs(compile: Program) -> Any:
    def function(ids: Tensor, table: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        return table[ids] * mask.unsqueeze(-1), ids * 2 + mask

    ids, mask = torch.tensor([2, 0, 1, 2]), torch.tensor([True, False, True, True])
    table = torch.ones(3, 4, requires_grad=True)
    one, two = compile(function)(ids, table, mask)
    one.sum().backward()
    return one, two, table.grad


class Scaled(Tensor):
    """A tensor with a factor; operators work on the plain value and keep the factor of the first such argument."""

    @staticmethod
    def __new__(cls, value: Tensor, factor: float) -> Any:
        return Tensor._make_wrapper_subclass(
            cls, value.shape, strides=value.stride(), dtype=value.dtype, requires_grad=value.requires_grad
        )

    def __init__(self, value: Tensor, factor: float) -> None:
        self.value, self.factor = value, factor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        factor = next(a.factor for a in pytree.tree_leaves((args, kwargs)) if isinstance(a, Scaled))
        plain = pytree.tree_map_only(Scaled, lambda a: a.value, (args, kwargs or {}))
        result = func(*plain[0], **plain[1])
        return pytree.tree_map_only(Tensor, lambda r: Scaled(r * factor, factor), result)


def tensor_subclass(compile: Program) -> Any:
    result = compile(lambda x, y: (x + y).sin() * x)(Scaled(_batch(), 2.0), _batch())
    return type(result).__name__, result.value, result.factor


@torch.library.custom_op("fxtest::twice_plus", mutates_args=())
def twice_plus(x: Tensor, by: float) -> Tensor:
    return x * 2 + by


@twice_plus.register_fake
def _(x: Tensor, by: float) -> Tensor:
    return torch.empty_like(x)


def _twice_backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
    (x,) = ctx.saved_tensors
    return grad * 2 + 0 * x, None


twice_plus.register_autograd(
    _twice_backward, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0])
)


@torch.library.custom_op("fxtest::add_into", mutates_args=("x",))
def add_into(x: Tensor, y: Tensor) -> None:
    x.add_(y)


def custom_operator(compile: Program) -> Any:
    x = _batch().requires_grad_()
    result = compile(lambda x: twice_plus(x.sin(), 0.5).exp())(x)
    result.sum().backward()
    return result, x.grad


def custom_operator_that_writes(compile: Program) -> Any:
    def function(x: Tensor, y: Tensor) -> Tensor:
        z = x * 2
        add_into(z, y)
        add_into(x, y)
        return z + x

    x = _batch()
    return compile(function)(x, torch.ones(3, 4)), x


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x + 1


def autograd_function(compile: Program) -> Any:
    x = _batch().requires_grad_()
    compile(lambda x: Cube.apply(x.sin()) * 2)(x).sum().backward()
    return x.grad


def foreach(compile: Program) -> Any:
    def function(tensors: list[Tensor], grads: list[Tensor]) -> list[Tensor]:
        scaled = torch._foreach_mul(grads, 0.5)
        torch._foreach_add_(tensors, scaled, alpha=-1.0)
        norms = torch._foreach_norm(tensors)
        return torch._foreach_div(tensors, [n + 1 for n in norms])

    tensors = [_batch(), _batch()[0].clone()]
    return compile(function)(tensors, [torch.ones(3, 4), torch.ones(4)]), tensors


def second_derivatives(compile: Program) -> Any:
    x = _batch().requires_grad_()
    result = compile(lambda x: (x**3).sin())(x)
    (first,) = torch.autograd.grad(result.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.square().sum(), x)
    return first, second


def inference_mode(compile: Program) -> Any:
    model = _network()
    run = compile(model)
    with torch.inference_mode():
        first = run(_batch())
    run(_batch()).sum().backward()
    return first.clone(), _gradients(model)


def detached_parts(compile: Program) -> Any:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.sin()
        with torch.no_grad():
            z = y * 2
        return y + z + y.detach(), z

    x = _batch().requires_grad_()
    one, two = compile(function)(x)
    one.sum().backward()
    return one, two, x.grad


def checkpointed(compile: Program) -> Any:
    from torch.utils.checkpoint import checkpoint

    model = _network()

    def function(x: Tensor) -> Tensor:
        return checkpoint(model, x, use_reentrant=False).sin()

    x = _batch().requires_grad_()
    compile(function)(x).sum().backward()
    return x.grad, _gradients(model)


class _Put(torch.autograd.Function):
    """Writes into memory past autograd, and gives the memory a history."""

    @staticmethod
    def forward(ctx: Any, memory: Tensor, value: Tensor, column: int) -> Tensor:
        ctx.column = column
        memory.data[:, column] = value
        return memory

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, grad[:, ctx.column], None


def memory_with_a_history(compile: Program) -> Any:
    """As solvers of differential equations keep their stages; a part of the memory is a result too."""

    def function(x: Tensor) -> Any:
        stages = _Put.apply(torch.zeros(3, 2), x, 0)
        stages = _Put.apply(stages, stages[:, :1].sum(1) * 2, 1)
        return stages, stages[:, 1]

    x = torch.linspace(-1, 1, 3).requires_grad_()
    stages, last = compile(function)(x)
    (stages.square().sum() + last.exp().sum()).backward()
    return stages, last, x.grad


PROGRAMS = (
    *(tensor_hooks, hooks_registered_inside, module_hooks, post_accumulate_hooks, retained_graph),
    *(gradient_outside, gradient_inside, gradient_inside_with_a_graph, backward_inside),
    *(accumulated_gradients, set_to_none, frozen_then_trained, autocast, autocast_inside),
    *(complex_numbers, complex_leaf, integer_inputs, tensor_subclass, custom_operator),
    *(custom_operator_that_writes, autograd_function, foreach, second_derivatives, inference_mode),
    *(detached_parts, checkpointed, memory_with_a_history),
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_in_eager(program: Callable[[Program], Any]) -> None:
    _same(program(fxstack.compile), program(lambda function: function))


ONE_GRAPH = (
    *(tensor_hooks, retained_graph, gradient_outside, accumulated_gradients, set_to_none, autocast),
    *(autocast_inside, complex_numbers, complex_leaf, integer_inputs, custom_operator, foreach),
    *(second_derivatives, detached_parts, memory_with_a_history),
)


@pytest.mark.parametrize("program", ONE_GRAPH, ids=lambda program: program.__name__)
def test_without_a_graph_break(program: Callable[[Program], Any]) -> None:
    program(lambda function: fxstack.compile(function, fullgraph=True))


def test_two_losses_with_backwards_of_their_own() -> None:
    """A step of an adversarial game: the second loss reaches through results that the first one left out."""

    def make() -> Any:
        torch.manual_seed(0)
        generator, judge = torch.nn.Linear(3, 4), torch.nn.Linear(4, 1)
        optimizers = [torch.optim.Adam(m.parameters(), 0.01) for m in (judge, generator)]

        def step(noise: torch.Tensor, real: torch.Tensor) -> Any:
            fake = generator(noise)
            losses = []
            for optimizer, loss in (
                (
                    optimizers[0],
                    lambda: F.softplus(-judge(real)).mean() + F.softplus(judge(fake.detach())).mean(),
                ),
                (optimizers[1], lambda: F.softplus(-judge(fake)).mean()),
            ):
                optimizer.zero_grad()
                value = loss()
                value.backward()
                optimizer.step()
                losses.append(value.detach())
            return *losses, generator.weight.detach().clone()

        return step

    compiled, eager = fxstack.compile(make()), make()
    for _ in range(3):
        noise, real = torch.randn(5, 3), torch.randn(5, 4)
        torch.testing.assert_close(compiled(noise, real), eager(noise, real))
