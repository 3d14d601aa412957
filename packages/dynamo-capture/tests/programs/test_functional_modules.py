"""Modules called with other parameters, and parameters that are computed: ``functional_call``, parametrizations."""

import pytest
import torch
from torch import nn
from torch.func import functional_call
from torch.nn.utils import parametrizations, parametrize, stateless

X = torch.arange(6.0).reshape(2, 3) + 1


def given(shift=0.0):
    return (X + shift).requires_grad_()


class Net(nn.Module):
    """Two layers that share a weight, and a buffer that is updated."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.a = nn.Linear(3, 3)
        self.b = nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, factor=1):
        self.calls.add_(1)
        return self.b(torch.tanh(self.a(x))) * factor + self.calls


def params(seed=1):
    torch.manual_seed(seed)
    return {name: torch.rand_like(value).requires_grad_() for name, value in Net().named_parameters()}


def test_functional_call(whole):
    def make():
        net = Net()

        def f(x, given):
            return functional_call(net, given, (x,)), net(x)

        return f

    whole.made(make, (given(), params()), (given(), params(2)), (X, params()))


def test_functional_call_with_keywords_and_one_argument(whole):
    def make():
        net = Net()
        return lambda x, p: functional_call(net, p, x, {"factor": 3})

    whole.made(make, (given(), params()))


def test_functional_call_with_a_tuple_of_dicts(whole):
    def make():
        net = Net()

        def f(x, p, buffers):
            return functional_call(net, (p, buffers), (x,)), buffers, net.calls

        return f

    whole.made(make, (given(), params(), {"calls": torch.ones(())}), (X, params(), {"calls": torch.ones(())}))


@pytest.mark.parametrize("tie", [True, False])
def test_functional_call_and_tied_weights(whole, tie):
    def make():
        net = Net()
        return lambda x, p: functional_call(net, p, (x,), tie_weights=tie)

    whole.made(make, (given(), params()), (given(), params(3)))


def test_functional_call_that_is_strict(same):
    def make():
        net = Net()

        def f(x, p, strict):
            try:
                return functional_call(net, p, (x,), strict=strict)
            except RuntimeError as error:
                return str(error)

        return f

    more = {**params(), "calls": torch.zeros(())}
    same.made(make, (given(), more, True), (given(), {**more, "other": X}, True), (given(), params(), False))


def test_functional_call_restores_after_an_exception(whole):
    def make():
        net = Net()

        def f(x, p):
            try:
                functional_call(net, p, (x,), {"factor": "no"})
            except TypeError:
                pass
            return net.a(x), len(list(net.parameters()))

        return f

    whole.made(make, (given(), params()))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_stateless(whole):
    def make():
        net = Net()

        def f(x, p):
            with stateless._reparametrize_module(net, p):
                y = net(x)
            return y, stateless.functional_call(net, p, (x,)), net(x)

        return f

    whole.made(make, (given(), params()), (given(), params(2)))


class Symmetric(nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).T

    def right_inverse(self, x):
        return x.triu()


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, x):
        return x * self.scale


def linear(*wrap):
    torch.manual_seed(0)
    layer = nn.Linear(3, 3)
    for part in wrap:
        parametrize.register_parametrization(layer, "weight", part)
    return layer


def test_parametrize(whole):
    whole.made(lambda: linear(Symmetric(), Scaled()), (given(),), (given(1),))


def test_parametrize_cached(whole):
    def make():
        layer = linear(Symmetric())

        def f(x):
            with parametrize.cached():
                y = layer(x) + layer(x)
            return y, layer(x)

        return f

    whole.made(make, (given(),), (given(),))


def test_parametrized_weights_are_assigned(same):
    def make():
        layer = linear(Symmetric())

        def f(x):
            with torch.no_grad():
                layer.weight = torch.eye(3) * x.shape[0]
            return layer(x), layer.parametrizations.weight.original

        return f

    same.made(make, (given(),), (torch.ones(3, 3),))


def test_parametrized_modules_are_asked(whole):
    def make():
        layer = linear(Scaled())

        def f(x):
            names = sorted(name for name, _ in layer.named_parameters())
            return (
                layer(x),
                parametrize.is_parametrized(layer),
                parametrize.is_parametrized(layer, "bias"),
                names,
            )

        return f

    whole.made(make, (given(),))


def test_parametrizations_are_removed_between_calls(same):
    def make():
        layer = linear(Scaled())

        def f(x, remove):
            if remove:
                parametrize.remove_parametrizations(layer, "weight")
            return layer(x)

        return f

    same.made(make, (given(), False), (given(), True), (given(), False))


_MADE = {
    "weight_norm": lambda: parametrizations.weight_norm(linear()),
    "weight_norm of another dim": lambda: parametrizations.weight_norm(linear(), dim=None),
    "spectral_norm": lambda: parametrizations.spectral_norm(linear()),
    "orthogonal": lambda: parametrizations.orthogonal(linear()),
    "cayley": lambda: parametrizations.orthogonal(linear(), orthogonal_map="cayley"),
    "householder": lambda: parametrizations.orthogonal(linear(), orthogonal_map="householder"),
    "old weight_norm": lambda: nn.utils.weight_norm(linear()),
    "old spectral_norm": lambda: nn.utils.spectral_norm(linear()),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("name", _MADE)
@pytest.mark.parametrize("training", [True, False])
def test_parametrizations(whole, name, training):
    whole.made(lambda: _MADE[name]().train(training), (given(),), (given(1),), (X,))
