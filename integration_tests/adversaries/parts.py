"""Programs about parts of a tensor whose number varies between calls (``unbind``, ``split``, ``list(x)``, a loop over
``x``): made in one mode of autograd or autocast and used in another, around graph breaks, writes and nested calls.

Each call has other sizes. A statement is tried on the first call's arguments, and mostly drawn again where it raises.
"""

from __future__ import annotations

import warnings
from random import Random
from typing import Any

from driver import Comparing, main

PREAMBLE = """\
import torch
LOG = []
WATCHED = {"log": LOG}

def leaf(tensor):
    return tensor.clone().requires_grad_()

def view(tensor):
    return tensor.view_as(tensor).requires_grad_()

def joined(parts):
    return torch.stack([part * 2 for part in parts])

def drawn(tensor):
    for part in tensor:
        yield part + 1

def first(parts, *others):
    return parts[0]

def attempt(function):
    try:
        return function()
    except Exception as error:
        return type(error).__name__, str(error)

class Kept:
    def __init__(self, parts):
        self.parts = parts
    def last(self):
        return self.parts[-1]
"""
MODES = (
    "torch.no_grad()",
    "torch.no_grad()",
    "torch.enable_grad()",
    "torch.inference_mode()",
    "torch.inference_mode(False)",
    "torch.set_grad_enabled(False)",
    "torch.autocast('cpu', dtype=torch.bfloat16)",
    "torch.autocast('cpu', enabled=False)",
)
MAKERS = (
    "{t}.unbind()",
    "{t}.unbind(0)",
    "{t}.unbind(-1)",
    "torch.unbind({t})",
    "{t}.split(1)",
    "{t}.split(2)",
    "torch.split({t}, [1, {t}.shape[0] - 1])",
    "{t}.chunk(2)",
    "{t}.tensor_split(2)",
    "list({t})",
    "tuple({t})",
    "[*{t}]",
    "[row for row in {t}]",
    "[row.sum() for row in {t}]",
    "[row for row in {t}.unbind(0)]",
    "list(drawn({t}))",
    "list({t}.split(1, dim=-1))",
    "list(reversed({t}.unbind()))",
    "list({t})[::-1]",
    "sorted({t}.unbind(), key=lambda part: part.dim())",
    "list(map(torch.sin, {t}))",
    "Kept({t}.unbind()).parts",
)
READS = (
    "{p}[0]",
    "{p}[-1]",
    "{p}[0] * 2",
    "{p}[len({p}) // 2]",
    "torch.stack(list({p}))",
    "torch.stack(tuple({p})).sum(0)",
    "torch.cat([part.reshape(-1) for part in {p}])",
    "sum(part.sum() for part in {p})",
    "sum({p}[1:], {p}[0])",
    "joined({p})",
    "first({p}, {t})",
    "Kept({p}).last()",
    "next(iter({p}))",
    "max({p}, key=lambda part: part.numel())",
    "[part + number for number, part in enumerate({p})][-1]",
    "[one * other for one, other in zip({p}, {q})][0]",
    "({p}[0] @ {p}[0].t()) if {p}[0].dim() == 2 else {p}[0].dot({p}[0]) if {p}[0].dim() == 1 else {p}[0]",
    "{p}[0].detach()",
)
COMPUTED = (
    "{t} * 2",
    "{t} + {u}.sum()",
    "{t}.sin()",
    "{t}.clone()",
    "{t}[1:]",
    "{t}.t()",
    "{t}.detach()",
    "{t} @ {t}.t()",
)
EFFECTS = (
    "LOG.append(len({p}))",
    "LOG.append([tuple(part.shape) for part in {p}])",
    "LOG.append([part.requires_grad for part in {p}])",
    "LOG.append([part.is_leaf for part in {p}])",
    "LOG.append({p}[-1].is_inference())",
    "out.append({p})",
    "out.append({p}[-1])",
    "out.append(list({p}))",
    "out.extend({p})",
    "out.append({t})",
    "out.append([part * 3 for part in {p}])",
)
BREAKS = (
    "print(end='')",
    "LOG.append(float({t}.detach().sum().float()))",
    "LOG.append({p}[0].detach().sum().item())",
)
WRITES = (
    "{t}.add_(1)",
    "{t}[0] = 3",
    "{t}.mul_(2)",
    "{t}[-1:] *= 2",
    "{p}[0].mul_(2)",
    "{p}[-1].add_(1)",
    "{p}[0].copy_({p}[-1])",
    "torch.add({t}, 1, out={t})",
    "torch._foreach_mul_(list({p}), 2)",
)
LOOPS = (
    "for part in {p}:",
    "for part in {t}:",
    "for number, part in enumerate({p}):",
    "for part, other in zip({p}, {t}):",
)
IN_LOOPS = (
    "out.append(part * 2)",
    "total = total + part.sum()",
    "LOG.append(part.requires_grad)",
    "print(end='')",
    "out.append(part)",
    "if part.dim() > 5: break",
)


class Drawing:
    """One program while it is drawn: its lines, and what its names are for the first call's arguments."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.trained = random.choice(("", "x", "y", "xy", "h", "hx"))
        self.tensors, self.parts = ["x", "y"], [""]
        self.made = 0
        self.lines: list[str] = []
        sizes = random.sample(range(2, 7), 3) if random.random() < 0.7 else [3, 1, 4]
        self.calls = [self._call(size, random.choice((size, 2, 3))) for size in [*sizes, sizes[0]]]
        self.state: dict[str, Any] = {"out": [], "total": 0}
        exec(PREAMBLE, self.state)
        self.state["x"], self.state["y"] = eval(self.calls[0], self.state)
        self.parts.clear()
        self._run("p0 = x.unbind()" if random.random() < 0.3 else "p0 = list(x * 2)")
        self.parts.append("p0")

    def _call(self, rows: int, columns: int) -> str:
        random = self.random

        def given(name: str) -> str:
            made = f"torch.arange(1., {rows * columns + 1}).view({rows}, {columns}) / 4"
            if name == "x" and "h" in self.trained:
                return f"leaf({made}) * 2"
            kind = "view" if random.random() < 0.2 else "leaf"
            return f"{kind}({made})" if name in self.trained else made

        return f"({given('x')}, {given('y')})"

    def _run(self, text: str, depth: int = 0) -> bool:
        with warnings.catch_warnings(action="ignore"):
            try:
                exec(text, self.state)
            except Exception:
                if self.random.random() > 0.03:
                    return False
        self.lines += ["    " * depth + line for line in text.split("\n")]
        return True

    def _filled(self, text: str) -> str:
        choose = self.random.choice
        recent = choose(self.parts[-3:])
        return text.format(
            t=choose(self.tensors[-5:]), u=choose(self.tensors), p=recent, q=choose(self.parts)
        )

    def extend(self, depth: int) -> None:
        """One more statement, or a block of them."""
        kinds = ["maker", "read", "computed", "effect", "break", "loop", "mode", "write"]
        weights = [6, 7, 2, 4, 3, 2, 5 if depth < 2 else 0, 0 if self.trained else 3]
        for _ in range(8):
            kind = self.random.choices(kinds, weights)[0]
            if kind == "mode":
                return self._block(depth)
            if self._statement(kind, depth):
                return None
        return None

    def _statement(self, kind: str, depth: int) -> bool:
        random = self.random
        self.made += 1
        table = {"effect": EFFECTS, "break": BREAKS, "write": WRITES}
        if kind in table:
            return self._run(self._filled(random.choice(table[kind])), depth)
        if kind == "loop":
            body = "\n".join(f"    {line}" for line in random.sample(IN_LOOPS, random.randint(1, 3)))
            return self._run(f"{self._filled(random.choice(LOOPS))}\n{body}", depth)
        name = f"{'p' if kind == 'maker' else 't'}{self.made}"
        text = random.choice({"maker": MAKERS, "read": READS, "computed": COMPUTED}[kind])
        if not self._run(f"{name} = {self._filled(text)}", depth) or name not in self.state:
            return False
        (self.parts if kind == "maker" else self.tensors).append(name)
        return True

    def _block(self, depth: int) -> None:
        mode = self.random.choice(MODES)
        manager = eval(mode, self.state)
        self.lines.append("    " * depth + f"with {mode}:")
        before = len(self.lines)
        with manager:
            for _ in range(self.random.randint(1, 3)):
                self.extend(depth + 1)
        if len(self.lines) == before:
            self.lines.append("    " * (depth + 1) + "pass")

    def text(self) -> str:
        """The module."""
        returned = self.random.sample(self.tensors, min(len(self.tensors), self.random.randint(1, 3)))
        lines = ["out, total = [], 0", *self.lines, f"return out, total, {', '.join(returned)}"]
        body = "\n".join(f"    {line}" for line in lines)
        calls = "\n".join(f"    lambda: {call}," for call in self.calls)
        return f"{PREAMBLE}\n\ndef program(x, y):\n{body}\n\n\nCALLS = [\n{calls}\n]\n"


def draw(random: Random) -> str:
    """The text of a program."""
    drawing = Drawing(random)
    for _ in range(random.randint(3, 9)):
        drawing.extend(0)
    return drawing.text()


IGNORED = {
    "eager": frozenset({"own version", "all warnings"}),
    "aot_eager": frozenset({"own version", "version", "all warnings", "all strides", "refused backward"}),
    "inductor": frozenset({"own version", "version", "all warnings", "all strides", "refused backward"}),
}
"""As for ``tensors.py``."""

if __name__ == "__main__":
    main(draw, Comparing(IGNORED, {"inductor": (1e-4, 1e-5)}, gradients={"aot_eager": (1e-4, 1e-5)}))
