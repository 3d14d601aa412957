from __future__ import annotations

import pkgutil
import subprocess
import sys
from typing import Any

import pytest
import torch

import dynamo_capture
from dynamo_capture import optimize
from dynamo_capture.driver import optimizer as optimizer_module


def test_no_public_name_is_that_of_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(dynamo_capture.__path__)}
    assert not modules & set(dynamo_capture.__all__)


def test_public_names_work_in_any_order() -> None:
    program = "import dynamo_capture as d; d.reset(); d.run_graph; assert callable(d.optimize)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_reset_forgets_what_functions_without_a_named_optimizer_compiled() -> None:
    graphs: list[Any] = []

    def backend(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    fast = dynamo_capture.optimize(backend)(lambda x: x + 1.0)
    for expected in (1, 1):
        fast(torch.ones(2))
        assert len(graphs) == expected
    dynamo_capture.reset()
    assert torch.equal(fast(torch.ones(2)), torch.full((2,), 2.0))
    assert len(graphs) == 2


def test_a_dozen_versions_are_all_kept() -> None:
    compiled = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        compiled.append(graph_module)
        return graph_module.forward

    function = optimize(backend)(lambda x, mode: x + len(mode))
    x = torch.ones(2)
    modes = [f"mode {'x' * n}" for n in range(12)]
    for mode in [*modes, *modes]:
        torch.testing.assert_close(function(x, mode), x + len(mode), rtol=0, atol=0)
    assert len(compiled) == len(modes)


def test_versions_end_at_the_limit() -> None:
    compiled = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        compiled.append(graph_module)
        return graph_module.forward

    optimizer = optimize(backend, recompile_limit=3)
    function = optimizer(lambda x, mode: x + len(mode))
    x = torch.ones(2)
    for mode in ["a", "bb", "ccc", "dddd", "a", "bb", "ccc", "dddd"]:
        torch.testing.assert_close(function(x, mode), x + len(mode), rtol=0, atol=0)
    assert len(compiled) == 3
    (text,) = optimizer.report.explain_recompiles().exhausted
    assert "compiled 3 times" in str(text)


def test_sizes_vary_with_the_rules_that_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Rules:
        def infer(self, op: Any, args: Any, kwargs: Any, env: Any) -> Any:
            assert op is torch.ops.aten.sin.default
            return args[0]

    monkeypatch.setattr(optimizer_module, "load_operator_library", Rules)
    optimizer_module._default_library.cache_clear()
    graphs = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    try:
        function = optimize(backend)(torch.sin)
        for size in range(3, 9):
            x = torch.randn(size)
            torch.testing.assert_close(function(x), x.sin(), rtol=0, atol=0)
    finally:
        optimizer_module._default_library.cache_clear()
    assert len(graphs) == 2, "one for a fixed size, one for any"


def _counting() -> tuple[list[Any], Any]:
    graphs: list[Any] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    return graphs, backend


@pytest.mark.parametrize("fullgraph", [True, False])
def test_one_graph_is_asked_for_with_all_that_is_called(fullgraph: bool) -> None:
    """What was optimized with another backend is part of a graph that must not break; else it is captured by itself."""
    inner, outer = _counting(), _counting()
    called = optimize(inner[1], fullgraph=True)(lambda x: torch.sin(x) + 1)
    fast = optimize(outer[1], fullgraph=fullgraph)(lambda x: torch.relu(called(x)) * 2)
    x = torch.linspace(-3, 3, 5)
    assert torch.equal(fast(x), torch.relu(torch.sin(x) + 1) * 2)
    assert (len(inner[0]), len(outer[0])) == ((0, 1) if fullgraph else (1, 1))


def test_a_backend_that_takes_no_numbers_from_data_gets_graphs_without() -> None:
    graphs: list[Any] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        if any(node.target == "item" for node in graph_module.graph.nodes):
            raise NotImplementedError("item")
        graphs.append(graph_module)
        return graph_module.forward

    def f(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        return y * y[0].item()

    fast, x = optimize(backend)(f), torch.tensor([1, 2, 3])
    assert torch.equal(fast(x), f(x))
    assert torch.equal(fast(x + 1), f(x + 1))
    assert graphs
    with pytest.raises(dynamo_capture.BackendError, match="item"):
        optimize(backend, fullgraph=True)(f)(x)
