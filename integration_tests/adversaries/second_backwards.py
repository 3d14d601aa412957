"""Programs differentiated several times: backwards of some results for some inputs, with and without ``retain_graph``.

A backward that does not retain its graph lets go of what it has saved, node by node, and of nothing else: a later one
is refused if it comes to one of those nodes. Which backwards eager refuses, and the gradients of the others, must be
the same for a compiled function, whose results share one node. A sequence ends where a backward is refused: what eager
has let go of, or added up, before it came to the node that refuses is given up (docs/soundness.md).
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main

_HEAD = """
import torch


class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        ctx.factor = 3.0
        return tensor * 3.0

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.factor


class Keeping(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        ctx.tensor = tensor.detach()
        return tensor * tensor

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.tensor * 2


class Squared(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tensor):
        ctx.save_for_backward(tensor)
        return tensor * tensor

    @staticmethod
    def backward(ctx, grad):
        (tensor,) = ctx.saved_tensors
        return grad * tensor * 2


def gradients_of(step, leaves):
    try:
        found = step()
    except RuntimeError as error:
        if "second time" not in str(error):
            raise
        for leaf in leaves:
            leaf.grad = None
        return None
    if found is None:
        found = [leaf.grad for leaf in leaves]
    for leaf in leaves:
        leaf.grad = None
    return [None if one is None else one.clone(memory_format=torch.contiguous_format) for one in found]
""".lstrip()

_SAVING_NOTHING = (
    "{a} + {b}",
    "{a} - {b}",
    "{a} - {a}.mean(0)",
    "{a} + {a}.sum()",
    "-{a}",
    "{a}.t().t()",
    "{a}.flip(0)",
    "{a}.clone()",
    "torch.cat([{a}, {b}])[:2]",
    "{a}.expand(2, 2, 2).sum(0)",
    "Scaled.apply({a})",
    "Keeping.apply({a})",
    "{a}.detach() + {b}",
    "{a} + 1",
    "torch.stack([{a}, {b}]).mean(0)",
)
_SAVING = (
    "{a} * {b}",
    "{a} * 2",
    "{a} * s",
    "{a}.sin()",
    "{a} * {b}.detach()",
    "{a} @ {b}",
    "{a} @ {b}.detach()",
    "torch.addmm({a}, {b}, {a})",
    "torch.addmm({a}, {b}.detach(), {b}.detach())",
    "{a}.tanh()",
    "torch.where({a} > 0, {a}, {b})",
    "{a}.masked_fill({a} > 1, 0.0)",
    "{a}.softmax(-1)",
    "{a}.relu()",
    "{a} / 2",
    "{a} / {b}.detach()",
    "{a} ** 2",
    "{a}.amax(0)",
    "{a}[[1, 0]]",
    "Squared.apply({a})",
    "torch.nn.functional.layer_norm({a}, (2,), {b}[0])",
    "{a}.cumsum(0)",
    "{a}.var(0)",
)
_RESULTS = ("{a}", "{a}", "{a}", "{a}.sum()", "{a}[0]", "{a}.t()")
_LEAVES = ("x", "y", "w")
_ARGUMENTS = (
    "lambda: ({x}, {y}, {w}, {s}),",
    "lambda: ({x}, {y}, {w}, {s}),",
    "lambda: ({x}, {y} * 1, {w}, {s}),",
    "lambda: ({x}, {y} * {y}, {w} + 1, {s}),",
)
_VALUES = ("0.5", "-1.0", "2.0", "0.25", "1.5", "-0.75")


def draw(random: Random) -> str:
    """The text of one program."""
    names, lines = list(_LEAVES), []
    for number in range(random.randint(1, 6)):
        if random.random() < 0.06:
            lines.append('    print("here")')
        form = random.choice(random.choice((_SAVING_NOTHING, _SAVING)))
        one, other = (random.choice(names + names[-2:]) for _ in range(2))
        lines.append(f"    t{number} = {form.format(a=one, b=other)}")
        names.append(f"t{number}")
    made = names[len(_LEAVES) :]
    chosen = [random.choice(made) for _ in range(random.randint(1, 4))]
    results = ", ".join(
        random.choice(_RESULTS).format(a=name) for name in dict.fromkeys([*chosen, names[-1]])
    )
    program = "\n".join(["def program(x, y, w, s):", *lines, f"    return ({results},)"])
    return f"{_HEAD}\n\n{program}\n\n\n{_after(random)}\n\n{_calls(random)}"


def _after(random: Random) -> str:
    lines = [
        "def after(results, *arguments):",
        "    found = []",
        "    results = [result for result in results if result.requires_grad]",
        "    arguments = [argument for argument in arguments[:3] if argument.requires_grad]",
        "    if not results or not arguments:",
        "        return found",
        "    leaves = [argument for argument in arguments if argument.is_leaf]",
    ]
    for _ in range(random.randint(2, 6)):
        lines.append(f"    found.append(gradients_of(lambda: {_step(random)}, leaves))")
        lines += ["    if found[-1] is None:", "        return found"]
    return "\n".join([*lines, "    return found", ""])


def _step(random: Random) -> str:
    retain = f"retain_graph={random.random() < 0.4}"
    places = random.sample(range(4), random.choice((1, 1, 1, 2, 4)))
    losses = f"sum(results[i % len(results)].sum() for i in {places})"
    match random.randrange(5):
        case 0 | 1:
            return f"{losses}.backward({retain})"
        case 2 | 3:
            wanted = random.sample(range(3), random.choice((1, 1, 2)))
            given = f"[arguments[i] for i in {wanted} if i < len(arguments)] or arguments[:1]"
            if random.random() < 0.2:
                given = f"[results[{random.randrange(4)} % len(results)]]"
            return f"torch.autograd.grad({losses}, {given}, {retain}, allow_unused=True)"
        case _:
            return (
                f"{losses}.backward(inputs=leaves[{random.randrange(2)}:] or leaves or arguments, {retain})"
            )


def _calls(random: Random) -> str:
    form = random.choice(_ARGUMENTS)
    trained = [random.random() < part for part in (0.9, 0.8, 0.5)]
    lines = ["CALLS = ["]
    for _ in range(random.choice((2, 3))):
        filled = {
            name: f"torch.tensor({_matrix(random)}, requires_grad={grad})"
            for name, grad in zip(_LEAVES, trained, strict=True)
        }
        lines.append("    " + form.format(**filled, s=random.choice(("2.0", "0.5", "-1.5"))))
    return "\n".join([*lines, "]", ""])


def _matrix(random: Random) -> str:
    rows = (", ".join(random.choice(_VALUES) for _ in range(2)) for _ in range(2))
    return "[" + ", ".join(f"[{row}]" for row in rows) + "]"


_IGNORED = frozenset({"version", "grad version", "lines", "grad layout", "own version", "version of results"})
_NEAR = {"aot_eager": (1e-5, 1e-5), "inductor": (1e-4, 1e-4)}
COMPARING = Comparing(
    {"eager": frozenset(), "aot_eager": _IGNORED, "inductor": _IGNORED}, _NEAR, gradients=_NEAR
)
"""Gradients may be added in another order than eager's, and counted otherwise."""


if __name__ == "__main__":
    main(draw, COMPARING)
