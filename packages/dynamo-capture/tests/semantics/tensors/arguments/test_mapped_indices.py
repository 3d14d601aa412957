"""Indices without dimensions that differ between the slices of a ``vmap``."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import optimize

X = torch.arange(360.0).reshape(3, 4, 5, 6)
N = torch.tensor([0, 2, 1])
B = torch.tensor([1, 3])
KEYS = {
    "beside a slice and a tensor": lambda n: X[n, :, B],
    "before a slice": lambda n: X[n, :],
    "behind a slice": lambda n: X[:, n],
    "twice": lambda n: X[n, n],
    "twice, apart": lambda n: X[n, :, n],
    "behind a number and a slice": lambda n: X[1, :, n],
    "beside a new dimension and a tensor": lambda n: X[n, None, B],
    "around a new dimension": lambda n: X[n, None, n],
    "at the end": lambda n: X[..., n],
    "at both ends": lambda n: X[n, ..., n],
    "computed": lambda n: X[-n],
    "behind a tensor that is not mapped": lambda n: X[torch.tensor(1), n, :],
    "in a vmap inside": lambda n: torch.vmap(lambda m: X[n, m])(B),
    "of the vmap outside": lambda n: torch.vmap(lambda m: X[n] + m)(B),
}


def _whole(function, *args):
    return optimize(lambda graph, _: graph.forward, fullgraph=True)(function)(*args)


@pytest.mark.parametrize("read", KEYS.values(), ids=KEYS)
def test_they_index_as_tensors(read):
    expected = torch.vmap(read)(N)
    result = _whole(lambda n: torch.vmap(read)(n), N)
    assert result.shape == expected.shape
    assert torch.equal(result, expected)


def test_what_is_written_there():
    def write(n, y):
        y = y.clone()
        y[n] = 5
        y[:, n] = y[:, 0] + 1
        y[1:, n] = 7
        return y

    args = N, torch.arange(48.0).reshape(3, 4, 4)
    assert torch.equal(_whole(lambda n, y: torch.vmap(write)(n, y), *args), torch.vmap(write)(*args))
