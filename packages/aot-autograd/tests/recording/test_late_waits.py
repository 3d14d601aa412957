"""Where the traced graphs wait for collectives. There is no process group: nothing runs."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.fx import symbolic_trace

from aot_autograd.pipeline import trace_joint
from fx_interface.errors import UnsupportedProgramError
from primtorch_decomps import LIBRARY

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="torch without torch.distributed"
)


def calls_of(function: Any, *inputs: torch.Tensor) -> list[str]:
    """The forward graph's calls, in order."""
    traced = trace_joint(symbolic_trace(function), inputs, operators=LIBRARY)
    return [node.target._opname for node in traced.forward.graph.nodes if node.op == "call_function"]


def reduced(x: Any) -> Any:
    return torch.ops._c10d_functional.all_reduce.default(x, "sum", "0")


def wait(x: Any) -> Any:
    return torch.ops._c10d_functional.wait_tensor.default(x)


def test_a_result_is_waited_for_where_it_is_used() -> None:
    def function(x, y):
        total = wait(reduced(x))
        product = y @ y
        return total + product

    assert calls_of(function, torch.ones(2, 2), torch.ones(2, 2)) == [
        "all_reduce",
        "mm",
        "wait_tensor",
        "add",
    ]


def test_views_read_nothing() -> None:
    def function(x, y):
        total = wait(reduced(x)).t()
        product = y @ y
        return product + 1, total.view(-1).sin()

    found = calls_of(function, torch.ones(1, 3), torch.ones(2, 2))
    assert found == ["all_reduce", "mm", "add", "wait_tensor", "t", "view", "sin"]


def test_collectives_keep_their_order() -> None:
    def function(x):
        one = wait(reduced(x))
        other = wait(reduced(x * 2))
        return other + 1, one + 1

    found = calls_of(function, torch.ones(2))
    assert found == ["all_reduce", "mul", "all_reduce", "wait_tensor", "add", "wait_tensor", "add"]


def test_what_is_read_after_waiting_is_what_was_waited_for() -> None:
    def function(x):
        total = reduced(x)
        wait(total)
        return total + 1

    traced = trace_joint(symbolic_trace(function), (torch.ones(2),), operators=LIBRARY)
    (add,) = (node for node in traced.forward.graph.nodes if node.name == "add")
    assert add.args[0].target is torch.ops._c10d_functional.wait_tensor.default


def test_a_view_of_what_has_not_come_is_refused() -> None:
    def function(x):
        total = reduced(x)
        part = total[1:]
        wait(total)
        return part + 1

    with pytest.raises(UnsupportedProgramError, match="AOT127"):
        trace_joint(symbolic_trace(function), (torch.ones(2),), operators=LIBRARY)
