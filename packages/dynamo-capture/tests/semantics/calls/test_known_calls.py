"""Calls of known objects that no table can have as a key."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import distributed

import dynamo_capture


def test_a_method_of_pybind_that_has_no_hash_is_its_function_in_c() -> None:
    group = distributed.ProcessGroup(distributed.HashStore(), 0, 3)
    size = distributed.ProcessGroup.__dict__["size"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(size)

    def program(x: torch.Tensor) -> Any:
        return x * size(group), group.rank()

    captured = dynamo_capture.optimize(lambda graph, examples: graph.forward, fullgraph=True)(program)
    found, rank = captured(torch.ones(2))
    assert found.tolist() == [3, 3]
    assert rank == 0
