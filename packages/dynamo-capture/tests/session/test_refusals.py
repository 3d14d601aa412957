"""A backend that refuses graphs is asked once for each, and the user is told once."""

from __future__ import annotations

import gc
import logging
import weakref
from typing import Any

import pytest
import torch
from torch import nn

from dynamo_capture import optimize
from dynamo_capture.session.refusals import Refusals
from fx_interface.errors import UnsupportedProgramError


class Block(nn.Module):
    """A module that calls a method and another module."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x)) + self.twice(x)

    def twice(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


class Net(nn.Module):
    """Three blocks."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def test_each_graph_is_offered_once_and_the_reason_told_once(caplog: pytest.LogCaptureFixture) -> None:
    offered: list[list[str]] = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        offered.append([str(node.target) for node in graph_module.graph.nodes if node.op != "placeholder"])
        raise UnsupportedProgramError("TST001", "not here")

    net = Net()
    optimizer = optimize(backend)
    compiled = optimizer(net)
    x = torch.ones(2, 2)
    with caplog.at_level(logging.WARNING, "dynamo_capture"):
        for _ in range(3):
            assert torch.equal(compiled(x), net(x))
    assert len(offered) == 4  # the net's, a block's, the layer's and the method's
    assert len(set(map(tuple, offered))) == 4
    assert [record.getMessage() for record in caplog.records] == ["Net runs uncompiled: [TST001] not here"]
    assert {code.co_name for code, _ in optimizer.report.eager} >= {"Net", "forward", "twice"}
    optimizer.reset()
    compiled(x)
    assert len(offered) > 4


def test_other_graphs_and_other_reasons_are_not_held_back(caplog: pytest.LogCaptureFixture) -> None:
    def backend(graph_module: Any, example_inputs: Any) -> Any:
        found = [node for node in graph_module.graph.nodes if node.target is torch.sin]
        if found:
            raise UnsupportedProgramError("TST002", f"{len(found)} sines")
        return graph_module.forward

    def inner(x: torch.Tensor) -> torch.Tensor:
        return x.cos() + 1

    def outer(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(inner(x))

    def other(x: torch.Tensor) -> torch.Tensor:
        return torch.sin(torch.sin(x))

    optimizer = optimize(backend)
    x = torch.ones(2)
    with caplog.at_level(logging.WARNING, "dynamo_capture"):
        assert torch.equal(optimizer(outer)(x), outer(x))
        assert torch.equal(optimizer(other)(x), other(x))
    assert [code.co_name for code, _ in optimizer.report.replacements] == ["inner"]
    assert sorted("2 sines" in record.getMessage() for record in caplog.records) == [False, True]


def test_a_function_of_which_only_the_first_call_is_refused_is_compiled_in_the_second() -> None:
    class Observer(nn.Module):
        """Gives its buffer a size in the first call."""

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("least", torch.empty(0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.least = x if self.least.numel() == 0 else torch.minimum(self.least, x)
            return x - self.least

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        if torch.minimum not in {node.target for node in graph_module.graph.nodes}:
            raise UnsupportedProgramError("TST003", "the first call")
        return graph_module.forward

    optimizer = optimize(backend)
    net, plain = Observer(), Observer()
    compiled = optimizer(net)
    for scale in (1.0, -1.0, 2.0):
        x = torch.arange(4.0) * scale
        assert torch.equal(compiled(x), plain(x))
    assert "Observer" in [
        code.co_name for code, made in optimizer.report.replacements if made.graph is not None
    ]
    assert [code.co_name for code, _ in optimizer.report.eager].count("Observer") == 1


def test_code_that_was_asked_again_is_not_held() -> None:
    refusals = Refusals()
    code = compile("1", "<dropped>", "eval")
    assert refusals.may_be_first_only(code)
    assert not refusals.may_be_first_only(code)
    held = weakref.ref(code)
    del code
    gc.collect()
    assert held() is None
    assert not refusals.asked_again
