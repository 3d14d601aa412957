"""Hooks of modules: forward, backward, with keyword arguments, added and removed."""

import pytest
import torch
from torch import nn

import dynamo_capture

X = torch.arange(6.0).reshape(2, 3) + 1


def test_forward_hooks(whole, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.seen = []
            self.linear.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
            self.linear.register_forward_hook(self.note)

        def note(self, module, args, output):
            self.seen.append(tuple(output.shape))
            return output + 1

        def forward(self, x):
            return self.linear(x), len(self.seen)

    whole.made(seeded(Net), (X,), (X,))


def test_hooks_with_keyword_arguments(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Identity()
            self.inner.register_forward_pre_hook(
                lambda module, args, kwargs: ((args[0] + 1,), kwargs), with_kwargs=True
            )
            self.inner.register_forward_hook(lambda module, args, kwargs, out: out * 3, with_kwargs=True)

        def forward(self, x):
            return self.inner(x)

    whole.made(Net, (X,), (X,))


def test_hook_is_added_and_removed_between_calls(same, seeded):
    def make():
        net = nn.Linear(3, 3)
        handles = []

        def f(x, hooked):
            return net(x)

        def g(x, hooked):
            if hooked and not handles:
                handles.append(net.register_forward_hook(lambda m, a, o: o * 10))
            if not hooked and handles:
                handles.pop().remove()
            return f(x, hooked)

        return g

    same.made(seeded(make), (X, False), (X, True), (X, False), (X, True))


def test_hook_registered_from_outside():
    from dynamo_capture import optimize

    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    fast = optimize(lambda gm, ex: gm.forward)(net)
    before = fast(X)
    handle = net[0].register_forward_hook(lambda m, a, o: o * 0)
    assert torch.equal(fast(X), torch.zeros(2, 3))
    handle.remove()
    assert torch.equal(fast(X), before)


def test_backward_hook(same, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.linear.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))

        def forward(self, x):
            return self.linear(x)

    same.made(seeded(Net), (X.clone().requires_grad_(),), (X.clone().requires_grad_(),))


class Failing(nn.Module):
    def __init__(self, decides):
        super().__init__()
        self.inner = nn.Linear(2, 2)
        self.decides = decides

    def forward(self, x, fail=False):
        y = self.inner(x)
        if self.decides and y.sum() > 1000:
            y = y + 1
        if fail:
            raise KeyError("no")
        return y


@pytest.mark.parametrize("decides", [False, True])
def test_hooks_that_are_always_called(same, decides):
    def make():
        torch.manual_seed(0)
        module, log = Failing(decides), []
        module.register_forward_hook(lambda *args: log.append(args[-1] is None), always_call=True)
        module.inner.register_forward_hook(lambda *args: log.append("inner"), always_call=True)

        def run(x, fail):
            try:
                module(x, fail)
            except KeyError as error:
                log.append(str(error))
            return list(log)

        return run

    same.made(make, (torch.ones(2), False), (torch.ones(2), True), (torch.ones(2), False))


@pytest.mark.parametrize("scale", [None, 2.0])
@pytest.mark.parametrize("is_first", [False, True])
def test_backward_hooks_of_a_module_within_a_graph(same, scale, is_first):
    def make():
        torch.manual_seed(0)
        net, log = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), []
        hooked = net[0 if is_first else 1]

        def look(module, inputs, outputs):
            log.append(("module", [None if g is None else g.clone() for g in inputs], outputs[0].clone()))
            return None if scale is None or inputs[0] is None else (inputs[0] * scale,)

        def after(module, args, output):
            output.register_hook(lambda g: log.append(("tensor", g.clone())))

        hooked.register_full_backward_hook(look)
        hooked.register_full_backward_pre_hook(lambda module, outputs: (outputs[0] * 3,))
        hooked.register_forward_hook(after)
        net.register_full_backward_hook(lambda module, inputs, outputs: log.append(outputs[0].clone()))

        def run(x):
            x = x.clone().requires_grad_()
            net(x).sin().sum().backward()
            return log, x.grad, [p.grad for p in net.parameters()]

        return run

    same.made(make, (X,), (X + 1,))


def test_backward_hooks_end_no_graph(same, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(3, 3), nn.Linear(3, 3)
            self.first.register_full_backward_hook(lambda module, inputs, outputs: (inputs[0] * 2,))

        def forward(self, x):
            return self.last(self.first(x.sin()))

    same.made(seeded(Net), (X.clone().requires_grad_(),), graphs=1)


def test_writing_to_what_a_hooked_module_gives_raises_as_in_eager(same, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.linear.register_full_backward_hook(lambda *args: None)

        def forward(self, x):
            try:
                return self.linear(x).relu_()
            except RuntimeError as error:
                return str(error)

    same.made(seeded(Net), (X,))


def test_a_backward_hook_without_a_gradient_warns():
    """Zeros are sent on, where eager sends nothing: known, and told."""
    layer = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    layer[1].register_full_backward_hook(lambda module, inputs, outputs: (None,))
    x = X.clone().requires_grad_()
    with pytest.warns(UserWarning, match="gave None for the gradient of its input"):
        dynamo_capture.optimize("eager", fullgraph=True)(layer)(x).sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
