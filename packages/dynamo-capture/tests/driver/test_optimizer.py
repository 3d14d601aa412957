from __future__ import annotations

import inspect
import pkgutil
import subprocess
import sys
from types import FunctionType
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


def _described(x: torch.Tensor, k: int = 2, *, shift: float = 1.0) -> torch.Tensor:
    return x.sin() * k + shift


def test_an_optimized_function_is_a_function() -> None:
    fast = optimize("eager")(_described)
    assert isinstance(fast, FunctionType)
    assert inspect.isfunction(fast)
    for name in (
        "__code__",
        "__defaults__",
        "__kwdefaults__",
        "__globals__",
        "__closure__",
        "__annotations__",
    ):
        assert getattr(fast, name) is getattr(_described, name)
    assert inspect.getfullargspec(fast) == inspect.getfullargspec(_described)

    async def waits() -> None: ...

    assert inspect.iscoroutinefunction(optimize("eager")(waits))


def test_an_optimized_object_is_no_function() -> None:
    class Adds:
        def __call__(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1

    fast = optimize("eager")(Adds())
    assert not inspect.isfunction(fast)
    assert not hasattr(fast, "__code__")


def _scaled(x: torch.Tensor, k: int = 2) -> torch.Tensor:
    return x.sin() * k


def test_an_optimized_function_is_traced_and_scripted_as_the_function_is() -> None:
    fast, x = optimize("eager")(_scaled), torch.ones(3)
    assert torch.equal(torch.fx.symbolic_trace(fast)(x, 2), _scaled(x, 2))
    assert torch.equal(torch.jit.script(fast)(x), _scaled(x))


class _Doubles(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


def test_a_module_whose_call_is_optimized_can_be_scripted() -> None:
    module, x = _Doubles(), torch.ones(3)
    module._compiled_call_impl = optimize("eager")(module._call_impl)  # what Module.compile does
    assert torch.equal(module(x), x * 2)
    assert torch.equal(torch.jit.script(module)(x), x * 2)


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="5 is no function"):
        optimize("eager")(5)


def test_errors_are_runtime_errors() -> None:
    def breaks(x: torch.Tensor) -> torch.Tensor:
        dynamo_capture.graph_break()
        return x

    with pytest.raises(RuntimeError, match="CAP"):
        optimize("eager", fullgraph=True)(breaks)(torch.ones(2))


class _Called(torch.nn.Module):
    def forward(self, tokens: Any, scale: float = 1.0, *more: Any, mask: Any = None) -> Any:
        for part in more:
            tokens = tokens + part
        return tokens * scale if mask is None else tokens * mask


class _Callable:
    def __call__(self, tokens: Any, *more: Any, mask: Any = None) -> Any:
        return tokens * more[0] if mask is None else tokens * mask


@pytest.mark.parametrize("called", [_Called(), _Callable()])
def test_arguments_of_objects_have_the_names_of_their_parameters(called: Any) -> None:
    seen: list[list[str]] = []

    def backend(graph: Any, inputs: Any) -> Any:
        seen.append([node.name for node in graph.graph.find_nodes(op="placeholder")])
        return graph.forward

    optimizer = optimize(backend, dynamic=False)
    run = optimizer(called)
    run(torch.ones(3), 2.0, torch.ones(3), mask=torch.ones(3))
    run(torch.ones(4), 2.0, torch.ones(4), mask=torch.ones(4))
    assert {"tokens", "mask"} <= {*seen[0]} <= {"tokens", "mask", "more_0"}
    told = str(dynamo_capture.explain_recompiles(run))
    assert ": mask: expected sizes [3], got [4]" in told
    assert "dynamo_capture" not in told  # no line of ours


def test_hooks_see_what_was_passed_and_no_defaults() -> None:
    """Names are for readers: arguments go on as they came."""
    module = _Called()
    seen: list[Any] = []
    module.register_forward_pre_hook(
        lambda _, args, kwargs: seen.append((len(args), sorted(kwargs))), with_kwargs=True
    )
    optimize(lambda graph, inputs: graph.forward)(module)(torch.ones(3), mask=torch.ones(3))
    assert seen == [(1, ["mask"])]
