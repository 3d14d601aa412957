"""Tensors of what the program knows: ``torch.tensor`` and its like."""

from __future__ import annotations

import pytest
import torch

import dynamo_capture


def same(one, other):
    return (one.dtype, one.shape, one.tolist()) == (other.dtype, other.shape, other.tolist())


@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.tensor([[1, 2], [3, 4]]) + x,
        lambda x: torch.tensor([x.dim(), 2.5]) * x,
        lambda x: torch.tensor(x.shape[0]) + x.long(),
        lambda x: torch.as_tensor([True, False]) & (x > 0),
        lambda x: x + torch.Tensor([1, 2]),
        lambda x: torch.tensor([], dtype=torch.int8),
        lambda x: torch.tensor([1j, 2]) * x,
    ],
)
def test_they_have_torchs_dtype_and_content(program):
    x = torch.tensor([1.0, -1.0])
    captured = dynamo_capture.optimize(lambda graph, examples: graph.forward, fullgraph=True)(program)
    assert same(captured(x), program(x))
