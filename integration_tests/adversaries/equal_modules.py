"""Programs that call modules of one class in a loop, some of which differ; drawn at random, eager against compiled.

A layer has parameters, numbers, containers and modules inside; what it does with them is drawn. Layers of one class are
told apart by what a program may do to one of them: hooks, other values, shared parts, attributes of its own, before
the first call or between calls. The loop hands on arguments, changes things meanwhile, or does something to a result.

    python integration_tests/adversaries/equal_modules.py 500 --seed 1
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main

_HEAD = """
import types

import torch
import torch.nn.functional as F
from torch import nn

COUNT = 0
LOG = []


def filled(module):
    with torch.no_grad():
        for number, parameter in enumerate(module.parameters()):
            count = parameter.numel()
            parameter.copy_((torch.arange(count) % (5 + number % 3) - 2).view(parameter.shape) * 0.125 + 0.25)
    return module


class Inner(nn.Module):
    power = 1.0

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(4))
        self.scale, self.items, self.table = 0.5, [1.0, 2.0], {"add": 0.25}

    def forward(self, x):
        return x * self.weight * self.power + self.table["add"]


class OtherInner(Inner):
    power = 2.0
""".lstrip()

_STATEMENTS = (
    "x = self.linear(x)",
    "x = x + self.linear(self.norm(x))",
    "x = self.inner(x)",
    "x = self.norm(x)",
    "x = self.drop(x)",
    "x = torch.tanh(x)",
    "x = x + self.bias",
    "x = x * self.factor",
    "x = x * self.inner.scale",
    "x = x + self.inner.items[0]",
    "x = x * len(self.inner.items)",
    "x = self.act(x)",
    "x = F.linear(x, self.linear.weight, self.bias)",
    "x = torch.cat([x, x], 1).view(-1, 2, 4).sum(1)",
    "a, b = x.chunk(2, 1)\n        x = torch.cat([b, a], 1)",
    "x = x.reshape(*x.shape[:-1], 2, 2).transpose(1, 2).flatten(1)",
    "if self.flag:\n            x = x * 2",
    "if hasattr(self, 'extra'):\n            x = x + self.extra",
    "if getattr(self.bias, 'mark', None) is not None:\n            x = x - 1",
    "if self.linear.bias is not None:\n            x = x + self.linear.bias",
    "if x.requires_grad:\n            x = x * 1.5",
    "if torch.is_grad_enabled():\n            x = x + 0.5",
    "if self.training:\n            x = x * 0.5",
    "for part in (self.norm, self.inner):\n            x = part(x)",
    "for name, part in self.inner.named_parameters():\n            x = x + part",
    "x = x * sum(value for value in self.inner.table.values())",
    "x = x + (self is MODEL.layers[0])",
    "x = x + (self.inner is MODEL.layers[-1].inner)",
    "x = x if self.index is None else x + self.index",
    "x = x if mask is None else x * mask",
    "x = x * scale",
    "x = x + COUNT",
    "try:\n            x = x + self.missing\n        except AttributeError:\n            x = x - 0.5",
    "self.calls += 1",
    "LOG.append(len(LOG))",
    "self.inner.items.append(3.0)",
    "x = x.clone()\n        x += self.bias",
    "with torch.no_grad():\n            x = x + self.bias",
)
_RARE = frozenset(_STATEMENTS[-5:])
_DIFFERENCES = (
    "LAYER.register_forward_hook(lambda module, given, result: result * 2)",
    "LAYER.linear.register_forward_pre_hook(lambda module, given: (given[0] + 1,))",
    "LAYER.inner.register_forward_hook(lambda module, given, result: result + 1)",
    "LAYER.forward = lambda x, *given, **named: x * 3",
    "LAYER.inner.forward = lambda x: x * 3",
    "LAYER.inner = filled(OtherInner())",
    "LAYER.inner.__class__ = OtherInner",
    "LAYER.inner.power = 3.0",
    "LAYER.inner.scale = 2.0",
    "LAYER.inner.scale = 1",
    "LAYER.inner.items = [5.0, 2.0]",
    "LAYER.inner.items = (1.0, 2.0)",
    "LAYER.inner.items.append(1.0)",
    "LAYER.inner.table = {'add': 1.0}",
    "LAYER.inner.table['more'] = 1.0",
    "LAYER.factor = 3.0",
    "LAYER.factor = torch.tensor(3.0)",
    "LAYER.flag = not LAYER.flag",
    "LAYER.extra = 1.0",
    "LAYER.index = 3",
    "LAYER.act = torch.sigmoid",
    "LAYER.act = nn.ReLU()",
    "LAYER.act = lambda x: x * 2",
    "LAYER.bias.mark = 1",
    "LAYER.bias.requires_grad_(False)",
    "LAYER.linear.weight.requires_grad_(False)",
    "LAYER.bias = nn.Parameter(LAYER.bias.detach() * 2)",
    "LAYER.linear = filled(nn.Linear(4, 4, bias=False))",
    "LAYER.linear.weight = nn.Parameter(LAYER.linear.weight.detach().t().contiguous().t())",
    "LAYER.norm = nn.Identity()",
    "LAYER.norm.eps = 0.5",
    "LAYER.drop.p = 1.0",
    "LAYER.drop.eval()",
    "LAYER.eval()",
    "LAYER.linear.weight = OTHER.linear.weight",
    "LAYER.bias = OTHER.bias",
    "LAYER.inner = OTHER.inner",
    "LAYER.inner.items = OTHER.inner.items",
    "LAYER.inner.table = OTHER.inner.table",
    "LAYER.bias = LAYER.linear.bias",
    "MODEL.layers[NUMBER] = OTHER",
    "for layer in MODEL.layers:\n    layer.inner = LAYER.inner",
    "for layer in MODEL.layers:\n    layer.bias = LAYER.bias",
    "Layer.factor = 2.0",
    "Inner.power = 4.0",
    "LAYER.unused = object()",
)
_USES = (
    "x = layer(x)",
    "x = layer(x)",
    "x = layer(x, mask)",
    "x = layer(x, scale=2.0)",
    "x = layer(x, mask if number % 2 else None)",
    "x = layer(x, None, float(number > 3))",
    "x = layer(x.t().t())",
    "x = layer(layer(x))",
    "with torch.set_grad_enabled(number != 4):\n            x = layer(x)",
    "x = layer(x) + layer.factor",
    "x = layer(x)\n        kept.append(x)",
)
_BETWEEN = (
    "if number == 4:\n            layer.factor = 2.5",
    "if number == 3:\n            MODEL.layers[5].inner.scale = 2.5",
    "if number == 4:\n            COUNT += 1",
    "if number == 5:\n            x = (x + 0).mul_(2)",
    "if number == 5:\n            print(end='')",
    "if number == 4:\n            layer.inner.items.append(1.0)",
    "if number == 4:\n            vars(layer.inner)['scale'] = 3.0",
    "if number == 5:\n            x = x + (layer.bias is MODEL.layers[4].bias)",
    "if number == 4:\n            Inner.power = 1.5",
    "COUNT += 1",
)


def draw(random: Random) -> str:
    """The text of one program."""
    frequent = [one for one in _STATEMENTS if one not in _RARE]
    body = [random.choice(frequent) for _ in range(random.randint(2, 7))]
    if random.random() < 0.12:
        body.insert(random.randrange(len(body)), random.choice(sorted(_RARE)))
    layer = f"""
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm, self.drop, self.inner = nn.Linear(4, 4), nn.LayerNorm(4), nn.Dropout(0.0), Inner()
        self.bias = nn.Parameter(torch.empty(4))
        self.factor, self.flag, self.act, self.index, self.calls = 0.75, False, torch.relu, None, 0

    def forward(self, x, mask=None, scale=1.0):
        {_joined(body)}
        return x
"""
    count = random.randint(5, 9)
    model = f"""
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(filled(Layer()) for _ in range({count}))


MODEL = Model()
{_differences(random, count, (0, 0, 1, 1, 2))}


def program(x):
    global COUNT
    mask, kept = x > 0, []
    for number, layer in enumerate(MODEL.layers):
        {_loop(random)}
    return x, kept
"""
    return f"{_HEAD}\n{layer}\n{model}\n{_calls(random, count)}"


def _joined(lines: list[str]) -> str:
    return "\n        ".join(lines)


def _loop(random: Random) -> str:
    lines = [random.choice(_USES)]
    if random.random() < 0.25:
        lines.insert(random.randrange(2), random.choice(_BETWEEN))
    return _joined(lines)


def _differences(random: Random, count: int, numbers: tuple[int, ...]) -> str:
    lines = []
    for _ in range(random.choice(numbers)):
        number, other = random.randrange(count), random.randrange(count)
        text = random.choice(_DIFFERENCES)
        for name, value in (
            ("NUMBER", str(number)),
            ("LAYER", f"MODEL.layers[{number}]"),
            ("OTHER", f"MODEL.layers[{other}]"),
        ):
            text = text.replace(name, value)
        lines.append(text)
    return "\n".join(lines)


def _calls(random: Random, count: int) -> str:
    changes, calls = [], []
    for number in range(3):
        body = _differences(random, count, (0, 1, 1)) if number else ""
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        changes.append(f"def change{number}():\n{lines or '    pass' + chr(10)}")
        rows = ", ".join(
            f"[{', '.join(random.choice(('0.5', '-1.0', '2.0', '0.25')) for _ in range(4))}]"
            for _ in range(2)
        )
        calls.append(f"lambda: (torch.tensor([{rows}], requires_grad={random.random() < 0.7}),)")
    return "\n\n".join([*changes, f"CHANGES = [change0, change1, change2]\nCALLS = [{', '.join(calls)}]\n"])


_IGNORED = frozenset({"version", "grad version", "lines", "grad layout", "own version", "version of results"})
_NEAR = {"aot_eager": (1e-5, 1e-5), "inductor": (1e-4, 1e-4)}
COMPARING = Comparing(
    {"eager": frozenset(), "aot_eager": _IGNORED, "inductor": _IGNORED}, _NEAR, gradients=_NEAR
)


if __name__ == "__main__":
    main(draw, COMPARING)
