"""Sizes and integers that vary: what recompiles, what decides a branch, sizes as values."""

import pytest
import torch
from torch.utils import _pytree as pytree

from dynamo_capture import optimize

X = torch.arange(6.0).reshape(2, 3) + 1


@pytest.mark.parametrize("dynamic, most", [(None, 2), (True, 1)])
def test_sizes_do_not_recompile(dynamic, most, forward):
    library = pytest.importorskip("primtorch_decomps").LIBRARY

    def f(x, y):
        return torch.cat([x + 1, y]).sum(0) * x.shape[0] + x.view(-1).mean()

    fast = optimize(forward, dynamic=dynamic, operators=library)(f)
    for size in range(2, 12):
        x, y = torch.randn(size, 3), torch.randn(5, 3)
        assert torch.equal(fast(x, y), f(x, y))
    assert len(fast.__fxstack_capture__.report.replacements) <= most


def test_sizes_that_decide_a_branch(same):
    def f(x):
        return x + 1 if x.shape[0] > 5 else x * 2

    same(f, *[(torch.ones(n, 2),) for n in range(2, 9)])


def test_integers_that_vary(same):
    same(lambda x, n: x * n + n // 2, *[(X, n) for n in range(8)])


def test_size_one_and_zero(same):
    same(lambda x, y: x + y, *[(torch.ones(n, 3), torch.ones(1, 3)) for n in (4, 1, 0, 5, 1)])


def test_sizes_as_values(same):
    same(
        lambda x: (x.shape[0] * 2, torch.zeros(x.shape[0] + 1), [i for i in range(x.shape[0])], x.shape, -x.shape[0],
                   x.shape[0] / 2, str(x.shape[0]), min(x.shape), max(x.shape[0], 3)),
        *[(torch.ones(n, 2),) for n in (3, 4, 6)],
    )  # fmt: skip


def test_an_item_of_a_list_that_is_read_twice_is_one_number(same):
    def program(x, sizes):
        one, two = pytree.tree_map(lambda n: n, sizes), pytree.tree_map(lambda n: n, sizes)
        return x.view(one), (x * 2).view(two)

    same(program, *[(torch.arange(2.0 * n), [2, n]) for n in (2, 3, 4, 5)])


@pytest.mark.parametrize("step", [range(3), 0, "a", 2.0])
def test_a_range_of_a_size_refuses_what_is_no_step(same, step):
    def f(x, step):
        try:
            return x + 1, list(range(x.shape[0], 20, step))
        except (TypeError, ValueError) as error:
            return x - 1, type(error).__name__, str(error)

    same(lambda x: f(x, step), (torch.ones(2, 3),), (torch.ones(3, 3),), (torch.ones(4, 3),))
