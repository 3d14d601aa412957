"""``nn.Module`` in every form: containers, hooks, buffers, parametrizations, lazy and changing modules."""

import collections
import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

X = torch.arange(6.0).reshape(2, 3) + 1


def seeded(make):
    """The same weights for each way of running the program."""

    def build():
        torch.manual_seed(1)
        return make()

    return build


class Block(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.linear(self.norm(x)))


def test_sequential(whole):
    whole.made(seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))), (X,), (X + 1,))


def test_sequential_by_name_and_slices(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.steps = nn.Sequential(
                collections.OrderedDict(first=nn.Linear(3, 3), act=nn.Tanh(), last=nn.Linear(3, 3))
            )

        def forward(self, x):
            y = self.steps.first(x) + self.steps[0](x)
            for step in self.steps[1:]:
                y = step(y)
            return y, len(self.steps), self.steps[-1](x)

    whole.made(seeded(Net), (X,), (X,))


def test_module_list_and_dict(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block() for _ in range(3)])
            self.heads = nn.ModuleDict({"a": nn.Linear(3, 1), "b": nn.Linear(3, 2)})

        def forward(self, x, head):
            for index, block in enumerate(self.blocks):
                x = block(x) * (index + 1)
            for block in self.blocks[:1]:
                x = block(x)
            return (
                self.heads[head](x),
                "c" in self.heads,
                [name for name, _ in self.heads.items()],
                len(self.blocks),
            )

    whole.made(seeded(Net), (X, "a"), (X, "b"), (X, "a"))


def test_parameter_list_and_dict(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.ParameterList([nn.Parameter(torch.full((3,), float(i))) for i in range(3)])
            self.table = nn.ParameterDict({"k": nn.Parameter(torch.ones(3))})

        def forward(self, x):
            for weight in self.weights:
                x = x * weight + self.table["k"]
            return x, len(self.weights), self.weights[1]

    whole.made(Net, (X,), (X,))


def test_training_flag_changes_between_calls(whole):
    def make():
        net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))

        return lambda x, training: (net.train(training), net(x))[1]

    whole.made(seeded(make), (X, False), (X, True), (X, False), (X, True))


def test_batch_norm_statistics(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3, momentum=0.3)

        def forward(self, x):
            return self.norm(x), self.norm.running_mean, self.norm.num_batches_tracked

    whole.made(Net, (X,), (X + 1,), (X * 2,))


def test_buffers_are_written(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(3))
            self.register_buffer("count", torch.tensor(0), persistent=False)

        def forward(self, x):
            self.total += x.sum(0)
            self.count.add_(1)
            self.last = x.mean()
            return self.total * 2, self.count

    whole.made(Net, (X,), (X,), (X + 1,))


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


def test_forward_hooks(whole):
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


def test_hook_is_added_and_removed_between_calls(same):
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


def test_backward_hook(same):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.linear.register_full_backward_hook(lambda m, gi, go: (gi[0] * 2,))

        def forward(self, x):
            return self.linear(x)

    same.made(seeded(Net), (X.clone().requires_grad_(),), (X.clone().requires_grad_(),))


def test_weight_norm_parametrization(same):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))

        def forward(self, x):
            return self.linear(x)

    same.made(seeded(Net), (X,), (X + 1,))


def test_own_parametrization(whole):
    class Symmetric(nn.Module):
        def forward(self, w):
            return w.triu() + w.triu(1).transpose(-1, -2)

    def make():
        net = nn.Linear(3, 3)
        nn.utils.parametrize.register_parametrization(net, "weight", Symmetric())
        return net

    whole.made(seeded(make), (X,), (X * 2,))


def test_lazy_module(same):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.LazyLinear(4)

        def forward(self, x):
            torch.manual_seed(5)
            return self.linear(x)

    same.made(Net, (X,), (X,))


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


def test_shared_parameters(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 3)
            self.out = nn.Linear(3, 7, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, i):
            return self.out(self.embed(i)), self.out.weight is self.embed.weight

    whole.made(seeded(Net), (torch.tensor([1, 2]),), (torch.tensor([3, 0]),))


def test_module_is_called_recursively(whole):
    class Tree(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.child = Tree(depth - 1) if depth else None

        def forward(self, x):
            x = self.linear(x)
            return x if self.child is None else self.child(x) + x

    whole.made(seeded(lambda: Tree(3)), (X,), (X + 1,))


def test_parameters_are_walked(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.blocks = nn.ModuleList([Block(), Block()])

        def forward(self, x):
            penalty = sum((p**2).sum() for p in self.parameters())
            names = [name for name, _ in self.named_parameters()]
            kinds = [type(m).__name__ for m in self.modules()]
            return x * penalty, names, kinds, [n for n, _ in self.named_children()], len(list(self.buffers()))

    whole.made(seeded(Net), (X,), (X,))


def test_state_dict_inside(same):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return x + self.state_dict()["linear.weight"].sum(), sorted(self.state_dict())

    same.made(seeded(Net), (X,), (X,))


def test_get_submodule_and_getattr(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(3, 3)
            self.b = nn.Sequential(nn.Linear(3, 3))

        def forward(self, x, name):
            part = getattr(self, name)
            return part(x), self.get_submodule("b.0")(x), hasattr(self, "nope"), isinstance(part, nn.Linear)

    whole.made(seeded(Net), (X, "a"), (X, "b"), (X, "a"))


def test_property_and_static_method_of_a_module(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        @property
        def doubled(self):
            return self.weight * 2

        @staticmethod
        def add(x, k):
            return x + k

        @classmethod
        def name(cls):
            return cls.__name__

        def forward(self, x):
            return self.add(x, self.doubled), self.name()

    whole.made(Net, (X,), (X,))


def test_inherited_forward(whole):
    class Base(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return self.hook(self.linear(x))

        def hook(self, x):
            return x

    class Below(Base):
        def forward(self, x):
            return super().forward(x) * 2

        def hook(self, x):
            return super().hook(x) + 1

    whole.made(seeded(Below), (X,), (X,))


def test_module_made_inside(same):
    def f(x):
        net = nn.ReLU()
        return net(x - 3), nn.Softmax(dim=-1)(x), nn.LayerNorm(3)(x)

    same(f, (X,), (X + 1,))


def test_functional_forms(whole):
    def f(x, w, b):
        return (
            F.linear(x, w, b), F.relu(x), F.softmax(x, -1), F.layer_norm(x, (3,)), F.gelu(x), F.silu(x), F.pad(x, (1, 1)),
            F.mse_loss(x, x + 1), F.cross_entropy(x, torch.tensor([0, 2])), F.one_hot(torch.tensor([0, 2]), 3),
            F.normalize(x, dim=-1), F.cosine_similarity(x, x + 1), F.interpolate(x[None], scale_factor=2),
        )  # fmt: skip

    whole(f, (X, torch.ones(3, 3), torch.zeros(3)), (X + 1, torch.eye(3), torch.ones(3)))


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules(same, name):
    same.made(seeded(lambda: getattr(nn, name)(3, 4, batch_first=True)), (X[None],), (X[None] + 1,))


def test_attention_modules(whole):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x, need_weights=False)[0]

    whole.made(seeded(Net), (torch.randn(2, 3, 4),), (torch.randn(2, 3, 4),))


def test_transformer_layer(same):
    same.made(
        seeded(lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)),
        (torch.randn(2, 3, 4),),
        (torch.randn(2, 3, 4),),
    )


def test_convolutions_and_pooling(whole):
    def make():
        return nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(2, 3), nn.Dropout(0.3),
        )  # fmt: skip

    whole.made(seeded(make), (torch.randn(2, 1, 8, 8),), (torch.randn(2, 1, 8, 8),))


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
