"""Branches that are skipped where a mask has no set elements: experts of a mixture, corrections of outliers, caches.

Masks have no, some or all elements set, from call to call. What a branch does is mostly what is done for the rows of
its mask, and sometimes more: a write elsewhere, an effect, an exception, a random number, another mask.

    python integration_tests/adversaries/masked_branches.py 300 --seed 1 --backend eager,aot_eager
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main

_HEAD = """
import torch
from torch import nn

torch.manual_seed(0)
EXPERTS = nn.ModuleList([{expert} for _ in range({count})])
SEEN = []
WATCHED = {{"experts": EXPERTS, "seen": SEEN}}
"""
_EXPERTS = (
    "nn.Linear(3, 3)",
    "nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 3))",
    "nn.LayerNorm(3, eps=1.0)",
)
_MASKS = (
    *("chosen == e", "chosen == e", "chosen.eq(e)", "(chosen == e) & (x[:, 0] > -2)", "x[:, 0] > e - 1.5"),
    *("torch.isnan(x[:, 0] / (chosen - e))", "~(chosen != e)", "(chosen == e).clone()"),
)
_TESTS = (
    *(
        "if mask.any():",
        "if mask.any():",
        "if torch.any(mask):",
        "if mask.sum() > 0:",
        "if mask.any().item():",
    ),
    *("if not mask.any():", "if mask.sum().item() == 0:", "if mask.sum() == 0:", "if bool(mask.any()):"),
    *("if mask.count_nonzero() >= 1:", "if rows.numel() > 0:", "if len(rows) == 0:", "if mask.sum() > 1:"),
    *("if mask.all():", "if mask.any() and e != 1:", "if int(mask.sum()):"),
)
_SKIPPING = ("not mask", "== 0:")
_WORK = (
    *("out[mask] += w[mask, None] * expert(x[mask])", "out[mask] += w[mask, None] * expert(x[mask])"),
    *("out[mask] = expert(x[mask])", "out[mask] = 0.5", "out.index_add_(0, rows, expert(x[rows]))"),
    *("out[rows] += x[rows] * w[rows, None]", "out.index_copy_(0, rows, expert(x[rows]).to(out.dtype))"),
    *("out.masked_fill_(mask[:, None], 2.0)", "out[mask, :] = out[mask, :] * 2", "out[mask, 1] -= w[mask]"),
    *("out.index_put_((mask,), x[mask] * 2, accumulate=True)", "out[mask] *= expert(x[mask])"),
    *("part = x[mask] + 1; out[mask] = part", "out[mask] = expert(x[mask]) * expert[-1].bias.exp()"),
    *("other[mask] = out[mask] + 1", "out[mask] += other[mask].detach()", "out[mask] += x[mask].sum(0)"),
)
_MORE = (
    *("SEEN.append(e)", "count += 1", "last = x[mask]", "out += 1", "mask = mask.clone()", "mask[0] = True"),
    *(
        "out[mask] += torch.rand(3)",
        "x = x + 1",
        "raise ValueError(e)",
        "break",
        "out = out * 2",
        "w = w * 2",
    ),
    *("out[rows] = x[rows] @ torch.ones(2, 3)", "out[~mask] = 1.0", "continue", "out[0] = x[mask].mean(0)"),
    *("SEEN.append(out.requires_grad)", "print(e)", "x[mask] = 1.0", "chosen[mask] = 0", "other.add_(1)"),
)
_OUTS = (
    *("torch.zeros_like(x)", "torch.zeros_like(x)", "x * 1", "torch.zeros(len(x), 3)", "x.detach().clone()"),
    "w[:, None] * x",
)
_RESULTS = ("out", "out", "out * w[:, None]", "(out, other)", "out.sum() + x.sum()", "(out.sum(), out)")
_ROWS = ("torch.where(mask)[0]", "mask.nonzero().squeeze(-1)", "mask.nonzero(as_tuple=True)[0]")


def draw(random: Random) -> str:
    """The text of a program."""
    count = random.choice((1, 2, 3, 3))
    head = _HEAD.format(expert=_sequential(random.choice(_EXPERTS)), count=count)
    return head + _program(random) + _calls(random, count)


def _sequential(expert: str) -> str:
    return expert if expert.startswith("nn.Sequential") else f"nn.Sequential({expert})"


def _program(random: Random) -> str:
    body = _loop(random)
    if random.random() < 0.35:
        body = ["with torch.no_grad():", *("    " + line for line in body)]
    lines = ["", "def program(x, w, chosen):", *("    " + line for line in body)]
    return "\n".join([*lines, f"    return {random.choice(_RESULTS)}", ""])


def _loop(random: Random) -> list[str]:
    mask, rows = random.choice(_MASKS), random.choice(_ROWS)
    lines = [f"out, other = {random.choice(_OUTS)}, torch.ones_like(x)", "count, last = 0, x"]
    lines += ["for e, expert in enumerate(EXPERTS):", f"    mask = {mask}"]
    if random.random() < 0.2:
        lines.append(
            "    if mask.any(): SEEN.append(e)" if random.random() < 0.3 else "    mask = mask & mask"
        )
    test = random.choice(_TESTS)
    inside = [random.choice(_WORK) for _ in range(random.choice((1, 1, 1, 2)))]
    if random.random() < 0.3:
        inside.insert(random.randrange(len(inside) + 1), random.choice(_MORE))
    if "rows" in test or random.random() < 0.3:
        lines.append(f"    rows = {rows}")
    elif any("rows" in line for line in inside):
        inside.insert(0, f"rows = {rows}")
    if random.random() < 0.05:
        lines.append("    mask[:1] = True")
    if any(part in test for part in _SKIPPING):
        return [*lines, f"    {test}", "        continue", *("    " + line for line in inside)]
    lines += [f"    {test}", *("        " + line for line in inside)]
    if random.random() < 0.1:
        lines += ["    else:", "        other = other + 1"]
    return lines


def _calls(random: Random, count: int) -> str:
    size = random.choice((1, 5, 48, 48, 64))
    grads = [random.random() < part for part in (0.5, 0.5)]
    lines = ["CALLS = ["]
    for _ in range(random.choice((2, 3, 4))):
        if random.random() < 0.15:
            size = random.choice((0, 2, 50))
        seed = random.randrange(1000)
        chosen = random.choice(
            (
                f"torch.arange({size}) % {count}",
                f"torch.arange({size}) % {count}",
                f"torch.full(({size},), {random.randrange(count + 1)})",
                f"torch.arange({size}) % {count + 1}",
                f"torch.arange({size}) // {max(size // 2, 1)}",
            )
        )
        x, w = (
            f"torch.randn({form}, generator=torch.Generator().manual_seed({seed + extra})).requires_grad_({grad})"
            for form, extra, grad in ((f"{size}, 3", 0, grads[0]), (f"{size}", 1, grads[1]))
        )
        lines.append(f"    lambda: ({x}, {w}, {chosen}),")
    return "\n".join([*lines, "]", ""])


_NEAR = {"aot_eager": (1e-5, 1e-5), "inductor": (1e-4, 1e-4)}
_IGNORED = frozenset({"version", "grad version", "own version"})
COMPARING = Comparing(
    {"eager": frozenset({"own version"}), "aot_eager": _IGNORED, "inductor": _IGNORED}, _NEAR, gradients=_NEAR
)
"""What is written to where no row is counts the write; gradients may be added in another order than eager's."""


if __name__ == "__main__":
    main(draw, COMPARING)
