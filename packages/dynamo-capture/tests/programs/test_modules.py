"""``nn.Module`` in every form: containers, buffers, parametrizations, lazy, recurrent and attention modules."""

import collections

import pytest
import torch
from torch import nn
from torch.nn import functional as F

X = torch.arange(6.0).reshape(2, 3) + 1


class Block(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)
        self.act = nn.GELU()

    def forward(self, x):
        return x + self.act(self.linear(self.norm(x)))


def test_sequential(whole, seeded):
    whole.made(seeded(lambda: nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))), (X,), (X + 1,))


def test_sequential_by_name_and_slices(whole, seeded):
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


def test_module_list_and_dict(whole, seeded):
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


def test_weight_norm_parametrization(same, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.utils.parametrizations.weight_norm(nn.Linear(3, 3))

        def forward(self, x):
            return self.linear(x)

    same.made(seeded(Net), (X,), (X + 1,))


def test_own_parametrization(whole, seeded):
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


def test_shared_parameters(whole, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(7, 3)
            self.out = nn.Linear(3, 7, bias=False)
            self.out.weight = self.embed.weight

        def forward(self, i):
            return self.out(self.embed(i)), self.out.weight is self.embed.weight

    whole.made(seeded(Net), (torch.tensor([1, 2]),), (torch.tensor([3, 0]),))


def test_module_is_called_recursively(whole, seeded):
    class Tree(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.linear = nn.Linear(3, 3)
            self.child = Tree(depth - 1) if depth else None

        def forward(self, x):
            x = self.linear(x)
            return x if self.child is None else self.child(x) + x

    whole.made(seeded(lambda: Tree(3)), (X,), (X + 1,))


def test_parameters_are_walked(whole, seeded):
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


def test_state_dict_inside(same, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x):
            return x + self.state_dict()["linear.weight"].sum(), sorted(self.state_dict())

    same.made(seeded(Net), (X,), (X,))


def test_get_submodule_and_getattr(whole, seeded):
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


def test_inherited_forward(whole, seeded):
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

    calls = (X, torch.ones(3, 3), torch.zeros(3)), (X + 1, torch.eye(3), torch.ones(3))
    whole(f, *calls, ignore={"own version"})  # the kernel of `one_hot` writes into zeros


@pytest.mark.parametrize("name", ["LSTM", "GRU", "RNN"])
def test_recurrent_modules(same, name, seeded):
    same.made(seeded(lambda: getattr(nn, name)(3, 4, batch_first=True)), (X[None],), (X[None] + 1,))


def test_attention_modules(whole, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x):
            return self.attention(x, x, x, need_weights=False)[0]

    whole.made(seeded(Net), (torch.randn(2, 3, 4),), (torch.randn(2, 3, 4),))


def test_attention_without_gradients(whole, seeded):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True).eval()

        @torch.no_grad()
        def forward(self, x):  # torch looks at the modes of dispatch before it takes its fast path
            return self.attention(x, x, x)

    whole.made(seeded(Net), (torch.randn(2, 3, 4),), (torch.randn(2, 3, 4),))


def test_transformer_layer(same, seeded):
    same.made(
        seeded(lambda: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)),
        (torch.randn(2, 3, 4),),
        (torch.randn(2, 3, 4),),
    )


def test_convolutions_and_pooling(whole, seeded):
    def make():
        return nn.Sequential(
            nn.Conv2d(1, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(2, 3), nn.Dropout(0.3),
        )  # fmt: skip

    whole.made(seeded(make), (torch.randn(2, 1, 8, 8),), (torch.randn(2, 1, 8, 8),))


def test_lazy_modules_made_where_they_are_called(same):
    """Their last parameter is set in the graph that the call is in."""

    def f(x):
        torch.manual_seed(0)
        linear = nn.LazyLinear(2)
        made = linear(x), type(linear).__name__, linear.bias.shape
        torch.manual_seed(1)
        chain = nn.Sequential(nn.LazyConv1d(2, 1), nn.LazyBatchNorm1d())
        return made, chain(x[None].transpose(1, 2)), [type(part).__name__ for part in chain]

    same(f, (torch.ones(3, 2),), (torch.ones(4, 2),))
