"""What a graph holds after each step is what its steps allocate and free."""

from __future__ import annotations

from typing import Any

import torch

import fxstack
from fxstack import recording

ROW = 1000 * 4
"""Bytes of the tensors below."""


def _memory(function: Any, *arguments: torch.Tensor) -> list[dict[str, Any]]:
    compiled = fxstack.compile(function)
    with recording() as record:
        results = compiled(*arguments)
        if results.requires_grad:
            results.sum().backward()
    found: list[dict[str, Any]] = record.data()["memory"]
    return found


def test_one_kernel_holds_its_result() -> None:
    (entry,) = _memory(lambda x: x.sin() + 1, torch.ones(1000))
    assert (entry["role"], entry["start"], entry["peak"], entry["unknown"]) == ("inference", 0, ROW, 0)
    ((label, held),) = entry["steps"]
    assert label.startswith("kernel_")
    assert held == ROW


def test_what_is_read_no_more_is_freed() -> None:
    """Each result lives until the next one is made of it; indices that nobody reads are not counted."""
    (entry,) = _memory(lambda x: x.cumsum(0).sort()[0].cumsum(0).sort()[0], torch.ones(1000))
    assert [held for _, held in entry["steps"]] == [ROW, 2 * ROW, 2 * ROW, 2 * ROW]
    assert entry["peak"] == 2 * ROW


def test_a_backward_begins_with_what_was_saved_for_it_and_the_gradient() -> None:
    x = torch.ones(1000, requires_grad=True)
    forward, backward = _memory(lambda x: x.sin().exp(), x)
    assert (forward["role"], backward["role"]) == ("forward", "backward")
    assert (forward["start"], forward["peak"]) == (0, ROW)
    assert (backward["start"], backward["peak"]) == (3 * ROW, 4 * ROW)


def test_sizes_that_only_a_run_tells_are_counted_apart() -> None:
    (entry,) = _memory(lambda x: x[x > 0].exp(), torch.ones(1000))
    assert entry["unknown"] > 0
