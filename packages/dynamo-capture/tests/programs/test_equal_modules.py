"""Calls of equal modules in a loop: what is repeated, what is not, and that nobody can tell."""

import types

import pytest
import torch
from torch import nn

from dynamo_capture import allow_in_graph, optimize
from dynamo_capture.semantics.calls.equal_modules import calls, replaying

WIDTH = 4


class Scaled(nn.Module):
    """A parameter, a buffer and a number of each kind that a program may keep in a module."""

    factor = 1.5

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(WIDTH))
        self.register_buffer("shift", torch.randn(WIDTH))
        self.sizes, self.options, self.name, self.passed_on = (WIDTH, 2), {"power": 2}, "scaled", 0
        self.seen = []

    def forward(self, x):
        power = self.options["power"]
        if getattr(self.weight, "is_squared", False):
            power = 3
        return (x * self.weight * self.factor + self.shift).view(-1, self.sizes[0]) ** power


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.norm, self.drop, self.scaled = nn.LayerNorm(WIDTH), nn.Dropout(0.0), Scaled()
        self.act = torch.tanh

    def forward(self, x, mask=None, scale=1.0):
        y = self.scaled(self.norm(x))
        if mask is not None:
            y = y * mask
        return x + self.drop(self.second(self.act(self.first(y)))) * scale


class Stack(nn.Module):
    def __init__(self, count=7):
        super().__init__()
        torch.manual_seed(3)
        self.layers = nn.ModuleList(Layer() for _ in range(count))

    def forward(self, x):
        mask = x > 0
        for layer in self.layers:
            x = layer(x, mask=mask)
        return x


@pytest.fixture
def repeated(monkeypatch):
    """The modules whose calls were repeated."""
    found = []
    plain = replaying.perform

    def perform(tx, record, below, known):
        found.append(str(below[0]))
        return plain(tx, record, below, known)

    monkeypatch.setattr(replaying, "perform", perform)
    return found


def _captured(model, *given):
    """The graph's nodes with what is known of them, and the guards."""
    graphs = []

    def backend(graph_module, inputs):
        graphs.append([(str(n.target), n.name, str(n.args), str(n.meta)) for n in graph_module.graph.nodes])
        return graph_module.forward

    fast = optimize(backend)(model)
    fast(*given)
    found = fast.__fxstack_capture__.report.replacements
    return graphs, [{(repr(guard), str(guard.where)) for guard in one.guards} for _, one in found]


def _x():
    return torch.randn(3, WIDTH)


def test_from_the_fourth_on_a_call_repeats_the_third(whole, repeated):
    whole.made(Stack, (_x(),), (_x(),), graphs=1)
    assert len(repeated) == 4


@pytest.mark.parametrize("trained", [True, False])
def test_graph_and_guards_are_those_of_each_call_traced(repeated, monkeypatch, trained):
    model = Stack()
    with torch.set_grad_enabled(trained):
        now = _captured(model, _x())
        assert len(repeated) == 4
        monkeypatch.setattr(calls, "_TRACED", 100)
        assert _captured(model, _x()) == now
    assert len(repeated) == 4


def _hooked(layer):
    layer.register_forward_hook(lambda module, given, result: result * 2)


def _inner_hooked(layer):
    layer.first.register_forward_pre_hook(lambda module, given: (given[0] + 1,))


def _patched(layer):
    layer.forward = types.MethodType(lambda self, x, mask=None: x * 3, layer)


def _inner_patched(layer):
    layer.first.forward = lambda x: x * 3


class _OtherScaled(Scaled):
    factor = 0.5


class _OtherLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x) - 1


def _of_another_class(layer):
    made = _OtherLinear(WIDTH, WIDTH)
    made.load_state_dict(layer.first.state_dict())
    layer.first = made


def _replaced_scaled(layer):
    layer.scaled.__class__ = _OtherScaled


def _with_frozen_weight(layer):
    layer.first.weight.requires_grad_(False)


def _of_other_strides(layer):
    layer.first.weight = nn.Parameter(layer.first.weight.detach().t().contiguous().t())


def _attribute_of_parameter(layer):
    layer.scaled.weight.is_squared = True


def _buffer_for_parameter(layer):
    held = layer.scaled.weight.detach()
    del layer.scaled.weight
    layer.scaled.register_buffer("weight", held)


def _plain_tensor(layer):
    held = layer.scaled.weight.detach()
    del layer.scaled.weight
    layer.scaled.weight = held


def _with_bias(layer):
    layer.second.bias = nn.Parameter(torch.ones(WIDTH))


def _wider(layer):
    layer.first, layer.second = nn.Linear(WIDTH, 9), nn.Linear(9, WIDTH, bias=False)


CHANGES = {
    "a hook": _hooked,
    "a hook inside": _inner_hooked,
    "forward of the instance": _patched,
    "forward of an instance inside": _inner_patched,
    "a class inside": _of_another_class,
    "the class of an object": _replaced_scaled,
    "a frozen parameter": _with_frozen_weight,
    "strides": _of_other_strides,
    "sizes": _wider,
    "an attribute of a parameter": _attribute_of_parameter,
    "a buffer": _buffer_for_parameter,
    "a plain tensor": _plain_tensor,
    "a bias": _with_bias,
    "an attribute over the class's": lambda layer: setattr(layer.scaled, "factor", 2.5),
    "a number": lambda layer: setattr(layer.norm, "eps", 0.5),
    "dropout": lambda layer: setattr(layer.drop, "p", 1.0),
    "training": lambda layer: layer.drop.eval(),
    "an item of a dict": lambda layer: layer.scaled.options.update(power=3),
    "another dict": lambda layer: setattr(layer.scaled, "options", {"power": 3}),
    "a class of dicts": lambda layer: setattr(layer.scaled, "options", _Powers()),
    "a tuple": lambda layer: setattr(layer.scaled, "sizes", (WIDTH, 2, 1)),
    "a function": lambda layer: setattr(layer, "act", torch.sigmoid),
    "a function of the program": lambda layer: setattr(layer, "act", lambda x: x * 2),
    "no weight": lambda layer: setattr(layer.norm, "weight", None),
    "no module": lambda layer: setattr(layer, "drop", nn.Identity()),
    "one more attribute": lambda layer: setattr(layer, "more", 1),
}
"""What may differ in one of the layers."""


class _Powers(dict):
    def __getitem__(self, key):
        return 5


@pytest.mark.parametrize("number", [0, 2, 4, 6])
@pytest.mark.parametrize("change", CHANGES)
def test_a_layer_that_differs(same, change, number):
    def make():
        model = Stack()
        CHANGES[change](model.layers[number])
        return model

    same.made(make, (_x(),), (_x(),))


@pytest.mark.parametrize("change", CHANGES)
def test_a_layer_that_differs_after_the_first_call(change):
    model = Stack()
    fast = optimize(lambda graph_module, inputs: graph_module.forward)(model)
    fast(_x())
    CHANGES[change](model.layers[4])
    x = _x()
    torch.testing.assert_close(fast(x), model(x))


def test_what_does_not_count_is_repeated(whole, repeated):
    def make():
        model = Stack()
        for number, layer in enumerate(model.layers):
            layer.scaled.passed_on, layer.scaled.name = number, f"scaled {number}"
            layer.scaled.seen.append(number)
        return model

    whole.made(make, (_x(),))
    assert len(repeated) == 4


def _tied(model):
    model.layers[5].first.weight = model.layers[1].first.weight


def _tied_inside(model):
    for layer in model.layers:
        layer.second.weight = layer.first.weight
    model.layers[5].second.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))


def _one_for_all(model):
    for layer in model.layers:
        layer.second.weight = model.layers[0].second.weight


def _one_for_all_but_one(model):
    _one_for_all(model)
    model.layers[5].second.weight = nn.Parameter(torch.randn(WIDTH, WIDTH))


def _module_shared(model):
    model.layers[5].norm = model.layers[1].norm


def _twice(model):
    model.layers[5] = model.layers[4]


def _same_storage(model):
    held = torch.randn(2, WIDTH, WIDTH)
    for number in (4, 5):
        model.layers[number].first.weight.data = held[number - 4]


@pytest.mark.parametrize(
    "tie", [_tied, _tied_inside, _one_for_all, _one_for_all_but_one, _module_shared, _twice, _same_storage]
)
def test_parts_that_layers_share(same, tie):
    def make():
        model = Stack()
        tie(model)
        return model

    same.made(make, (_x(),), (_x(),))


def test_one_weight_for_all_is_repeated(whole, repeated):
    def make():
        model = Stack()
        _one_for_all(model)
        return model

    whole.made(make, (_x(),))
    assert len(repeated) == 4


class _Used(Stack):
    def __init__(self, use):
        super().__init__()
        self.use, self.log, self.count = use, [], 0

    def forward(self, x):
        for number, layer in enumerate(self.layers):
            x = self.use(self, number, layer, x)
        return x


def _with_numbers(model, number, layer, x):
    return layer(x, scale=float(number))


def _some_with_masks(model, number, layer, x):
    return layer(x, None if number % 2 else x > 0)


def _without_gradients(model, number, layer, x):
    with torch.set_grad_enabled(number != 5):
        return layer(x)


def _in_other_precision(model, number, layer, x):
    with torch.autocast("cpu", enabled=number in (3, 5)):
        return layer(x).float()


def _writes_to_layer(model, number, layer, x):
    if number == 4:
        layer.scaled.factor = 3.0
    return layer(x)


def _writes_to_class(model, number, layer, x):
    if number == 4:
        Scaled.factor = 3.0
    try:
        return layer(x)
    finally:
        if number == 6:
            Scaled.factor = 1.5


def _writes_ahead(model, number, layer, x):
    if number == 0:
        model.layers[5].scaled.factor = 3.0
    return layer(x)


def _writes_behind(model, number, layer, x):
    x = layer(x)
    if number == 6:
        for other in model.layers:
            other.scaled.options["power"] = 4
            other.scaled.factor = model.layers[4].scaled.factor + 1
    return x


def _counts(model, number, layer, x):
    model.count += 1
    return layer(x, scale=model.count)


def _collects(model, number, layer, x):
    x = layer(x)
    model.log.append(x)
    return x


def _changes_input(model, number, layer, x):
    x = layer(x)
    return x.mul_(2) if number == 4 else x


def _views(model, number, layer, x):
    return layer(x.t().t() if number == 5 else x)


def _handles(model, number, layer, x):
    try:
        if number == 4:
            raise ValueError("four")
    except ValueError:
        return layer(x)
    return layer(x)


def _twice_each(model, number, layer, x):
    return layer(layer(x))


def _breaks_behind(model, number, layer, x):
    x = layer(x)
    if number == 5:
        print(end="")
    return x


def _asks_afterwards(model, number, layer, x):
    x = layer(x)
    return x if model.layers[4].first.weight is not model.layers[number].first.weight else x + 1


@pytest.mark.parametrize(
    "use",
    [
        _with_numbers,
        _some_with_masks,
        _without_gradients,
        _in_other_precision,
        _writes_to_layer,
        _writes_to_class,
        _writes_ahead,
        _writes_behind,
        _counts,
        _collects,
        _changes_input,
        _views,
        _handles,
        _twice_each,
        _breaks_behind,
        _asks_afterwards,
    ],
)
def test_what_calls_the_layers(same, use):
    same.made(lambda: _Used(use), (_x(),), (_x(),))


class _Effects(nn.Module):
    def __init__(self, does, held):
        super().__init__()
        self.inner, self.does, self.held, self.calls = nn.Linear(WIDTH, WIDTH), does, held, 0

    def forward(self, x):
        return self.does(self, x)


def _notes(layer, x):
    layer.held.append(len(layer.held))
    return layer.inner(x) + len(layer.held)


def _counts_calls(layer, x):
    layer.calls += 1
    return layer.inner(x) * layer.calls


def _keeps_result(layer, x):
    layer.kept = layer.inner(x)
    return layer.kept


def _keeps_statistics(layer, x):
    with torch.no_grad():
        layer.inner.bias.add_(1)
    return layer.inner(x)


def _draws(layer, x):
    return nn.functional.dropout(layer.inner(x), 0.5, True)


def _raises(layer, x):
    try:
        layer.inner.nothing
    except AttributeError:
        return layer.inner(x) + 1
    return x


def _is_the_first(layer, x):
    return layer.inner(x) if layer is layer.held[0] else layer.inner(x) * 2


def _of_identity(layer, x):
    return layer.inner(x) + len({id(layer), id(layer.held)})


def _sizes(layer, x):
    return layer.inner(x).reshape(*x.shape[:-1], 2, -1).flatten(1) / x.size(0)


def _tuple(layer, x):
    return x.chunk(2, 1)[0].repeat(1, 2) + sum(part.sum() for part in layer.inner(x).unbind(0))


def _generator(layer, x):
    return sum(part(x) for part in [layer.inner] if all(one for one in (True, True)))


def _in_memory_of_input(layer, x):
    return layer.inner(x).add_(x)


@pytest.mark.parametrize(
    "does",
    [
        _notes,
        _counts_calls,
        _keeps_result,
        _keeps_statistics,
        _draws,
        _raises,
        _is_the_first,
        _of_identity,
        _sizes,
        _tuple,
        _generator,
        _in_memory_of_input,
    ],
)
def test_what_layers_do(same, does):
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            held = []
            self.layers = nn.ModuleList(_Effects(does, held) for _ in range(6))
            if does is _is_the_first:
                held.append(self.layers[0])

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x

    same.made(Model, (_x(),), (_x(),))


def test_tuples_and_dicts_are_handed_on(whole, repeated):
    class Pair(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(WIDTH, WIDTH)

        def forward(self, x, places, **rest):
            one, other = places
            return self.inner(x) * one + other, x * 2, rest.get("more")

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(3)
            self.layers = nn.ModuleList(Pair() for _ in range(6))

        def forward(self, x):
            places, sums = (x.sin(), x.cos()), []
            for layer in self.layers:
                x, total, more = layer(x, places, more=2)
                sums.append(total * more)
            return x, sums

    whole.made(Model, (_x(),), graphs=1)
    assert len(repeated) == 3


def test_a_part_that_is_left_to_the_graph(same):
    def make():
        model = Stack()
        allow_in_graph(model.layers[4].first)
        return model

    same.made(make, (_x(),))


def test_an_operation_that_gives_something_else_traces_all(monkeypatch):
    model, x = Stack(), _x()
    monkeypatch.setattr(replaying, "_takes", lambda tx, one, result, known: False)
    fast = optimize(lambda graph_module, inputs: graph_module.forward, fullgraph=True)(model)
    torch.testing.assert_close(fast(x), model(x))
