"""Numbers, operators and control flow."""

import math

import pytest
import torch

X = torch.arange(6.0).reshape(2, 3) + 1


def test_operators_of_tensors(same):
    same(lambda x, y: ((x + y) * 2 - x / y) ** 2 % 3 // 1 + -x, (X, X + 1), (X + 2, X), graphs=1, eager=0)


def test_reflected_operators(same):
    same(lambda x: (1 - x, 2 / x, 3 // x, 2**x, 7 % x, 3 @ x if False else 1), (X,), graphs=1, eager=0)


def test_comparisons_of_tensors(same):
    same(lambda x: (x > 2, x == 3, x != 3, 2 <= x, (x > 1) & ~(x > 4)), (X,), graphs=1, eager=0)


def test_matmul(same):
    same(lambda x, y: x @ y.T, (X, X), graphs=1, eager=0)


def test_gradients(same):
    same(
        lambda x, y: (x * y).sin() + x.exp(),
        (X.clone().requires_grad_(), X.clone().requires_grad_()),
        graphs=1,
    )


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), float("-inf"), 1e-300])
def test_constants_of_floats(same, value):
    same(lambda x, k: (x * k, k, -k, math.copysign(1.0, k)), (X, value), (X, -value), (X, value))


def test_nan_as_argument(same):
    nan = float("nan")
    same(lambda x, k: (x * k, k), (X, nan), (X, 1.0), (X, nan))


def test_zero_signs_are_different_arguments(same):
    same(lambda k: math.copysign(1.0, k), (0.0,), (-0.0,), (0.0,))


def test_bool_and_int_are_different_arguments(same):
    same(
        lambda x, k: (x + k, type(k).__name__, k), (X, True), (X, 1), (X, 1.0), (X, False), (X, 0), (X, True)
    )


def test_bool_and_int_in_containers(same):
    same(lambda x, k: (x + k[0], k), (X, [True]), (X, [1]), (X, [1.0]))


def test_bool_and_int_as_tuple_constants(same):
    same(lambda x: ((True, 1.0), (1, 1), (0.0, -0.0), x), (X,))


def test_chained_comparison(same):
    same(lambda x, n: x + 1 if 0 < n < 5 else x - 1, (X, 3), (X, 7), (X, -1), dynamic=False)


def test_integers_of_python(same):
    same(
        lambda x, n: (x, n // 2, n % 3, n**2, n << 1, n & 3, n | 8, n ^ 5, ~n, -n, +n, abs(n)),
        (X, 7),
        (X, 9),
        (X, 11),
    )


def test_division_of_integers_and_floats(same):
    same(
        lambda x, n, m: (x * (n / m), n // m, divmod(n, m), round(n / m, 2)), (X, 7, 2), (X, -7, 2), (X, 8, 3)
    )


def test_division_by_zero(same):
    same(lambda x, n: x * (1 // n), (X, 1), (X, 0), (X, 2))


def test_and_or_not(same):
    same(lambda x, a, b: (x, a and b, a or b, not a), (X, 0, 2), (X, 1, 0), (X, "", None), (X, [], [1]))


def test_conditional_on_shapes(same):
    def f(x):
        if x.shape[0] > 2:
            return x * 2
        return x + 1 if x.dim() == 2 else x

    same(f, (X,), (torch.ones(4, 3),), (torch.ones(2),))


def test_loops(same):
    def f(x, n):
        total = x
        for i in range(n):
            if i == 2:
                continue
            if i == 4:
                break
            total = total + i
        else:
            total = total * 100
        return total

    same(f, (X, 3), (X, 6), (X, 0), (X, 4))


def test_while_else(same):
    def f(x, n):
        while n > 0:
            x = x + n
            n -= 1
            if n == 7:
                break
        else:
            x = x * 2
        return x, n

    same(f, (X, 3), (X, 9), (X, 0))


def test_walrus(same):
    def f(x, items):
        if (n := len(items)) > 2:
            x = x * n
        return x, [y for i in items if (y := i + 1) > 1], n

    same(f, (X, [1, 2, 3]), (X, [0]))


def test_match_literals_and_guards(same):
    def f(x, command):
        match command:
            case "double":
                return x * 2
            case ("add", n) if n > 0:
                return x + n
            case ["many", *rest]:
                return x, rest
            case {"op": op, **others}:
                return x, op, others
            case int() | float():
                return x - command
            case None:
                return x
            case _:
                return -x

    same(
        f, (X, "double"), (X, ("add", 3)), (X, ("add", -1)), (X, ["many", 1, 2]), (X, {"op": 1, "z": 2}), (X, 4),
        (X, 2.5), (X, None), (X, "other"),
    )  # fmt: skip


def test_f_strings(same):
    same(
        lambda x, n, s: f"{n:>5}|{s!r}|{n + 1}|{x.shape}|{n:{n}}|{x.dtype}|{s:^9}|{1.5:.3f}",
        (X, 7, "a"),
        (X, 8, "b'"),
    )


def test_strings(same):
    same(
        lambda s, x: (s.upper(), s.split("-"), "-".join([s, "b"]), s[::-1], s.replace("a", "o"), "a" in s, s % (1, 2)
                      if "%" in s else s, s.format(3), s * 2, s + "!", len(s), x + len(s)),
        ("ab-{}", X), ("%d-%d", X),
    )  # fmt: skip


def test_math_functions(same):
    same(lambda x, k: x * math.sqrt(k) + math.pi + math.floor(k / 3) - math.log(k), (X, 4), (X, 5.5))


def test_math_domain_error(same):
    same(lambda x, k: x * math.sqrt(k), (X, 4), (X, -4))


def test_complex_numbers(same):
    same(lambda x, k: (x, k * 1j, k.real, abs(k)), (X, 3 + 4j), (X, 1j))


def test_dtype_promotion(same):
    same(
        lambda x, y: (x + y, x * 2, x / 2, x.to(torch.int64) // 2),
        (X.int(), X),
        (X, X.double()),
        (X.bool(), X),
    )


def test_ternary_chain_of_types(same):
    same(lambda x, v: x + (1 if v is None else 2 if isinstance(v, str) else 3), (X, None), (X, "a"), (X, 3))


def test_unpacking(same):
    def f(x, items):
        a, (b, *c), d = items
        *first, last = c
        return x * a, b, c, d, first, last

    same(f, (X, (1, [2, 3, 4], 5)), (X, (1, (2, 3), "z")))


def test_unpacking_too_few(same):
    def f(x, items):
        a, b = items
        return x + a

    same(f, (X, [1, 2]), (X, [1]), (X, [1, 2, 3]))


def test_shape_unpacking(same):
    def f(x):
        b, n = x.shape
        return x.reshape(n, b) * b, x.size(), x.size(0), x.numel(), list(x.shape), x.shape[-1] // 2

    same(f, (X,), (torch.ones(4, 5),), (torch.ones(7, 9),), (torch.ones(3, 3),))


def test_del_local(same):
    def f(x):
        y = x + 1
        del y
        try:
            return y  # noqa: F821
        except UnboundLocalError:
            return x * 3

    same(f, (X,))


def test_int_overflow_free(same):
    same(lambda x, n: (x, n * 10**30), (X, 5), (X, 6))


def test_recursion(same):
    def fact(x, n):
        return x if n == 0 else fact(x, n - 1) * n

    same(fact, (X, 5), (X, 3))


def test_endless_recursion(same):
    def f(x):
        return f(x + 1)

    same(f, (X,))


def test_global_constant_changed(same):
    def f(x):
        return x * SCALE

    global SCALE
    for SCALE in (2, 3, 2):  # noqa: B007
        same(f, (X,))
