"""Modules that change between calls: attributes, parameters, submodules, copies, dtypes, optimizer steps."""

import copy

import pytest
import torch
from torch import nn

X = torch.arange(6.0).reshape(2, 3) + 1


def test_training_flag_changes_between_calls(whole, seeded):
    def make():
        net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

        return lambda x, training: (net.train(training), net(x))[1]

    whole.made(seeded(make), (X, False), (X, True), (X, False), (X, True))


def test_buffer_is_replaced(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("state", torch.zeros(2, 3))
            self.register_buffer("none", None)

        def forward(self, x):
            self.state = self.state * 0.5 + x
            return self.state, self.none is None

    whole.made(Net, (X,), (X,), (X,))


def test_attributes_changed_between_calls(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = 2
            self.mode = "add"
            self.sizes = [1, 2]

        def forward(self, x):
            x = x * self.scale + sum(self.sizes)
            return x + 1 if self.mode == "add" else x - 1

    def make():
        net = Net()

        def f(x, name, value):
            return net(x)

        def g(x, name, value):
            if name:
                setattr(net, name, value)
            return f(x, name, value)

        return g

    whole.made(
        make,
        (X, "", 0),
        (X, "scale", 3),
        (X, "mode", "sub"),
        (X, "sizes", [5]),
        (X, "scale", 2),
        (X, "extra", 1),
    )


def test_counter_in_a_module(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.calls = 0
            self.history = []

        def forward(self, x):
            self.calls += 1
            self.history.append(self.calls)
            return x * self.calls, list(self.history)

    whole.made(Net, (X,), (X,), (X,), (X,))


def test_optimizer_step_outside_changes_parameters():
    from dynamo_capture import optimize

    def losses(wrap):
        torch.manual_seed(0)
        net = nn.Linear(3, 1)
        step = wrap(net)
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        found = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = step(X).pow(2).mean()
            loss.backward()
            optimizer.step()
            found.append(loss.item())
        return found

    fast = optimize(lambda gm, ex: gm.forward, fullgraph=True)
    assert losses(lambda net: net) == losses(fast)


def test_copied_module_is_another_module():
    from dynamo_capture import optimize

    def f(net, x):
        return net(x)

    fast = optimize(lambda gm, ex: gm.forward, fullgraph=True)(f)
    one = nn.Linear(3, 3)
    two = copy.deepcopy(one)
    with torch.no_grad():
        two.weight.mul_(2)
    for net in (one, two, one):
        assert torch.equal(fast(net, X), net(X))


def test_parameter_is_replaced_between_calls():
    from dynamo_capture import optimize

    net = nn.Linear(3, 3)
    fast = optimize(lambda gm, ex: gm.forward, fullgraph=True)(net)
    assert torch.equal(fast(X), net(X))
    net.weight = nn.Parameter(torch.zeros(3, 3))
    assert torch.equal(fast(X), net(X))
    net.bias = None
    assert torch.equal(fast(X), net(X))
    del net.bias
    with pytest.raises(AttributeError):
        fast(X)


def test_submodule_is_replaced_between_calls():
    from dynamo_capture import optimize

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    fast = optimize(lambda gm, ex: gm.forward, fullgraph=True)(net)
    assert torch.equal(fast(X), net(X))
    net[1] = nn.Tanh()
    assert torch.equal(fast(X), net(X))
    net.append(nn.Sigmoid())
    assert torch.equal(fast(X), net(X))
    del net[0]
    assert torch.equal(fast(X), net(X))


def test_requires_grad_changes_between_calls():
    from dynamo_capture import optimize

    net = nn.Linear(3, 3)
    fast = optimize(lambda gm, ex: gm.forward, fullgraph=True)(net)
    for wanted in (True, False, True):
        net.requires_grad_(wanted)
        assert fast(X).requires_grad == wanted


def test_dtype_changes_between_calls():
    from dynamo_capture import optimize

    net = nn.Linear(3, 3)
    fast = optimize(lambda gm, ex: gm.forward, fullgraph=True)(net)
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float32):
        net.to(dtype)
        assert torch.equal(fast(X.to(dtype)), net(X.to(dtype)))


def test_converting_a_module_to_what_it_is(whole):
    layer = torch.nn.Linear(3, 3)
    layer.register_buffer("scale", torch.ones(1))

    def f(x):
        converted = layer.to(x.dtype)
        return converted(x) * layer.to("cpu").scale

    whole(f, (X,), (X + 1,))


def test_a_module_that_takes_the_place_of_none(same, seeded):
    class Late(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = None

        def forward(self, x):
            if self.layer is None:
                self.layer = nn.Linear(3, 3)
            return self.layer(x) * 2

    same.made(seeded(Late), (torch.ones(2, 3),), (torch.ones(2, 3),), (torch.ones(2, 3),), eager=0)


@pytest.mark.parametrize("kind", ["_parameters", "_buffers", "_modules"])
def test_a_member_that_was_read_is_replaced_in_its_table(same, kind):
    module = torch.nn.Module()
    module.weight = torch.nn.Parameter(torch.ones(3))
    module.register_buffer("scale", torch.ones(3))
    module.inner = torch.nn.Tanh()
    name, other = {
        "_parameters": ("weight", torch.nn.Parameter(torch.full((3,), 2.0))),
        "_buffers": ("scale", torch.full((3,), 3.0)),
        "_modules": ("inner", torch.nn.ReLU()),
    }[kind]

    def computed(x):
        return module.inner(x * module.weight + module.scale)

    def f(x):
        before, table = computed(x), vars(module)[kind]
        old, table[name] = table[name], other
        between = computed(x)
        table[name] = old
        return before, between, computed(x)

    same(f, (torch.randn(2, 3),))


def test_functional_call_of_a_module_that_was_called_before(whole):
    linear = torch.nn.Linear(3, 3)

    def f(x):
        return linear(x), torch.func.functional_call(linear, {"bias": x[0] + 1}, (x,)), linear(x)

    whole(f, (torch.randn(2, 3),))
