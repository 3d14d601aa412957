"""What cannot be run twice unnoticed is told apart, with the reason."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import Graph, GraphModule, symbolic_trace
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from fxstack.checking.eligible import reason_of_call, reason_of_graph

NOTED: list[str] = []


def noted(x: Tensor) -> Tensor:
    NOTED.append("called")
    return x


torch.fx.wrap("noted")


@torch.library.custom_op("checking_eligible::custom", mutates_args=())
def custom(x: Tensor) -> Tensor:
    return x.clone()


def test_graphs_of_torch_s_functions_may_run_twice() -> None:
    graph = symbolic_trace(lambda x, y: torch.nn.functional.gelu(x @ y).sum(-1)[0] + torch.ops.aten.sin(x))
    assert reason_of_graph(graph) is None


def test_functions_that_may_have_effects_may_not() -> None:
    assert "noted" in str(reason_of_graph(symbolic_trace(lambda x: noted(x))))
    assert "custom" in str(reason_of_graph(symbolic_trace(lambda x: torch.ops.checking_eligible.custom(x))))
    hooked = Graph()
    x = hooked.placeholder("x")
    node = hooked.call_function(torch.Tensor.register_hook, (x, x))
    hooked.output((x,))
    module = GraphModule({}, hooked)
    node.args = (x, noted)  # as text it would be no Python
    assert "passes the function noted" in str(reason_of_graph(module))


class _Other(torch.Tensor):
    pass


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (torch.ones(2), None),
        (3, None),
        (torch.ones(2).to_sparse(), "layout"),
        (torch.ones(2).as_subclass(_Other), "_Other"),
        (torch.ones(2, device="meta"), "meta"),
        (torch.Generator(), "Generator"),
    ],
)
def test_inputs_that_cannot_be_copied(value: Any, reason: str | None) -> None:
    found = reason_of_call([value])
    assert found is None if reason is None else reason in str(found)


def test_modes_and_transforms_that_would_see_the_check() -> None:
    class Dispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        pass

    class Function(TorchFunctionMode):
        pass

    for mode in (Dispatch(), Function(), torch.autograd.detect_anomaly()):  # type: ignore[no-untyped-call]
        with mode:
            assert reason_of_call([]) is not None
    with torch.device("cpu"):
        assert reason_of_call([]) is None
    found = []

    def mapped(x: Tensor) -> Tensor:
        found.append(reason_of_call([]))
        return x

    torch.func.vmap(mapped)(torch.ones(2))
    assert found == ["a function transform is active"]
