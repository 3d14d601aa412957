"""Floats that differ between calls are read when the code runs: one version for all values, with eager's results."""

import math

import pytest
import torch

from dynamo_capture import optimize, run_graph

X = torch.arange(6.0).reshape(2, 3) + 1
VALUES = (0.5, 2.0, -1.25, 1e-30, 3.14159, 1e300, math.inf, -0.0, 0.1)


def versions(function, *calls, **settings):
    """How many versions these calls need; each must give exactly what eager gives, types included."""
    fast = optimize(run_graph, **settings)(function)
    for call in calls:
        expected, actual = outcome(function, call), outcome(fast, call)
        assert same(expected, actual), (call, expected, actual)
    assert not fast.__fxstack_capture__.report.eager
    return len(fast.__fxstack_capture__.report.replacements)


def outcome(function, call):
    try:
        return function(*call)
    except ArithmeticError as error:
        return type(error), str(error)


def same(one, two):
    if type(one) is not type(two):
        return False
    if isinstance(one, torch.Tensor):
        return one.dtype == two.dtype and torch.equal(torch.nan_to_num(one), torch.nan_to_num(two))
    if isinstance(one, (tuple, list)):
        return len(one) == len(two) and all(map(same, one, two))
    return one == two or (isinstance(one, float) and math.isnan(one) and math.isnan(two))


DTYPES = (torch.float32, torch.float64, torch.int64, torch.uint8, torch.bool)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), ()])
def test_results_and_dtypes_are_eagers(dtype, shape):
    x = (torch.arange(6).reshape(2, 3) if shape else torch.tensor(3)).to(dtype)

    def f(x, s):
        return x * s, s + x, x - s, s - x, x / s, x < s, s >= x, x.mul(s), torch.add(x, s), x == s

    calls = [(x, s) for s in VALUES]
    if dtype in (torch.bool,):
        f_bool = lambda x, s: (x * s, s + x, x / s)
        assert versions(f_bool, *calls) == 2
        return
    assert versions(f, *calls) == 2


def test_arithmetic_of_floats():
    def f(x, s, t):
        scale = (s + 1) * t - s / 4 + -s
        return x * scale, scale, +s

    assert versions(f, *[(X, s, t) for s in (0.5, 2.5, -1.0) for t in (3.0, 0.1)]) <= 4


def test_in_place_and_accumulated():
    def f(x, s):
        y = x.clone()
        y *= s
        y += s
        total = 0.0
        for _ in range(3):
            total += s
        return y, total

    assert versions(f, *[(X, s) for s in VALUES]) == 2


def test_attributes_that_change():
    class Schedule:
        def __init__(self):
            self.rate = 0.1

        def step(self):
            self.rate *= 0.9

    schedule, plain = Schedule(), Schedule()

    def make(schedule):
        def f(x):
            schedule.step()
            return x - schedule.rate * x

        return f

    fast, eager = optimize(run_graph)(make(schedule)), make(plain)
    for _ in range(20):
        assert torch.equal(fast(X), eager(X))
        assert schedule.rate == plain.rate
    assert len(fast.__fxstack_capture__.report.replacements) == 2


def test_what_a_break_read_does_not_compile_again():
    def f(x):
        n = x.sum().tolist()
        return x + n, n * 2

    fast = optimize(run_graph)(f)
    for k in range(20):
        assert same(f(X + k), fast(X + k))
    assert len(fast.__fxstack_capture__.report.replacements) <= 4


def test_gradients():
    def f(x, s):
        return (x * s + s / 2).sum()

    fast = optimize(run_graph)(f)
    for s in (0.5, 1.5, 2.5):
        x = X.clone().requires_grad_()
        fast(x, s).backward()
        assert torch.equal(x.grad, torch.full_like(x, s))


def test_values_that_decide_are_fixed():
    def f(x, s):
        if s > 1:
            return x * s
        return x + s, math.sqrt(abs(s)), f"{s:.2f}", int(s), round(s, 1), s.is_integer(), min(s, 0.3)

    versions(f, *[(X, s) for s in (0.5, 2.0, 0.25, 0.5, 3.0)])


def test_division_by_zero_is_pythons():
    def f(x, s, t):
        return x * (s / t)

    fast = optimize(run_graph)(f)
    for call in ((X, 1.0, 2.0), (X, 2.0, 4.0), (X, 2.0, 0.0), (X, 3.0, 5.0)):
        assert same(outcome(f, call), outcome(fast, call))


def test_identity_and_none():
    def f(x, s=None):
        if s is None:
            return x
        return x * s

    assert versions(f, *[(X, s) for s in VALUES]) == 2
    versions(f, (X, 1.0), (X, 2.0), (X, None), (X, 3.0))


def test_passed_on_and_returned():
    def f(x, s):
        pair = {"s": s, "t": [s, s * 2]}
        return x + 1, pair["s"], pair["t"]

    assert versions(f, *[(X, s) for s in VALUES]) == 1 + 1


def test_low_precision_and_other_functions_take_the_value():
    def f(x, s):
        return x.to(torch.bfloat16) * s, torch.clamp(x, max=s), torch.full((2,), s), x**s

    versions(f, *[(X, s) for s in (0.5, 2.0, 3.0)])


def test_integers_and_bools_are_no_floats():
    versions(lambda x, s: (x * s, s * 2), (X, 0.5), (X, 2.5), (X, 2), (X, True), (X, 3.5))


def test_not_with_dynamic_false():
    assert versions(lambda x, s: x * s, *[(X, s) for s in (0.5, 1.5, 2.5)], dynamic=False) == 3


def test_comparisons_depend_on_the_answer_only():
    def f(x, s):
        if s > 1:
            return x * s
        return x - s if s else x

    assert versions(f, *[(X, s) for s in (0.5, 0.25, 2.0, 3.0, 0.125, 4.0, 0.0, 0.75, 5.0)]) <= 4
    assert versions(lambda x, s: x + (1 < s) + (s != 3.0), *[(X, k + 0.5) for k in range(9)]) <= 3


def test_a_threshold_on_what_a_break_read():
    def f(x):
        y = x.pow(2).mean()
        if y.item() > 1e9:
            raise ValueError("diverged")
        return y * 2

    fast = optimize(run_graph)(f)
    for k in range(20):
        assert same(f(X + k), fast(X + k))
    assert len(fast.__fxstack_capture__.report.replacements) <= 3
    with pytest.raises(ValueError, match="diverged"):
        fast(X * 1e9)


def test_nan_is_on_no_side():
    def f(x, s):
        return x if s < 1 or s > 1 else x + 1

    versions(f, *[(X, s) for s in (0.5, 2.0, math.nan, 1.0, 3.0)])
