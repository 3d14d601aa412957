"""Integers that Python makes of floats that are drawn, or that data tell, stay in the graph."""

import math
import random

import pytest
import torch

X = torch.arange(40.0).reshape(10, 4)


@pytest.mark.parametrize("made", [int, round, math.floor, math.ceil, math.trunc])
def test_of_a_float_out_of_a_tensor(whole, made):
    def f(x, t):
        return x[: made(5 * t.item())], made(t.sum().item() - 3)

    whole(f, *[(X, torch.tensor(value)) for value in (0.7, 0.5, 1.3, -0.5, 0.1)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_of_a_tensor(whole, dtype):
    def f(x, t):
        n = int(t.mean() * 4)
        return x[:n] * n, int(t[:1])

    whole(f, *[(X, torch.tensor([value, 1.0, 0.5], dtype=dtype)) for value in (1.7, -2.5, 0.0)])


def test_of_drawn_floats(whole):
    """The box that is cut out of an image: its corners are computed by Python."""

    def f(x):
        size = math.sqrt(1 - random.random())
        height, row = int(x.shape[0] * size), random.randint(0, x.shape[0])
        start, end = max(row - height // 2, 0), min(row + height // 2, x.shape[0])
        x = x.clone()
        x[start:end] = 0
        return x, 1 - (end - start) / x.shape[0], round(random.uniform(-2, 9))

    whole(f, *[(X,)] * 5)


def test_what_is_no_integer_raises(whole):
    def f(t):
        return torch.ones(3) * int(t.sum().item())

    whole(f, *[(torch.tensor([value]),) for value in (2.5, math.nan, math.inf, 1e30, -7.9)])


def test_of_what_autograd_follows(whole):
    def f(x, w):
        y = x * w
        return y[: int(y.mean())].sum()

    w = torch.tensor(0.25, requires_grad=True)
    whole(f, (X, w), (X * 0.2, w))
