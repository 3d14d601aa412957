"""Numbers of Python that vary: where they come from, what decides on them, what they raise."""

import math
import types

import pytest
import torch

X = torch.arange(12.0).reshape(4, 3)
SETTINGS = types.SimpleNamespace(rate=0.5, step=1)


def test_a_schedule(same):
    def f(x, i):
        return x * (1 - 0.1 * i / 20) + math.sqrt(1 - 0.9 ** (i + 1)) * math.cos(i * math.pi / 20)

    same(f, *[(X, i) for i in range(8)], graphs=2, eager=0)


def test_attributes_list_entries_and_globals(same):
    class Schedule:
        def __init__(self):
            self.values = [0.1, 2]

    def f(x, schedule, i):
        schedule.values[0] *= 0.9
        schedule.values[1] += 1
        SETTINGS.rate = 1 / (i + 1)
        return x * math.exp(-schedule.values[0]) / schedule.values[1] + SETTINGS.rate**2

    schedule = Schedule()
    same(f, *[(X, schedule, i) for i in range(5)], eager=0)


def test_a_closure_counts(same):
    def make():
        count, rate = 0, 1.0

        def f(x):
            nonlocal count, rate
            count += 1
            rate = rate * 0.5 + 1 / count
            return x * rate, rate, count

        return f

    same.made(make, *[(X,)] * 5, eager=0)


def test_only_the_truth_of_a_comparison_matters(same):
    def f(x, a, i):
        if math.sin(a) > 0.5 and i / 2 < 4:
            return x * a
        return x - i / 3

    same(f, *[(X, 0.3 * k, k) for k in range(1, 12)], graphs=4, eager=0)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, log, a, i: x / (1 / i) + math.log(a),
        lambda x, log, a, i: x * 10.0 ** (400 * a) + a // i,
        lambda x, log, a, i: x * math.sqrt(a) + a % i + math.exp(1000 * a),
        lambda x, log, a, i: x * (1 << i) + int(a * 1e308 * 10),
    ],
)
def test_exceptions_come_where_python_raises_them(same, program):
    def f(x, log, a, i):
        log.append("before")
        try:
            result = program(x, log, a, i)
        except ArithmeticError as error:
            log.append(str(error))
            raise
        log.append("after")
        return result

    calls = [
        (X, [], a, i) for a, i in [(0.5, 1), (0.25, 2), (0.125, 0), (-0.5, 3), (0.75, -1), (0.2, 4), (2.5, 5)]
    ]
    same(f, *calls)


def test_an_exception_that_is_handled_goes_on_in_the_graph(same):
    def f(x, a, i):
        try:
            scale = a / i
        except ZeroDivisionError:
            scale = 7.0
        return x * scale

    same(f, *[(X, 0.1 * k, k % 3) for k in range(9)], eager=0)


def test_integers_that_follow_from_floats_are_sizes(same):
    def f(x, ratio):
        count = max(1, int(x.shape[0] * ratio))
        return x[:count] * count, [k * ratio for k in range(round(ratio * 2))]

    same(f, *[(X, r) for r in (0.3, 0.5, 0.75, 0.8, 1.0, 0.6)], eager=0)


def test_signs_of_zero_and_what_is_no_number(same):
    def f(x, a, b):
        return x * (a * b), a * b, math.copysign(1.0, a * b), max(a, b), -a

    same(
        f,
        *[(X, a, b) for a, b in [(1.0, 2.0), (-0.0, 1.0), (0.0, 3.0), (math.nan, 1.0), (math.inf, -1.0)]],
        eager=0,
    )


def test_big_integers(same):
    def f(x, i):
        return x + 1, 3**i, (3**i) % 1000, 2.0**i

    same(f, *[(X, i) for i in (2, 3, 30, 60, 900)], eager=0)


def test_numbers_across_a_break(same):
    def f(x, a, i):
        scale = a / (i + 1)
        x = x * scale
        print("between")
        return x + scale, scale * 2

    same(f, *[(X, 0.1 * k, k) for k in range(5)])


def test_quotients_of_sizes_that_are_rounded(same):
    def f(x, n):
        found = math.ceil(n / 3), math.floor(n / 4), int(n / 5), math.trunc(n / 7), math.ceil((n - 1) / 1)
        return x.new_zeros(found), found, math.ceil(n / 2.0), math.ceil(n / -3), int(-n / 3), round(n / 3)

    same(f, *[(X, n) for n in (29, 30, 31, 32, 33, 34, 35)], eager=0)


def test_quotients_of_large_numbers_are_rounded_as_floats_are(same):
    def f(x, n):
        return x + 1, math.ceil(n / 3), int(n / 7), math.floor(n / 2)

    numbers = [*range(9, 14), 2**53 + 1, 3 * 2**58 + 1, 2**60 + 1, 2**62, -7, 0, 1]
    same(f, *[(X, n) for n in numbers], eager=0)
    assert math.ceil((3 * 2**58 + 1) / 3) != -(-(3 * 2**58 + 1) // 3)
