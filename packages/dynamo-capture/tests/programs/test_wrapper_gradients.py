"""Gradients through tensors whose class has a ``__torch_dispatch__``: torch's formulas of the outer operators."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._pytree import tree_map
from torch.utils.checkpoint import checkpoint

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1
Y = X.flip(1) - 2


class Quantized(torch.Tensor):
    """A weight in eight bits with one scale for each row; ``linear`` is written out, all else is done in full."""

    @staticmethod
    def __new__(cls, values, scale, dtype):
        return torch.Tensor._make_wrapper_subclass(cls, values.shape, dtype=dtype, device=values.device)

    def __init__(self, values, scale, dtype):
        self.values_, self.scale = values, scale

    @classmethod
    def of(cls, weight):
        scale = weight.abs().amax(1, keepdim=True) / 127
        return cls((weight / scale).round().to(torch.int8), scale, weight.dtype)

    def full(self):
        return self.values_.to(self.dtype) * self.scale

    def __tensor_flatten__(self):
        return ["values_", "scale"], [self.dtype]

    @classmethod
    def __tensor_unflatten__(cls, inner, context, size, stride):
        return cls(inner["values_"], inner["scale"], *context)

    handled = {}

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.linear:
            x, weight, bias = [*args, None][:3]
            y = (x @ weight.values_.t().to(x.dtype)) * weight.scale.view(-1)
            return y if bias is None else y + bias
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs):
        if func in cls.handled:
            return cls.handled[func](func, *args, **(kwargs or {}))
        return func(*tree_map(lambda v: v.full() if isinstance(v, cls) else v, args), **(kwargs or {}))


def _alike(func, weight, *args, **kwargs):
    return type(weight)(func(weight.values_), func(weight.scale), weight.dtype)


Quantized.handled = {torch.ops.aten.detach.default: _alike, torch.ops.aten.clone.default: _alike}


class Dequantized(Quantized):
    """Leaves ``linear`` to torch, which asks for its operators."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            return func(*args, **(kwargs or {}))


class Rounding(torch.Tensor):
    """Products are rounded, which autograd does not see; their gradients are those of products, rounded too."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

    def __init__(self, inner):
        self.inner = inner

    __torch_function__ = torch._C._disabled_torch_function_impl
    told = []

    def __tensor_flatten__(self):
        return ["inner"], None

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.told.append(1)
        if func in (torch.ops.aten.clone.default, torch.ops.aten.detach.default):
            return cls(func(args[0].inner))
        out = func(*tree_map(lambda v: v.inner if isinstance(v, cls) else v, args), **(kwargs or {}))
        return tree_map(
            lambda v: v.round() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, out
        )


class Silent(Rounding):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.clone.default, torch.ops.aten.detach.default):
            return cls(func(args[0].inner))
        out = func(*tree_map(lambda v: v.inner if isinstance(v, cls) else v, args), **(kwargs or {}))
        return tree_map(
            lambda v: v.round() if isinstance(v, torch.Tensor) and v.is_floating_point() else v, out
        )


class Rewrapped(Silent):
    """Results are of the class, too."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = func(*tree_map(lambda v: v.inner if isinstance(v, cls) else v, args), **(kwargs or {}))
        return tree_map(lambda v: cls(v) if isinstance(v, torch.Tensor) else v, out)


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        return (x @ weight.values_.t().to(x.dtype)) * weight.scale.view(-1) + bias

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return (grad * weight.scale.view(-1)) @ weight.values_.to(grad.dtype), grad.t() @ x, grad.sum(0)


class Trained(Dequantized):
    """Differentiates ``linear`` by itself."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.linear:
            return Linear.apply(*args)
        return super().__torch_function__(func, types, args, kwargs)


def quantized_layers(cls, requires_grad):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.GELU(), nn.Linear(4, 3))
    for layer in (model[0], model[2]):
        weight = Quantized.of(layer.weight.detach())
        layer.weight = nn.Parameter(cls(weight.values_, weight.scale, weight.dtype), requires_grad)
    return model


@pytest.mark.parametrize("cls", [Trained, Dequantized])
def test_training_of_quantized_weights(whole, cls):
    def make():
        model = quantized_layers(cls, True)

        def step(x):
            grads = [None if p.grad is None else p.grad.clone() for p in model.parameters()]
            return model(x), grads, (model[0].weight.detach() * 1 if cls is Dequantized else 0)

        return step

    whole.made(make, (Y,), (Y.clone().requires_grad_(),), (X.clone().requires_grad_(),), graphs=2)


def test_a_weight_that_is_used_twice_and_checkpointed(whole):
    def make():
        layer = quantized_layers(Dequantized, True)[0]

        def f(x):
            y = checkpoint(lambda v: F.linear(v, layer.weight, layer.bias), x, use_reentrant=False)
            return F.linear(y, layer.weight.t()) + x, layer.weight.grad

        return f

    whole.made(make, (Y,), (Y + 1,), ignore={"grad version", "own version"})  # of the weight's gradient


@pytest.mark.parametrize("cls", [Quantized, Dequantized])
def test_training_beside_frozen_quantized_weights(whole, cls):
    def make():
        model = quantized_layers(cls, False)
        return lambda x: (model(x) * x, model[0].bias * 1)

    whole.made(make, (Y,), (Y.clone().requires_grad_(),), (X.clone().requires_grad_(),), graphs=2)


def test_gradients_are_torchs_formulas_of_the_outer_operators(whole):
    def make():
        w = Silent(X)

        def f(x):
            y = x * w
            return y + x, torch.mm(y, w.t()), (x / w).sum(0), torch.where(x > 0, x * 0.3, w)

        return f

    whole.made(make, (Y.clone().requires_grad_(),), ((Y + 3).requires_grad_(),), graphs=1)


def test_results_without_gradients_beside_those_with(whole):
    def make():
        w = Silent(X)
        return lambda x: (torch.max(x * 2, dim=1), torch.where(x > 1, x, w).max(1), x == w, x.detach() * w)

    whole.made(make, (Y.clone().requires_grad_(),), graphs=1)


def test_gradients_with_sizes_that_vary(whole):
    def make():
        w = Silent(X[:1] * 1.5)
        return lambda x: (x * w).sum(1) + x[:, 0]

    whole.made(make, *[(torch.rand(n, 3, requires_grad=True),) for n in (2, 4, 5)], graphs=2)


def test_second_derivatives_are_refused():
    w = Silent(X)
    x = Y.clone().requires_grad_()
    y = optimize(lambda graph, inputs: graph.forward)(lambda x: (x * w).square().sum())(x)
    (grad,) = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        grad.sum().backward()


def of_wrappers(w, x):
    v = Rewrapped(w.inner).requires_grad_()
    y = (v * v + x).sum()
    y.backward()
    return v.grad, type(y)


class Asking(Silent):
    """Computes something else in training."""

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        out = super().__torch_dispatch__(func, types, args, kwargs)
        return out + 1 if torch.is_grad_enabled() and func is torch.ops.aten.mul.Tensor else out


LEFT_TO_EAGER_WITH_GRADIENTS = [
    lambda w, x: Asking(w.inner) * x,
    of_wrappers,
    lambda w, x: (w * x).inner * 2 + x,
    lambda w, x: w.add_(x).inner,
    lambda w, x: Rounding(w.inner) * x,
    lambda w, x: torch.broadcast_tensors(Silent(X[0]), x)[1] * 2,
]


@pytest.mark.parametrize("program", LEFT_TO_EAGER_WITH_GRADIENTS)
def test_what_is_left_to_eager_with_gradients(same, program):
    calls = [(Rewrapped(X), Y.clone().requires_grad_()) for _ in range(2)]
    same(program, *calls, ignore={"grad version"})
