"""Operations of equal modules whose nodes are made again without asking what the operations do."""

import gc
import types

import pytest
import torch
from torch import nn

from dynamo_capture import optimize
from dynamo_capture.semantics.calls.equal_modules import replaying

WIDTH, COUNT = 4, 9


class Layer(nn.Module):
    def __init__(self, number):
        super().__init__()
        self.linear, self.norm = nn.Linear(WIDTH, WIDTH), nn.LayerNorm(WIDTH)
        self.number, self.factor, self.heads, self.before = number, 1.0, 2, [self]
        self.register_buffer("shift", torch.randn(WIDTH))

    def forward(self, x):
        y = self.linear(self.norm(x)).view(-1, self.heads, WIDTH // self.heads).transpose(0, 1)
        return x + torch.tanh(y).transpose(0, 1).reshape(x.shape) * self.factor + self.shift


class Stack(nn.Module):
    def __init__(self, forward=None, change=None, use=None):
        super().__init__()
        torch.manual_seed(3)
        kind = Layer if forward is None else type("Other", (Layer,), {"forward": forward})
        self.layers = nn.ModuleList(kind(number) for number in range(COUNT))
        self.use = use
        for number, layer in enumerate(self.layers):
            layer.before = [self.layers[max(number - 1, 0)]]
        if change is not None:
            change(self)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) if self.use is None else self.use(self, layer, x)
        return x


@pytest.fixture
def stamped(monkeypatch):
    """The nodes that were made again."""
    found = []
    plain = replaying.stamped

    def noting(tx, stamp, known):
        found.append(stamp.node.name)
        return plain(tx, stamp, known)

    monkeypatch.setattr(replaying, "stamped", noting)
    return found


def _x():
    return torch.randn(3, WIDTH)


def test_each_operation_is_stamped(whole, stamped):
    whole.made(Stack, (_x(),), (_x(),), graphs=1)
    assert len(stamped) == (COUNT - 3) * 10


def _writes(model, layer, x):
    layer.shift.add_(1)
    return layer(x)


def test_nothing_is_stamped_where_tensors_were_written_to(same, stamped):
    same.made(lambda: Stack(use=_writes), (_x(),), (_x(),))
    assert stamped == []


def _sixth(model):
    for layer in model.layers:
        layer.before = [model.layers[6]]


def _one(name, value):
    return lambda model: setattr(model.layers[6], name, value)


def _sign(self, x):
    return x + torch.copysign(self.linear(x), torch.tensor(self.factor))


def _kind(self, x):
    return x + self.linear(x) * {bool: 2, int: 3, float: 4}[type(self.factor)]


def _ints(model):
    for layer in model.layers:
        layer.factor = 1
    model.layers[5].factor, model.layers[6].factor = True, 1.0


def _pieces(self, x):
    one, other = self.linear(x).chunk(2, -1)
    return x + torch.cat([other, one], -1) * self.factor


def _parts_of_a_view(model, layer, x):
    return layer(x.t().t()) if layer.number == 6 else layer(x)


def _hooks_the_next(model, layer, x):
    if layer.number == 4:
        model.layers[6].linear.register_forward_hook(lambda module, given, result: result * 2)
    return layer(x)


def _replaces_ahead(model, layer, x):
    if layer.number == 3:
        model.layers[7].linear = nn.Identity()
    return layer(x)


def _in_inference(model, layer, x):
    with torch.set_grad_enabled(layer.number % 3 != 1):
        return layer(x)


def _saved_elsewhere(model, layer, x):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t * 2, lambda t: t / 2):
        return layer(x)


def _own_forward(model):
    model.layers[6].forward = types.MethodType(lambda self, x: x * 9, model.layers[6])


def _hooked_weight(model):
    model.layers[6].linear.weight.register_hook(lambda grad: grad * 3)


PROGRAMS = {
    "the sign of zero": {"forward": _sign, "change": _one("factor", -0.0)},
    "the type of a number": {"forward": _kind, "change": _ints},
    "one is the sixth": {
        "forward": lambda self, x: x + self.linear(x) * (3 if self is self.before[0] else 1),
        "change": _sixth,
    },
    "its weight is the sixth's": {
        "forward": lambda self, x: (
            x + self.linear(x) * (3 if self.linear.weight is self.before[0].linear.weight else 1)
        ),
        "change": _sixth,
    },
    "the one before": {"forward": lambda self, x: x + self.linear(x) + self.before[0].linear(x)},
    "several results": {"forward": _pieces, "change": _one("factor", 3.0)},
    "sizes": {"change": _one("heads", 4)},
    "a number in the arguments": {"forward": lambda self, x: x + self.linear(x) * self.number},
    "a small tensor": {"forward": lambda self, x: x + self.linear(x) * x.mean().clamp(min=self.factor)},
    "a view": {"use": _parts_of_a_view},
    "a hook on the next": {"use": _hooks_the_next},
    "a module ahead": {"use": _replaces_ahead},
    "without gradients": {"use": _in_inference},
    "hooks on saved tensors": {"use": _saved_elsewhere},
    "forward of the instance": {"change": _own_forward},
    "a hook on a weight": {"change": _hooked_weight},
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("trained", [True, False])
def test_values_and_gradients(same, name, trained):
    with torch.set_grad_enabled(trained):
        same.made(lambda: Stack(**PROGRAMS[name]), (_x().requires_grad_(trained),), (_x(),))


class Asked:
    """Has a getter that raises, and no ``__getattr__``."""

    @property
    def missing(self):
        raise AttributeError("missing")


ASKED = Asked()


def _asks(x):
    return x + hasattr(ASKED, "missing")


def test_frames_of_the_translator_are_gone_after_a_capture():
    fast = optimize(lambda graph_module, inputs: graph_module.forward)(_asks)
    gc.collect()
    gc.disable()
    try:
        fast(_x())
        left = [held.f_code.co_qualname for held in gc.get_objects() if type(held) is types.FrameType]
    finally:
        gc.enable()
    assert not [name for name in left if name.startswith(("Frame.", "InstanceAttributes.", "Inliner."))]
