"""The text of a graph's code is written when it is asked for, and goes with the code."""

from __future__ import annotations

import copy
import gc
import linecache
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx import graph_module as torch_graphs
from torch.fx import symbolic_trace

from fx_interface.torch_internals.graph_source import (
    UnwrittenGraph,
    forward_of,
    release_source,
    target_in_text,
)


def test_the_text_goes_with_the_code() -> None:
    module = symbolic_trace(lambda x: x + 1)
    name = type(module).forward.__code__.co_filename
    release_source(module)
    gc.collect()
    assert module(torch.ones(1)).item() == 2
    assert name in torch_graphs._loader.eval_cache
    linecache.getlines(name)
    del module
    gc.collect()
    assert name not in torch_graphs._loader.eval_cache
    assert name not in linecache.cache


def _unwritten() -> UnwrittenGraph:
    return UnwrittenGraph(nn.Module(), symbolic_trace(lambda x: x + 1).graph)


def _is_written(module: UnwrittenGraph) -> bool:
    return "_code" in vars(module)


@pytest.mark.parametrize(
    "ask",
    [
        lambda module: module(torch.ones(1)),
        lambda module: module.forward(torch.ones(1)),
        lambda module: forward_of(module)(torch.ones(1)),
        lambda module: type(module).forward(module, torch.ones(1)),
        lambda module: copy.deepcopy(module)(torch.ones(1)),
        lambda module: pickle.loads(pickle.dumps(module))(torch.ones(1)),
    ],
)
def test_a_graph_is_written_when_it_is_asked_for(ask: Callable[[Any], torch.Tensor]) -> None:
    module = _unwritten()
    run = forward_of(module)
    assert not _is_written(module)
    assert ask(module).item() == 2
    assert run(torch.ones(1)).item() == 2
    assert _is_written(module)
    assert module.forward.__self__ is module
    assert type(module).forward.__code__.co_filename.startswith("<eval_with_key>")


@pytest.mark.parametrize("show", [str, lambda module: module.print_readable(print_output=False)])
def test_an_unwritten_graph_is_shown(show: Callable[[Any], str]) -> None:
    module = _unwritten()
    assert "x + 1" in show(module)


def test_attributes_that_an_unwritten_graph_lacks() -> None:
    module = _unwritten()
    with pytest.raises(AttributeError, match="missing"):
        _ = module.missing
    assert not _is_written(module)


def test_the_text_is_that_of_the_graph_as_it_is_when_asked() -> None:
    module = _unwritten()
    (add,) = module.graph.find_nodes(op="call_function", target=torch.ops.aten.add) or [
        node for node in module.graph.nodes if node.op == "call_function"
    ]
    add.args = (add.args[0], 5)
    assert "x + 5" in module.code
    assert module(torch.ones(1)).item() == 6
    add.args = (add.args[0], 7)
    assert "x + 7" in module.recompile().src
    assert module(torch.ones(1)).item() == 8


def test_what_is_written_late_goes_with_the_code_too() -> None:
    module = _unwritten()
    name = type(module).forward.__code__.co_filename
    assert name in torch_graphs._loader.eval_cache
    del module
    gc.collect()
    assert name not in torch_graphs._loader.eval_cache


def test_the_forward_of_a_written_graph_is_its_own() -> None:
    module = symbolic_trace(lambda x: x + 1)
    assert forward_of(module) == module.forward


@pytest.mark.parametrize("base", [-2, -2.0, -0.0, float("-inf"), 2.0, -1j, True])
def test_the_text_of_a_power_computes_the_power(base: Any) -> None:
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output(graph.call_function(target_in_text(operator.pow, (base, x)), (base, x)))
    exponents = torch.tensor([0.0, 1.0, 2.0])
    torch.testing.assert_close(torch.fx.GraphModule(nn.Module(), graph)(exponents), base**exponents)
