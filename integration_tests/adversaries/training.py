"""Programs about training: modules with buffers and parametrizations, optimizers, function transforms, dtypes.

A program computes with modules whose state it may switch and write to, steps an optimizer inside or after it, and uses
``torch.func``, complex numbers, 16-bit floats, images in both layouts, expanded inputs and tensors of inference mode.
Its ``after`` differentiates what it returns, also a second time without ``retain_graph``, and steps the optimizer.
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main
from training_texts import AFTERS, DTYPES, HEAD, MODULES, OPTIMIZERS, OTHERS, STATEMENTS, TRANSFORMS

_VALUES = ("0.5", "-1.0", "2.0", "0.25", "1.5", "-0.75", "3.0", "-2.0")
_ARGUMENTS = (
    "{x}",
    "{x}",
    "{x}",
    "{x}.t().contiguous().t()",
    "{x}[:1].expand({n}, 4)",
    "torch.cat([{x}, {x}], 1)[:, ::2]",
    "{x}.detach() * 1",
)
_NOT_TRAINED = ("inferred({x})", "{x}.detach()")


def draw(random: Random) -> str:
    """The text of one program."""
    kinds = random.sample((MODULES, TRANSFORMS, DTYPES, OTHERS), 2)
    lines, names = [], ["x", "y"]
    for number in range(random.randint(2, 6)):
        if random.random() < 0.35:
            lines.append(f"    {_filled(random, random.choice(STATEMENTS), names)}")
            continue
        form = random.choice(random.choice((*kinds, MODULES)))
        lines.append(f"    t{number} = {_filled(random, form, names)}")
        names.append(f"t{number}")
    results = random.sample(names, min(len(names), random.randint(1, 2)))
    if names[-1] not in results:
        results.append(names[-1])
    program = "def program(x, y):\n" + "\n".join(lines) + f"\n    return {', '.join(results)}\n"
    optimizer = f"OPTIMIZER = {random.choice(OPTIMIZERS)}\nWATCHED['state'] = OPTIMIZER.state\n"
    return f"{HEAD}\n{optimizer}\n\n{program}\n{random.choice(AFTERS)}\n{_calls(random)}"


def _filled(random: Random, form: str, names: list[str]) -> str:
    one, other = (random.choice(names + names[-2:]) for _ in range(2))
    layout = random.choice(("None", "torch.channels_last"))
    return form.format(
        a=one, b=other, flag=random.choice(("True", "False")), layout=layout, dim=random.choice((0, -1))
    )


def _calls(random: Random) -> str:
    sizes = random.choice(((2, 2, 3), (3, 4, 2), (4, 4, 4)))
    x_form, y_form = random.choice(_ARGUMENTS), random.choice((*_ARGUMENTS, *_NOT_TRAINED))
    calls = "\n".join(
        f"    lambda: ({_argument(random, n, x_form)}, {_argument(random, n, y_form)})," for n in sizes
    )
    given = (
        "def inferred(tensor):\n    with torch.inference_mode():\n        return tensor.detach() * 1\n\n\n"
        "def given(data):\n    return torch.tensor(data, requires_grad=True)\n"
    )
    return f"{given}\n\nCALLS = [\n{calls}\n]\n"


def _argument(random: Random, count: int, form: str) -> str:
    rows = ("[" + ", ".join(random.choice(_VALUES) for _ in range(4)) + "]" for _ in range(count))
    made = f"given([{', '.join(rows)}])"
    return f"(lambda t: {form.format(x='t', n=count)})({made})"


_IGNORED = frozenset(
    {
        "grad version",
        "grad layout",
        "own version",
        "version of results",
        "lines",
        "refused backward",
        "all warnings",
    }
)
COMPARING = Comparing(
    {"eager": frozenset({"lines"}), "aot_eager": _IGNORED, "inductor": _IGNORED},
    {"aot_eager": (1e-5, 1e-5), "inductor": (1e-4, 1e-4)},
    ("[AOT301]", "[AOT303]", "which may come of the results that have no gradient"),
    referee=True,
)


if __name__ == "__main__":
    main(draw, COMPARING)
