"""Floats that follow from integers out of tensors stay in the graph, and are Python's to the bit."""

from __future__ import annotations

import math
import random

import pytest
import torch

from dynamo_capture import optimize
from primtorch_decomps import LIBRARY

X = torch.linspace(0.1, 2, 6)
LARGE = (3, 0, -7, 2**53, 2**53 + 1, 2**60 + 3, -(2**62) - 1, 2**63 - 1)


def _outcome(function, *args):
    try:
        return function(*args)
    except ZeroDivisionError as error:
        return str(error)


def _graphs_of(program, calls):
    """How many graphs the calls make; each is compared with eager."""
    graphs = []

    def backend(graph_module, example_inputs):
        graphs.append(graph_module)
        return graph_module.forward

    captured = optimize(backend, operators=LIBRARY)(program)
    for call in calls:
        mine, eagers = _outcome(captured, *call), _outcome(program, *call)
        assert type(mine) is type(eagers)
        if isinstance(eagers, str):
            assert mine == eagers
        else:
            torch.testing.assert_close(mine, eagers, rtol=0, atol=0, equal_nan=True)
    return len(graphs)


EXPRESSIONS = [
    lambda n: n / 7,
    lambda n: n / -3,
    lambda n: n * n / 3,
    lambda n: float(n),
    lambda n: n * 0.1,
    lambda n: 0.5 - n,
    lambda n: -float(n) - 1,
    lambda n: n * 1e300,
    lambda n: n / (2**53 - 1),
    lambda n: max(n / 3, 1.0),
]


@pytest.mark.parametrize("place", range(len(EXPRESSIONS)))
def test_integers_of_any_size(place):
    expression = EXPRESSIONS[place]
    calls = [(torch.full((3,), value), 0) for value in LARGE]
    assert _graphs_of(lambda t, i: expression(t[i].item()), calls) == 1


QUOTIENTS = [
    lambda n: 1 / n,
    lambda n: n / n,
    lambda n: (n + 1) / (n * 2),
    lambda n: X.sum().item() / n,
    lambda n: X / n,
    lambda n: X * (1 / (n + 1)),
]


@pytest.mark.parametrize("place", range(len(QUOTIENTS)))
def test_divisors_that_are_zero_or_negative_too(place):
    quotient = QUOTIENTS[place]
    calls = [
        (torch.tensor(t),) for t in ([1, 2, 3], [1, -1, 2], [-4, -1, -1], [0, 0, 0], [-1, 0, -1], [9, 0, 1])
    ]
    assert _graphs_of(lambda t: quotient(t.sum().item()), calls) == 1


def test_what_training_loops_keep():
    class Meter:
        def __init__(self):
            self.sum, self.accuracies = 0.0, []

    def step(meter, scores, labels, mask):
        correct = (scores.argmax(-1) == labels).sum().item()
        meter.accuracies.append(correct / len(labels))
        meter.sum += (scores[:, 0] * mask).sum().item() / mask.sum().item()
        return scores * (100 * correct / len(labels))

    graphs = []
    captured = optimize(lambda graph, _: graphs.append(graph) or graph.forward, operators=LIBRARY)(step)
    mine, eagers = Meter(), Meter()
    for seed in range(4):
        torch.manual_seed(seed)
        given = torch.randn(6, 3), torch.randint(0, 3, (6,)), torch.tensor([1, 0, 1, 1, 0, 1])
        assert torch.equal(captured(mine, *given), step(eagers, *given))
    assert vars(mine) == vars(eagers)
    assert len(graphs) <= 2


def test_a_divisor_that_is_zero_raises_what_python_raises():
    @optimize(lambda graph, _: graph.forward, operators=LIBRARY)
    def share(seen, t):
        seen.append(t.sum())
        return t.numel() / t.sum().item()

    seen = []
    assert share(seen, torch.tensor([1, 2])) == 2 / 3
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        share(seen, torch.tensor([0, 0]))
    assert [one.item() for one in seen] == [3, 0]


DIVISORS = (1.5, 0.0, -2.0, float("nan"), float("inf"), 1e-320, -0.0, 0.7, 3.1)
BY_FLOATS = [
    lambda x, b: 1 / b,
    lambda x, b: 0.0 / b,
    lambda x, b: b / b,
    lambda x, b: x * (2.0 / b),
    lambda x, b: x * min(1.0, 1.0 / (b + 1e-6)),
    lambda x, b: x.sum().item() / b,
    lambda x, b: (x.argmax().item() + 2) / b,
    lambda x, b: x / b,
]


@pytest.mark.parametrize("place", range(len(BY_FLOATS)))
def test_divisors_that_are_floats_out_of_tensors(place):
    quotient = BY_FLOATS[place]
    calls = [(X, torch.tensor([value, value], dtype=torch.float64)) for value in DIVISORS]
    assert _graphs_of(lambda x, t: quotient(x, t.sum().item()), calls) == 1


def test_a_division_that_raises_leaves_what_eager_leaves():
    def step(x, t, seen):
        x.add_(1)
        seen.append(random.random())
        y = x * (random.random() / t.sum().item())
        seen.append(2)
        return y

    captured, outcomes = optimize(lambda graph, _: graph.forward, operators=LIBRARY)(step), []
    for function in (step, captured):
        random.seed(0)
        x, seen, results = torch.ones(3), [], []
        for value in (1.0, 0.0, 2.0, 0.0):
            results.append(str(_outcome(function, x, torch.tensor([value, value]), seen)))
        outcomes.append((x.tolist(), seen, results, random.getstate()))
    assert outcomes[0] == outcomes[1]


NUMBERS = (2.5, 0.0, -3.0, float("inf"), float("-inf"), float("nan"), -0.0, 1e-30, 3e38, 1e200)
OF_FLOATS = [
    lambda x, v: v**2,
    lambda x, v: v**0.5,
    lambda x, v: v**-1,
    lambda x, v: v**3,
    lambda x, v: v**v,
    lambda x, v: 2.0**v,
    lambda x, v: 3**v,
    lambda x, v: v**0,
    lambda x, v: (v**2) ** 0.5,
    lambda x, v: math.sqrt(v),
    lambda x, v: math.sqrt(abs(v)) + math.fabs(v),
    lambda x, v: x * math.sqrt(v * v),
    lambda x, v: [v > 1, v >= 1, 1 < v, v == 0, v != v, v < math.nan],
    lambda x, v: [math.isnan(v), math.isinf(v), math.isfinite(v)],
    lambda x, v: (v > 0) | (v < -1),
    lambda x, v: [(v > 0) ^ True, (v > 0) & (v < 5), not v > 0, (v > 0) == (v > 1), (v > 0) != True],  # noqa: E712
    lambda x, v: [any([v > 0, v > 1]), all([v > 0, v < 1, True]), int(v > 0), f"{v > 0}"],
    lambda x, v: max("abc", key={"a": v, "b": 1.0, "c": -v}.get),
    lambda x, v: x * min(1.0, 1.0 / ((v * 1e-200) ** 2 + 1e-6)),
    lambda x, v: [round(v, 3), round(v**0, 1), f"{round(v, 2)}"],
    lambda x, v: [math.exp(v), round(math.exp(v), 2) * 3, math.exp(v) / 7 - v],
    lambda x, v: [math.log(v), math.log2(v), math.log10(v), 20 * math.log10(1.0 / math.sqrt(v))],
    lambda x, v: [math.log1p(v)],
    lambda x, v: [math.expm1(v), math.tanh(v), math.atan(v), math.erf(v), math.degrees(v)],
    lambda x, v: [math.sin(v), math.cos(v), math.tan(v)],
]


@pytest.mark.parametrize("place", range(len(OF_FLOATS)))
def test_what_python_makes_of_any_float(place):
    """Powers, roots and questions have Python's bits, and Python's exceptions."""
    computed = OF_FLOATS[place]

    def program(x, t, seen):
        seen.append(1)
        return computed(x, t.max().item()), x + 1

    graphs = []
    captured = optimize(lambda graph, _: graphs.append(graph) or graph.forward, operators=LIBRARY)(program)
    for number in NUMBERS:
        outcomes = []
        for run in (program, captured):
            seen = []
            try:
                found = run(X, torch.tensor([number], dtype=torch.float64), seen)
                outcomes.append((*_exact(found[0]), found[1].tolist(), seen))
            except (ArithmeticError, ValueError) as error:
                outcomes.append((type(error), str(error), seen))
        assert outcomes[0] == outcomes[1]
    assert len(graphs) == 1


def _exact(found):
    if isinstance(found, torch.Tensor):
        found = found.tolist()
    items = found if isinstance(found, list) else [found]
    return [(type(item), item.hex() if isinstance(item, float) else item) for item in items]


def test_the_norm_of_gradients_is_computed_in_one_graph():
    def clip(gradients):
        total = 0.0
        for one in gradients:
            total += one.norm().item() ** 2
        total = total**0.5
        return [one * min(1.0, 1.0 / (total + 1e-6)) for one in gradients], total

    generator = torch.Generator().manual_seed(0)
    calls = [([torch.randn(4, 3, generator=generator) * k for _ in range(3)],) for k in (1, 0.1, 0, 1e30)]
    assert _graphs_of(clip, calls) == 1


def test_random_numbers_have_pythons_powers_and_roots():
    generator = random.Random(3)
    calls = [(torch.tensor([generator.gauss(0, 10)], dtype=torch.float64).abs(),) for _ in range(200)]

    def program(t):
        v = t.max().item()
        return torch.tensor(0), [v**2, v**0.5, v**-1.5, v**3, math.sqrt(v)]

    assert _graphs_of(program, calls) == 1
