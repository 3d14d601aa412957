"""Calls of known objects that no table can have as a key."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import distributed
from torch.nn import functional

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


def test_a_function_of_torch_that_asks_what_is_in_a_tensor_is_traced_into() -> None:
    """``gaussian_nll_loss`` raises where a variance is negative: a check in the graph, as of the program's own."""

    def program(x: torch.Tensor, variances: torch.Tensor) -> torch.Tensor:
        return functional.gaussian_nll_loss(x, torch.zeros(3), variances) * 2

    captured = dynamo_capture.optimize(lambda graph, examples: graph.forward, fullgraph=True)(program)
    x, variances = torch.randn(3), torch.tensor([1.0, 2.0, 3.0])
    assert captured(x, variances).equal(program(x, variances))
    with pytest.raises(ValueError, match="var has negative"):
        captured(x, -variances)
    assert captured(x, variances).equal(program(x, variances))
