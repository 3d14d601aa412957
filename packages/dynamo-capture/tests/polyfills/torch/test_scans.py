"""Associative scans along a size that varies."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._higher_order_ops.associative_scan import associative_scan

from dynamo_capture import optimize

primtorch_decomps = pytest.importorskip("primtorch_decomps")


def _recurrence(decay: Any, step: Any, reverse: bool = False) -> Any:
    def combine(left: Any, right: Any) -> Any:
        return left[0] * right[0], left[1] * right[0] + right[1]

    return associative_scan(combine, (decay, step), 0, reverse=reverse, combine_mode="generic")[1].sin()


def _rows(count: int) -> tuple[Any, Any]:
    return torch.rand(count, 3, requires_grad=True), torch.randn(count, 3, requires_grad=True)


@pytest.mark.parametrize("reverse", [False, True])
def test_scans_of_any_length_equal_eager(reverse: bool) -> None:
    compiled = optimize(lambda graph, inputs: graph.forward, operators=primtorch_decomps.LIBRARY)(_recurrence)
    for count in (1, 2, 3, 20, 24, 17, 9, 4, 5, 6, 7, 8, 33):
        rows = _rows(count)
        found, expected = compiled(*rows, reverse), _recurrence(*rows, reverse)
        assert torch.equal(found, expected)
        mine, theirs = (torch.autograd.grad(one.sum(), rows, allow_unused=True) for one in (found, expected))
        torch.testing.assert_close(mine, theirs)


def test_lengths_between_two_powers_of_two_are_one_version() -> None:
    made = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        made.append(graph_module)
        return graph_module.forward

    compiled = optimize(backend, operators=primtorch_decomps.LIBRARY)(_recurrence)
    compiled(*_rows(20))
    for count in range(31, 15, -1):
        compiled(*_rows(count))
    assert len(made) == 2


def test_an_infinite_row_gives_the_gradients_that_eager_gives() -> None:
    """The row too many of an even number is computed of rows that are combined anyway."""
    compiled = optimize(lambda graph, inputs: graph.forward, operators=primtorch_decomps.LIBRARY)(_recurrence)
    for count in (5, 6, 4):
        decay, step = _rows(count)
        with torch.no_grad():
            decay[-1] = 1e38
            step[-2] = 1e38
        mine, theirs = (
            torch.autograd.grad(one(decay, step).sum(), (decay, step)) for one in (compiled, _recurrence)
        )
        torch.testing.assert_close(mine, theirs, equal_nan=True)
