"""The guard on the content of small tensors."""

from __future__ import annotations

import torch

import fx_guards
from dynamo_capture.guard_kinds.tensor_contents import tensor_contents
from fx_interface.source import LocalSource


def test_lists_of_numbers_are_compared_and_explained() -> None:
    pointer, table = LocalSource("pointer"), LocalSource("table")
    guard = tensor_contents({pointer: [0], table: [[1, 2], [3, 4]]}, [])
    again = tensor_contents({pointer: [0], table: [[1, 2], [3, 4]]}, [])
    assert guard == again
    assert len(fx_guards.GuardSet([guard, again]).guards) == 1
    one, two = torch.zeros(1, dtype=torch.int64), torch.tensor([[1, 2], [3, 4]])
    assert guard.holds((one, two))
    two[1, 1] = 5
    assert not guard.holds((one, two))
    assert "((1, 2), (3, 5))" in guard.explain((one, two))


def test_memory_that_is_written_elsewhere_does_not_hold() -> None:
    guard = tensor_contents({LocalSource("read"): [0, 0]}, [LocalSource("written")])
    read = torch.zeros(2, dtype=torch.int64)
    assert guard.holds((read, torch.zeros(2)))
    assert not guard.holds((read, read[:1]))
    assert not guard.holds((torch.zeros(4, dtype=torch.int64)[:2], torch.zeros(2)))
