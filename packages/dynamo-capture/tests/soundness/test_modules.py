"""Changes to nn.Modules: flags, parameters, buffers, sub-modules, hooks, forward methods."""

from __future__ import annotations

_NET = """
class Block(nn.Module):
    def __init__(self, k=2):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self.drop = nn.Dropout(0.0)
        self.norm = nn.BatchNorm1d(4)
        self.register_buffer("scale", torch.full((4,), 2.0))
        self.k = k
        self.unread = 1
    def forward(self, x):
        h = self.lin(x) * self.scale * self.k
        if self.training: h = h + 1
        return self.drop(h)
torch.manual_seed(0)
net = Block()
"""
_CALL = _NET + "\ndef args(): return (torch.arange(8.0).reshape(2, 4),)\ndef f(x): return net(x)\n"
_ITSELF = _NET + "\ndef args(): return (torch.arange(8.0).reshape(2, 4),)\nf = net\n"
_STACK = """
torch.manual_seed(0)
class Layer(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.w = nn.Parameter(torch.full((4,), float(k)))
    def forward(self, x): return x * self.w
net = nn.Sequential(Layer(1), Layer(2), nn.ReLU())
named = nn.ModuleDict({"a": Layer(3), "b": Layer(4)})
def f(x):
    x = net(x)
    for name, layer in named.items(): x = layer(x) + len(name)
    return x
"""

_CHANGES = [
    "net.eval()",
    "net.k = 3",
    "net.lin.weight = nn.Parameter(torch.ones(4, 4))",
    "net.lin.weight.data = torch.ones(4, 4)",
    "net.lin.bias = None",
    "net.lin = nn.Linear(4, 4)",
    "net.lin = nn.Identity()",
    "net.scale = torch.ones(4)",
    "net.scale = None",
    "net.scale = torch.ones(4, dtype=torch.float64)",
    "net.scale.fill_(5.0)",
    "net.double()",
    "net.requires_grad_(False)",
    "net.lin.weight.requires_grad_(False)\nnet.lin.bias.requires_grad_(False)",
    "net.forward = lambda x: x",
    "Block.forward = lambda self, x: x * 2",
    "net.lin.forward = lambda x: x + 5",
    "net.drop = nn.ReLU()",
    "net.register_forward_hook(lambda m, a, out: out + 1)",
    "net.register_forward_pre_hook(lambda m, a: (a[0] * 2,))",
    "net.lin.register_forward_hook(lambda m, a, out: out * 3)",
    "Block.__call__ = lambda self, x: x",
    "net.__class__ = type('Other', (Block,), {'forward': lambda self, x: x})",
    "net.register_parameter('k2', None)\nnet.k = 9",
    "del net.scale\nnet.scale = torch.ones(4)",
    "net._parameters.clear()\nnet.lin._parameters['weight'] = nn.Parameter(torch.ones(4, 4))",
    "net.load_state_dict({k: torch.zeros_like(v) for k, v in net.state_dict().items()})",
    "net.lin.weight.data = torch.ones(4, 4).double()",
    "net.lin.weight.data = net.lin.weight.data.t().contiguous().t()  # silent",
    "net.lin.weight = nn.Parameter(torch.ones(1, 4))\nnet.lin.bias = nn.Parameter(torch.ones(1))",
    "net.to('meta')",
    "class Sub(nn.Parameter): pass\nnet.lin.weight = nn.Parameter(net.lin.weight.detach() * 2)",
    "del net.lin.weight",
    "type(net).k = property(lambda self: 11)",
    "net.training = False",
    "net.training = 0",
]
_OTHERS = [
    "net.unread = 2",
    "net.new = 1",
    "net.k = int('2')",
    "net.lin.weight = nn.Parameter(net.lin.weight.detach().clone())",
    "net.lin.weight.data.mul_(2)",
    "torch.optim.SGD(net.parameters(), 0.1).step()",
    "net.scale = net.scale.clone()",
    "net.norm.momentum = 0.5",
    "net.norm.eval()",
    "net.add_module('more', nn.Linear(2, 2))",
    "net.register_buffer('other', torch.ones(1))",
    "net.lin.weight.grad = torch.ones(4, 4)",
    "net.lin.note = 'x'",
    "Block.note = 1",
    "net.train()",
    "net.zero_grad()",
    "net.lin.weight.note = 1",
    "net.load_state_dict(net.state_dict())",
]

STATES = {
    "a module called by a function": (_CALL, _CHANGES, _OTHERS),
    "a compiled module": (_ITSELF, _CHANGES, _OTHERS),
    "containers": (
        _STACK,
        [
            "net.append(Layer(5))",
            "net[0] = Layer(7)",
            "del net[1]",
            "net[2] = nn.Sigmoid()",
            "net.insert(0, Layer(3))",
            "named['c'] = Layer(5)",
            "del named['a']",
            "named['a'] = Layer(9)",
            "named['a'] = named.pop('a')",
            "named['a'].w = nn.Parameter(torch.ones(1) * 9)",
            "net[0].w = net[1].w",
            "Layer.forward = lambda self, x: x - self.w",
            "net = nn.Sequential(*reversed(list(net)[:2]), nn.Tanh())",
            "net[1].register_forward_hook(lambda m, a, out: -out)",
            "named.training = False\nnet.eval()\nLayer.forward = lambda self, x: x if self.training else -x",
        ],
        ["net.note = 1", "net[0].note = 2", "net[0].w.data.mul_(3)", "net.eval()", "named.extra = 4"],
    ),
    "training flags that are read": (
        """
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        net.eval()
        def args(): return (torch.arange(8.0).reshape(2, 4),)
        def f(x): return net(x)
        """,
        [
            "net.train()",
            "net[1].train()",
            "net[1].running_mean.fill_(3.0)",
            "net[1].eps = 0.5",
            "net[1].running_mean = torch.ones(4)",
            "net[1].weight = None\nnet[1].bias = nn.Parameter(torch.ones(4))",
            "net[1].track_running_stats = False\nnet[1].running_mean = net[1].running_var = None",
        ],
        ["net[0].train()", "net[1].note = 1", "net.note = 2", "net[1].affine = False"],
    ),
    "shared parameters": (
        """
        torch.manual_seed(0)
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 4, bias=False), nn.Linear(4, 4, bias=False)
                self.b.weight = self.a.weight
            def forward(self, x): return self.a(x) + self.b(x)
        net = Tied()
        def f(x): return net(x)
        """,
        [
            "net.b.weight = nn.Parameter(torch.ones(4, 4))",
            "net.a.weight = nn.Parameter(torch.ones(4, 4))",
            "net.b = net.a; net.a = nn.Linear(4, 4, bias=False)",
        ],
        ["net.a.weight = net.b.weight", "net.note = 1"],
    ),
    "global module hooks": (
        _CALL
        + """
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
handles = []
def restore():
    for handle in handles: handle.remove()
""",
        [
            "handles.append(register_module_forward_hook(lambda m, a, out: out + 1))",
            "handles.append(register_module_forward_pre_hook(lambda m, a: (a[0] * 2,)))",
        ],
        [],
    ),
    "library classes": (
        """
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 4), nn.GELU())
        kept = nn.Linear.forward, nn.GELU.forward, nn.Module.__call__
        def restore(): nn.Linear.forward, nn.GELU.forward, nn.Module.__call__ = kept
        def f(x): return net(x)
        """,
        [
            "nn.Linear.forward = lambda self, x: x * 3",
            "nn.GELU.forward = lambda self, x: x",
            "nn.Module.__call__ = lambda self, x: x * 7",
        ],
        ["nn.Linear.note = 1\ndel nn.Linear.note", "nn.ReLU.note = 1\ndel nn.ReLU.note"],
    ),
    "parametrizations": (
        """
        import torch.nn.utils.parametrize as P
        torch.manual_seed(0)
        net = nn.Linear(4, 4)
        class Double(nn.Module):
            def forward(self, w): return w * 2
        def f(x): return net(x)
        """,
        [
            "P.register_parametrization(net, 'weight', Double())",
            "P.register_parametrization(net, 'bias', Double())",
        ],
        ["net.note = 1"],
    ),
}


def test_a_change_is_noticed(change):
    change.must_be_noticed()


def test_what_was_not_read_does_not_matter(other):
    other.must_not_matter()
