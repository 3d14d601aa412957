"""Arrays and numbers of numpy that torch's operators compute: same classes, dtypes and layouts as numpy's."""

import numpy as np
import pytest
import torch


def _targets(capture):
    graphs = [made.graph for _, made in capture.report.replacements if made.graph is not None]
    return {str(node.target) for graph in graphs for node in graph.graph.nodes}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_arrays(whole, dtype):
    def f(x):
        a, b, c = x[0], x[1], x[-1]
        return (
            a + b, a * 2, 2 * a, a / b, a - 1.5, -a, abs(a), np.sin(a), np.sqrt(abs(b)), a > b, a == 1, a + x, x * a,
            np.float64(2) * a, np.float32(2) * a, a.astype(np.float64), a.copy(), np.sin(np.asarray(a)),
        )  # fmt: skip

    whole(f, (np.array([1.5, -2.25, 3.0], dtype=dtype),), (np.array([0.5, 2.25, -3.0], dtype=dtype),))


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int8])
def test_integers(whole, dtype):
    def f(n):
        a, b = n[0], n[1]
        return a + b, a * 3, a - 100, a == 3, a < b, n + 1, n * n, n > 2, a // 2, a / 2, -a, n + n[0]

    whole(f, (np.array([3, 7, 100], dtype=dtype),))


def test_numbers_are_joined(whole):
    def f(x):
        a, b = x[0] * 2, x[1] + 1
        return (
            np.stack([a, b]),
            np.array([a, b, a]),
            np.array((b, a)),
            np.concatenate([x, x[:1]]),
            np.array([a], dtype=np.float64),
        )

    whole(f, (np.array([1.5, -2.25], dtype=np.float32),))


def test_choices_keep_their_layout(whole):
    def f(x):
        y, a, b = x.T, x[0, 0], x[1, 1]
        return (
            np.where(x > 0, x, 0.0), np.where(y > 0, y, 0.0), np.where(x > 0, 1.0, -1.0), np.where(a > 0, a, b),
            np.where(a > 0, 2.0, 3.0), np.where(y > 0, x.T, y), np.concatenate([y, y]),
        )  # fmt: skip

    whole(f, (np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4),))


def test_a_number_is_a_copy(whole):
    def f(x):
        first = x[0]
        x[0] = 7
        return first + 1, x

    whole(f, (np.array([1.5, 2.5], dtype=np.float32),))


def test_an_equation_of_motion_needs_no_numpy(same):
    def f(s):
        for _ in range(3):
            x, v, angle = s
            pull = np.where(angle > 0, 10.0, -10.0).astype(np.float32) - np.float32(0.5) * np.sin(angle)
            s = np.stack([x + np.float32(0.1) * v, v + np.float32(0.1) * pull, angle + 0.1 * v])
        return s

    same(f, (np.array([0.1, 0.2, -0.3], dtype=np.float32),), graphs=1)
    assert not any("numpy" in target for target in _targets(same.capture))


def test_beside_tensors(same):
    def f(t, x):
        a = x[0]
        return t * a, t + a, t[:2] * x[1]

    x = np.array([1.5, -2.5], dtype=np.float32)
    for dtype in (torch.float32, torch.float64):
        same(f, (torch.arange(3, dtype=dtype), x))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_floats_that_differ_beside_arrays(same, dtype):
    def f(x, t):
        a = x[0]
        return (
            x * t, t - x, x / t, t / x, a * t, t / a, x < t, np.add(x, t), np.full_like(x, t), np.maximum(x, t),
            np.where(x > 1, t, 0.0), np.linalg.norm(x) / t, np.array([t, a]), np.clip(x, -t, t), x**t, x % t,
        )  # fmt: skip

    x = np.array([1, 2, 3], dtype=dtype)
    same(f, *((x, t) for t in (0.1, 0.7, 2.5, 3.25, 7.0)), graphs=2)


def test_what_a_float_beside_arrays_decides(same):
    def f(x, t):
        return np.arange(x[0], t, 0.5) if t > 1 else x * t

    x = np.array([0.25, 2.0], dtype=np.float32)
    same(f, *((x, t) for t in (0.1, 0.7, 2.5, 3.25, 0.2)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_over_arrays_are_rounded_once(whole, dtype):
    x = np.linspace(0.1, 9.7, 100).astype(dtype)
    whole(lambda x: (2.5 / x, 3 / x, np.divide(0.1, x), 0.7 / x[3]), (x,))
