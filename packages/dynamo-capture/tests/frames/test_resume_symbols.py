"""A function that goes on after a graph break knows from the start what varies: one version for all."""

from __future__ import annotations

import pytest
import torch

from dynamo_capture import graph_break, optimize

primtorch_decomps = pytest.importorskip("primtorch_decomps")
X = torch.arange(24.0).view(12, 2)


def _versions(program, *calls):
    """How many versions there are of each function in the end; the results are eager's."""
    compiled = optimize(lambda graph, inputs: graph.forward, operators=primtorch_decomps.LIBRARY)(program)
    for call in calls:
        expected, actual = program(*call), compiled(*call)
        assert torch.equal(expected, actual)
    return len(compiled.__fxstack_capture__.report.replacements)


def test_sizes_and_numbers_from_data():
    def program(x, mask):
        rows, count = x[mask], mask.sum().item()
        graph_break()
        return rows * 2 + count

    calls = [(X, X[:, 0] > limit) for limit in (3, 9, 15, 5, 12)]
    assert _versions(program, *calls) == 2


def test_a_loop_over_masks():
    def program(x, masks):
        total = x.sum()
        for mask in masks:
            rows = x[mask] * 2
            if rows.sum() > 50:
                total = total + rows.mean()
            total = total + rows.sum()
        return total

    limits = [X[:, 0] > limit for limit in (0, 4, 8, 12, 18)]
    assert _versions(program, (X, limits), (X, limits)) <= 5
