"""Gradients at edge values: zeros, infinities, NaN, ties and bounds, where derivatives divide, mask or choose.

A gradient that is NaN in eager is NaN in compiled code, and no other is.

What docs/soundness.md gives up is not drawn: which of two zeros is the larger one (the sign of a zero is taken away
before), NaN in functions of which eager's kernels treat the last elements otherwise than their vectors do (with few
elements all are last ones), variances of numbers whose squares overflow.

Infinite gradients of results that are added up cancel to NaN in another order as well: programs are short, and return
one tensor.
"""

from __future__ import annotations

from random import Random

from driver import Comparing, main

_VALUES = (
    *("0.0", "-0.0", "1.0", "-1.0", "0.5", "2.0", "-3.0", "2.0", "1.0"),
    *("float('inf')", "float('-inf')", "float('nan')", "1e30", "1e-30", "20.0", "-30.0"),
)
_UNARY = (
    *("{a}.sqrt()", "{a}.rsqrt()", "{a}.log()", "{a}.log1p()", "{a}.exp()", "{a}.reciprocal()", "{a}.abs()"),
    *("{a}.relu()", "{a}.tanh()", "{a}.sigmoid()", "{a}.sin()", "{a}.asin()", "{a}.atan()", "{a}.acosh()"),
    *(
        "{a} ** 2",
        "{a} ** 0.5",
        "{a} ** 3",
        "{a} ** -1",
        "{a} ** 0",
        "2 ** {a}",
        "0.0 ** {a}",
        "{a}.square()",
    ),
    *("{a}.clamp(-1, 1)", "{a}.clamp(min=0)", "{a}.clamp(max=2.0)", "{a}.sign()", "{a}.erf()", "{a}.expm1()"),
    *(
        "{a}.norm(p=0.5, dim=-1)",
        "torch.linalg.vector_norm({a}, 3, -1, True)",
        "{a}.norm(p=float('-inf'), dim=-1)",
    ),
    *(
        "{a}.masked_fill({a} > 0, float('inf'))",
        "{a}.clamp(float('-inf'), 1)",
        "{a}.where({a} == {a}, 0.0).norm()",
    ),
    *(
        "torch.linalg.vector_norm({a}, 0)",
        "{a}.renorm(2, 0, 1.0)",
        "{a}.frac()",
        "{a}.trunc()",
        "{a}.atanh()",
    ),
    *("{a}.softmax(-1)", "{a}.log_softmax(-1)", "{a}.logsumexp(-1, keepdim=True)", "{a}.cumsum(0)"),
    *("{a}.norm(dim=-1, keepdim=True)", "{a}.norm(p=1, dim=0, keepdim=True)", "{a}.norm(p=float('inf'))"),
    *("{a}.amax(-1, keepdim=True)", "({a} + 0.0).max()", "{a}.min(0, keepdim=True).values", "{a}.median()"),
    *(
        "{a}.prod(-1, keepdim=True)",
        "{a}.prod()",
        "{a}.cumprod(-1)",
        "{a}.mean()",
        "({a}.clamp(-1e15, 1e15) + 1.0).std(-1, correction=0, keepdim=True)",
    ),
    *(
        "({a}.clamp(-1e15, 1e15) + 1.0).var()",
        "torch.where({a} > 0, {a}.sqrt(), 0.0)",
        "torch.where({a} != 0, 1 / {a}, 0.0)",
    ),
    *("{a}.masked_fill({a} < 0, 0.0).sqrt()", "{a}.nan_to_num(1.0)", "torch.xlogy({a}, {a})", "{a}.sinc()"),
    *(
        "torch.nn.functional.softplus({a})",
        "torch.nn.functional.logsigmoid({a})",
    ),
    *(
        "torch.nn.functional.silu({a})",
        "torch.nn.functional.elu({a}.nan_to_num(0.5))",
        "torch.nn.functional.hardtanh({a}.nan_to_num(0.5))",
    ),
    *(
        "torch.nn.functional.normalize({a}, dim=-1)",
        "torch.nn.functional.layer_norm({a}.clamp(-1e15, 1e15), (3,))",
        "({a}.nan_to_num(0.5) + 0.0).logit()",
    ),
    *(
        "torch.nn.functional.hardswish({a}.nan_to_num(0.5))",
        "torch.nn.functional.leaky_relu({a})",
        "{a}.cummax(0).values",
    ),
    *("torch.nn.functional.softmin({a}, -1)", "{a}.logcumsumexp(0)", "{a}.angle()", "{a}.lgamma()"),
)
_BINARY = (
    *("{a} + {b}", "{a} - {b}", "{a} * {b}", "{a} / {b}", "{a} ** {b}", "{a}.abs() ** {b}"),
    *(
        "torch.maximum({a} + 0.0, {b} + 0.0)",
        "torch.minimum({a} + 0.0, {b} + 0.0)",
        "torch.fmax({a} + 0.0, {b} + 0.0)",
        "torch.atan2({a}, {b})",
    ),
    *(
        "torch.hypot({a}, {b})",
        "torch.logaddexp({a}, {b})",
        "torch.where({a} > {b}, {a}, {b})",
        "torch.xlogy({a}, {b})",
    ),
    *(
        "torch.fmod({a}, {b})",
        "torch.remainder({a}, {b})",
        "torch.lerp({a}, {b}, 0.5)",
        "torch.copysign({a}, {b})",
    ),
    *(
        "torch.where({a} > 0, {a} / {b}, {b})",
        "torch.nn.functional.mse_loss({a}, {b})",
        "({a} * {b}).sum(-1, keepdim=True)",
    ),
    *(
        "torch.nn.functional.smooth_l1_loss({a}, {b})",
        "torch.dist({a}, {b})",
        "torch.clamp({a} + 0.0, min={b} + 0.0)",
    ),
    *(
        "{a}.masked_fill({b} > 0, 0.0)",
        "torch.where({b}.isfinite(), {a}, 0.0)",
        "torch.clamp({a}, {b} - 1, {b} + 1)",
    ),
    *(
        "torch.cdist({a}, {b})",
        "torch.nn.functional.pairwise_distance({a}, {b})",
        "torch.heaviside({a}, {b})",
    ),
    *(
        "torch.nn.functional.huber_loss({a}, {b})",
        "torch.nn.functional.l1_loss({a}, {b})",
        "torch.outer({a}[0], {b}[0])",
    ),
    *("torch.addcdiv({a}, {a}, {b})", "torch.nn.functional.cosine_similarity({a}, {b}, -1)", "{a} @ {b}.t()"),
)


def draw(random: Random) -> str:
    """The text of one program."""
    lines, names = [], ["x", "y"]
    count = random.randint(1, 3)
    for number in range(count):
        if random.random() < 0.6:
            expression = random.choice(_UNARY).format(a=names[-1] if number else random.choice(names))
        else:
            expression = random.choice(_BINARY).format(a=names[-1], b=random.choice(names[:2]))
        if names[-1] not in ("x", "y") and " @ " in expression:
            expression = f"({expression}).sum()"
        lines.append(f"    t{number} = {expression}")
        names.append(f"t{number}")
    calls = "\n".join(f"    lambda: (given({_rows(random, n)}), given({_rows(random, n)}))," for n in (2, 4))
    program = "def program(x, y):\n" + "\n".join(lines) + f"\n    return {names[-1]}\n"
    given = "def given(data):\n    return torch.tensor(data, requires_grad=True)\n"
    return f"import torch\n\n\n{program}\n\n{given}\n\nCALLS = [\n{calls}\n]\n"


def _rows(random: Random, count: int) -> str:
    values = random.choices(_VALUES, k=random.randint(2, 5))
    rows = (", ".join(random.choice(values) for _ in range(3)) for _ in range(count))
    return "[" + ", ".join(f"[{row}]" for row in rows) + "]"


if __name__ == "__main__":
    ignored = frozenset({"grad version", "grad layout", "version", "own version"})
    main(
        draw,
        Comparing(
            {"aot_eager": ignored, "inductor": ignored},
            {"aot_eager": (1e-5, 1e-6), "inductor": (1e-4, 1e-5)},
            referee=True,
        ),
    )
