"""Draws programs of reductions and normalisations whose results must be as near to float64 as eager's.

Each program reduces a few tensors in many ways, with pointwise operators before and after, forward and backward; its
second call has other sizes, so that sizes are symbols there. A referee runs the program on the same numbers in float64:

    |compiled - referee| <= 3 * |eager - referee| + a few units in the last place of the largest result

for each result and each gradient. Where eager's result is not finite, nothing is asked.

Some results are made of roundings alone: deviations of equal numbers from their mean are 0 where it happens to be
exact. What is beyond the bound is judged once more: the referee runs again with each operator's result moved by a
rounding of its dtype, equal numbers alike, and the farthest of these runs, less a unit in the last place of the largest
result, stands for eager's where it is farther (``rounded_runs``).
"""

from __future__ import annotations

from random import Random
from typing import Any

from driver import main, module_of
from numbers_to_reduce import KINDS, LAYOUTS, ONE_SIGN
from rounded_runs import farthest

FACTOR, UNITS = 3.0, 4.0
SHAPES = {
    2: (
        (100, 1000), (1, 100_000), (100_000, 1), (7, 31), (513, 65), (33, 4099), (2500, 24), (257, 256), (3, 3),
        (64, 768),
    ),
    3: ((4, 33, 100), (2, 1500, 16), (16, 7, 129), (3, 5, 2048)),
    4: ((4, 8, 14, 14), (2, 16, 28, 27), (8, 4, 7, 7), (1, 8, 60, 60), (16, 32, 1, 5)),
}  # fmt: skip
BEFORE = (
    "{x}",
    "{x}",
    "{x} * 2 + 1",
    "{x} + {y}",
    "{x} * {y}",
    "torch.relu({x})",
    "{x} - 3",
    "torch.tanh({x})",
    "{x}.abs()",
)
AFTER = (
    "{r}", "{r}", "{r} * 0.5", "{r} + 1", "-{r}", "{r} + torch.relu({r}.detach())", "{r} - {r}.detach().abs()",
)  # fmt: skip
"""No gradient goes through a kink at a computed value: on which side of it a value near it comes to lie is a matter of
rounding, in eager as well."""
ALONG = (
    "{x}.sum({d})", "{x}.mean({d})", "{x}.var({d})", "{x}.std({d})", "torch.var({x}, {d}, correction=0)",
    "torch.var_mean({x}, {d})[0]", "torch.var_mean({x}, {d})[1]", "torch.std_mean({x}, {d}, keepdim=True)[0]",
    "torch.linalg.vector_norm({x}, 2, {d})", "torch.linalg.vector_norm({x}, 1, {d})", "torch.logsumexp({x}, {d})",
    "torch.softmax({x}, {d})", "torch.log_softmax({x}, {d})", "torch.cumsum({x}, {d})", "F.normalize({x}, dim={d})",
    "{x}.nansum({d})", "{x} - {x}.mean({d}, keepdim=True)", "({x} * {x}).mean({d}, keepdim=True).rsqrt()",
    "torch.softmax({x}, {d}).sum({d})", "({x} - {x}.mean({d}, keepdim=True)).square().sum({d})",
)  # fmt: skip
OVER_ALL = (
    "{x}.sum()",
    "{x}.mean()",
    "{x}.var()",
    "{x}.std()",
    "torch.linalg.vector_norm({x})",
    "{x}.square().mean()",
)
NORMS = (
    "F.layer_norm({x}, {x}.shape[-1:])", "F.layer_norm({x}, {x}.shape[-1:], {w}, {w})",
    "F.layer_norm({x}, {x}.shape[1:])",
    "F.rms_norm({x}, {x}.shape[-1:], {w})", "{x} + {w}", "{x} * {w}", "({x} * {w}).sum_to_size({w}.shape)",
    "torch.zeros(8, {x}.shape[-1], dtype={x}.dtype).index_add(0, {i}, {x}.reshape(-1, {x}.shape[-1]))",
    "{x}.reshape(-1, {x}.shape[-1])[{i}].sum(0)",
)  # fmt: skip
CHANNELS = (
    "F.batch_norm({x}, None, None, training=True)", "F.batch_norm({x}, None, None, {c}, {c}, True)",
    "F.batch_norm({x}, {m}, {v}, {c}, {c}, True, 0.1)", "F.group_norm({x}, 4)", "F.group_norm({x}, 2, {c}, {c})",
    "F.instance_norm({x})", "{x}.mean((0, 2, 3))", "{x}.var((0, 2, 3))", "{x}.sum((0, 2))", "{x}.std((2, 3))",
    "{x} + {c}[:, None, None]", "F.batch_norm({x}, {m}, {v}, {c}, {c}, False)",
)  # fmt: skip


def draw(random: Random) -> str:
    rank = random.choice((2, 2, 3, 4, 4))
    dtype = random.choice(("float32", "float32", "float32", "bfloat16", "float16"))
    kind, other = random.choice(KINDS), random.choice(("normal", "positive"))
    layout = random.choice(LAYOUTS)
    lines, results = [], []
    for number in range(random.randint(4, 7)):
        text = _statement(random, rank, kind)
        lines.append(f"    r{number} = {text}")
        results.append(f"r{number}")
    shapes = random.sample(SHAPES[rank], 2)
    calls = ", ".join(
        f"lambda: arguments({shape}, {kind!r}, {other!r}, torch.{dtype}, {layout!r}, {random.randrange(1000)})"
        for shape in shapes
    )
    return "\n".join(
        [
            "import torch",
            "import torch.nn.functional as F",
            "from accuracy import arguments",
            "",
            "def program(x, y, w, c, m, v, i):",
            *lines,
            f"    return {', '.join(results)},",
            "",
            f"CALLS = [{calls}]",
            "",
        ]
    )


def _statement(random: Random, rank: int, kind: str) -> str:
    listed = ALONG
    if random.random() < 0.3:
        listed = CHANNELS if rank == 4 else NORMS
    if random.random() < 0.1 and kind in ONE_SIGN:
        listed, before = OVER_ALL, "{x}"
    else:
        before = random.choice(BEFORE)
    dims = random.choice([*range(-rank, rank)])
    value = before.format(x="x", y="y")
    if value != "x":
        value = f"({value})"
    text = random.choice(listed).format(x=value, d=dims, w="w", c="c", m="m.clone()", v="v.clone()", i="i")
    return random.choice(AFTER).format(r=f"({text})")


def arguments(
    shape: tuple[int, ...], kind: str, other: str, dtype: Any, layout: str, seed: int
) -> tuple[Any, ...]:
    """What a program takes: two tensors, a weight of the last dimension, one of channels, statistics, indices."""
    import torch
    from numbers_to_reduce import tensor

    x = tensor(kind, shape, dtype, layout, seed)
    y = tensor(other, shape, dtype, "contiguous", seed + 1)
    w = tensor("normal", shape[-1:], dtype, "contiguous", seed + 2)
    c = tensor("normal", shape[1:2], dtype, "contiguous", seed + 3)
    m, v = torch.zeros(shape[1], dtype=dtype), torch.ones(shape[1], dtype=dtype)
    rows = x.numel() // shape[-1]
    i = torch.arange(rows) % min(8, rows)
    for item in (x, y, w, c):
        item.requires_grad_()
    return x, y, w, c, m, v, i


def compare(source: str, name: str, backend: str) -> list[str]:
    """Where results or gradients of a program are farther from the referee's than is allowed."""
    import torch

    import fxstack

    program = module_of(source, name)
    fxstack.reset()
    torch.manual_seed(0)
    options = {"cache": False} if backend == "inductor" else None
    compiled = fxstack.compile(program.program, backend=backend, options=options)
    found = []
    for number, call in enumerate(program.CALLS):
        plain, fast = _outcome(program.program, call()), _outcome(compiled, call())

        def refereed(call: Any = call) -> dict[str, Any]:
            return _outcome(program.program, tuple(_wide(item) for item in call()))

        referee = refereed()
        told = {key: _farther(plain[key], fast[key], exact) for key, exact in referee.items()}
        if any(told.values()):
            moved = farthest(refereed, referee, next(t.dtype for t in plain.values() if t is not None))
            told = {
                key: words and _farther(plain[key], fast[key], referee[key], moved[key])
                for key, words in told.items()
            }
        found += [f"call {number}, {key}: {words}" for key, words in told.items() if words]
    return found


def _wide(item: Any) -> Any:
    if not item.is_floating_point():
        return item
    return item.detach().double().requires_grad_(item.requires_grad)


def _outcome(function: Any, given: tuple[Any, ...]) -> dict[str, Any]:
    import torch

    results = function(*given)
    random = torch.Generator(torch.get_default_device()).manual_seed(5)
    slopes = [torch.randn(r.shape, generator=random, dtype=torch.float64).to(r.dtype) for r in results]
    slopes = [s.to(torch.bfloat16).to(r.dtype) for s, r in zip(slopes, results, strict=True)]
    leaves = dict(zip("xywc", given, strict=False))
    grads = torch.autograd.grad(results, list(leaves.values()), slopes, allow_unused=True)
    named = {f"result {n}": r.detach() for n, r in enumerate(results)}
    return named | {f"gradient of {n}": g for n, g in zip(leaves, grads, strict=True)}


def _farther(plain: Any, fast: Any, exact: Any, moved: float = 0.0) -> str | None:
    """What is told of a result beyond the bound; ``moved``: how far roundings alone move it."""
    import torch

    if exact is None or plain is None or fast is None:
        return None if plain is None and fast is None else "a gradient is missing"
    if (plain.dtype, plain.shape) != (fast.dtype, fast.shape):
        return f"{fast.dtype} of {tuple(fast.shape)}, not {plain.dtype} of {tuple(plain.shape)}"
    sound = torch.isfinite(plain) & torch.isfinite(exact)
    if not sound.any():
        return None
    if not torch.isfinite(fast[sound]).all():
        return "not finite, as eager is"
    exact = exact[sound]
    limit = torch.finfo(plain.dtype)
    scale = max(float(exact.abs().max()) * limit.eps, limit.smallest_normal * limit.eps)
    eager, ours = (float((t[sound].double() - exact).abs().max()) for t in (plain, fast))
    if (
        ours <= FACTOR * max(eager, moved - scale) + UNITS * scale
    ):  # its own rounding moves a result by a unit
        return None
    return (
        f"an error of {ours:.3g} where eager has {eager:.3g} (results up to {float(exact.abs().max()):.3g})"
    )


if __name__ == "__main__":
    main(draw, compare=compare)
