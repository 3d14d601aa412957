"""Programs of some fifty lines in which one operation meets a planted fault."""

from __future__ import annotations

_MODEL = """\
import torch
import torch.nn.functional as F
from torch import nn

SCALE = 2
SEEN = []
STATE = {"calls": 0}


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        b, n, c = x.shape
        q, k, v = self.project(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4).unbind(0)
        scores = (q @ k.transpose(-1, -2)) / (c // self.heads) ** 0.5
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, n, c))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x, y, flag):
        x = x + self.attention(self.norm(x))
        hidden = F.gelu(self.up(x))
        return x + self.down(hidden)


def helper(x, y, n, flag):
    parts = []
    for index in range(2):
        part = x * (index + 1)
        if flag:
            part = part + y.mean()
        parts.append(part)
    x = torch.stack(parts).sum(0)
    {planted}
    return x.clamp(-10, 10)


class Program(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(8, 2) for _ in range(2)])
        self.head = nn.Linear(8, 3)

    def forward(self, x, y, n, flag):
        STATE["calls"] += 1
        for block in self.blocks:
            x = block(x, y, flag)
        with torch.no_grad():
            norm = x.abs().max()
        x = helper(x, y, n, flag) / (1 + norm)
        return {{"logits": self.head(x), "norm": norm}}, [n * SCALE, x.shape[1]]


torch.manual_seed(3)
program = Program()
CALLS = [
    (torch.randn(2, 5, 8), torch.randn(8), 3, True),
    (torch.randn(2, 6, 8), torch.randn(8), 4, True),
    (torch.randn(2, 7, 8), torch.randn(8), 5, False),
]
"""

PLANTED = {
    "planted_faults:wrong_pointwise": "x = x + torch.erf(y)",
    "planted_faults:crashing_pointwise": "x = F.softplus(x) * y",
    "planted_faults:wrong_reduction": "x = x / (1 + torch.var(x, dim=-1, keepdim=True))",
    "planted_faults:dying_scan": "x = torch.cumsum(x, 1)",
    "planted_faults:wrong_view": "x = torch.flip(x, (1,)) + x",
    "planted_faults:copied_view": "y.unfold(0, 2, 2).zero_(); x = x + y",
    "planted_faults:lost_write": "y.add_(1); x = x * y",
    "planted_faults:doubled_write": "buffer = torch.ones(8); buffer.mul_(3); x = x * buffer",
    "planted_faults:drawn_twice": "x = F.dropout(x, 0.25, True)",
    "planted_faults:fixed_size": "x = x + torch.arange(x.shape[1])[:, None]",
    "planted_faults:wrong_gradient": "x = x + torch.exp(-x)",
    "planted_faults:endless": "x = x + torch.topk(y, 1)[0]",
    "lost_guards:eager": "x = x * 2 if flag else x",
    "lost_effects:eager": "SEEN.append(n)",
}
"""Fault: the lines that meet it."""


def program_with(planted: str) -> str:
    """The program whose helper has these statements."""
    return _MODEL.replace("{planted}", planted).replace("{{", "{").replace("}}", "}")
