"""Every function of torch.compiler and torch._dynamo that the tables call obeyed, or harmless, in a program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
import torch._dynamo

import fxstack
from fxstack.torch_compile.entry import COUNTERPART
from fxstack.torch_compile.functions import CHECKS, COMPILER, DYNAMO

CASES: dict[str, Callable[[], None]] = {}
X = torch.arange(6.0).reshape(3, 2)


def case(*names: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(function: Callable[[], None]) -> Callable[[], None]:
        assert not set(names) & set(CASES)
        CASES.update(dict.fromkeys(names, function))
        return function

    return register


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    yield
    torch._dynamo.reset()


def test_all_are_tried() -> None:
    tables = (("torch.compiler", COMPILER), ("torch._dynamo", DYNAMO), ("torch", CHECKS))
    tried = {
        f"{owner}.{entry.name}" for owner, table in tables for entry in table if entry.state != COUNTERPART
    }
    assert set(CASES) == tried


def _graphs(function: Callable[..., Any], *calls: tuple[Any, ...], **arguments: Any) -> list[Any]:
    """The graphs of these calls, each of which gives what eager gives."""
    graphs: list[Any] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    compiled = fxstack.compile(function, backend=backend, **arguments)
    for call in calls:
        torch.testing.assert_close(compiled(*call), function(*call))
    return graphs


def _targets(graphs: list[Any]) -> list[Any]:
    return [node.target for graph in graphs for node in graph.graph.nodes if node.op.startswith("call")]


def _plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@case("torch.compiler.allow_in_graph", "torch._dynamo.allow_in_graph", "torch._dynamo.nonstrict_trace")
def _one_node() -> None:
    for mark in (torch.compiler.allow_in_graph, torch._dynamo.allow_in_graph, torch._dynamo.nonstrict_trace):

        def plain(x: torch.Tensor) -> torch.Tensor:
            return x + 1

        marked = mark(plain)  # type: ignore[operator]
        graphs = _graphs(lambda x, f=marked: f(x) * 2, (X,), fullgraph=True)
        assert _targets(graphs)[0] is marked


@case("torch.compiler.disable", "torch._dynamo.disable")
def _disabled() -> None:
    for recursive in (True, False):
        marked = torch.compiler.disable(lambda x: x + 1, recursive=recursive)
        graphs = _graphs(lambda x, f=marked: f(x * 3) * 2, (X,))
        assert len(graphs) == 2


@case("torch.compiler.assume_constant_result", "torch._dynamo.assume_constant_result")
def _constant() -> None:
    calls: list[int] = []

    @torch.compiler.assume_constant_result
    def number() -> int:
        calls.append(1)
        return 3

    compiled = fxstack.compile(lambda x: x * number(), backend="eager", fullgraph=True)
    compiled(X)
    torch.testing.assert_close(compiled(X), X * 3)
    assert calls == [1]


@case("torch.compiler.substitute_in_graph", "torch._dynamo.substitute_in_graph")
def _substituted() -> None:
    for declare in (torch.compiler.substitute_in_graph, fxstack.substitute_in_graph):

        def opaque(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy().copy()) + breakpoint_free(x)

        def breakpoint_free(x: torch.Tensor) -> float:
            return float(open("/dev/null").read() or 1.0)

        @declare(opaque)
        def traceable(x: torch.Tensor) -> torch.Tensor:
            return x + 1.0

        assert len(_graphs(lambda x, f=opaque: f(x) * 2, (X,), fullgraph=True)) == 1
        torch.testing.assert_close(traceable(X), opaque(X))


@case("torch.compiler.set_stance", "torch._dynamo.set_stance")
def _stances() -> None:
    seen: list[bool] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        seen.append(torch.compiler.is_compiling())
        return x * 2

    compiled = fxstack.compile(function, backend="eager", dynamic=False)
    compiled(X)
    with torch.compiler.set_stance("force_eager"):
        compiled(X)
    assert seen == [True, False]
    with torch.compiler.set_stance("eager_on_recompile"):
        compiled(X)
        compiled(X[1:])
    assert seen == [True, False, True, False]
    with torch.compiler.set_stance("fail_on_recompile"), pytest.raises(Exception, match="CAP251"):
        compiled(X[1:])
    torch.compiler.set_stance("force_eager")
    compiled(X)
    torch.compiler.set_stance("default")
    torch.compiler.set_stance("force_eager")(compiled)(X)
    compiled(X)
    assert seen == [True, False, True, False, False, False, True]
    for stance in ("eager_then_compile", "aot_eager_then_compile"):
        with torch.compiler.set_stance(stance):
            seen.clear()
            later = fxstack.compile(function, backend="eager")
            for length in (1, 2, 3):
                later(torch.ones(length + 1))
            assert seen == [False, True, True], "the second call compiles for all sizes"
    forced: list[Any] = []
    with torch.compiler.set_stance(force_backend=lambda graph, inputs: forced.append(graph) or graph.forward):
        fxstack.compile(lambda x: x - 1, backend="aot_eager")(X)
    assert len(forced) == 1


@case("torch.compiler.is_compiling", "torch.compiler.is_dynamo_compiling", "torch.compiler.is_exporting",
      "torch._dynamo.is_compiling")  # fmt: skip
def _asking() -> None:
    seen: list[Any] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        answers = (
            torch.compiler.is_compiling(),
            torch.compiler.is_dynamo_compiling(),
            torch._dynamo.is_compiling(),
        )
        seen.append((*answers, torch.compiler.is_exporting()))
        return x + 1

    fxstack.compile(function, backend="eager", fullgraph=True)(X)
    function(X)
    assert seen == [(True, True, True, False), (False, False, False, False)]


@case("torch.compiler.nested_compile_region")
def _nested() -> None:
    block = torch.compiler.nested_compile_region(lambda x: x.sin() + 1)
    assert len(_graphs(lambda x: block(block(x)), (X,), fullgraph=True)) == 1


@case("torch.compiler.wrap_numpy")
def _numpy() -> None:
    import numpy

    wrapped = torch.compiler.wrap_numpy(lambda x: numpy.sin(x) + 1)
    torch.testing.assert_close(fxstack.compile(wrapped, fullgraph=True)(X), X.sin() + 1)


@case("torch.compiler.cudagraph_mark_step_begin")
def _step() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        torch.compiler.cudagraph_mark_step_begin()
        return x + 1

    assert len(_graphs(function, (X,))) == 1


@case(
    "torch.compiler.set_default_backend",
    "torch.compiler.get_default_backend",
    "torch._dynamo.register_backend",
)
def _backends() -> None:
    graphs: list[Any] = []

    def recorded(graph_module: Any, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    torch._dynamo.register_backend(recorded, name="recorded_by_a_test")  # type: ignore[arg-type]
    fxstack.compile(lambda x: x + 1, backend="recorded_by_a_test")(X)
    torch.compiler.set_default_backend("recorded_by_a_test")
    try:
        fxstack.compile(lambda x: x + 1)(X)
    finally:
        torch.compiler.set_default_backend(None)
    fxstack.compile(lambda x: x + 1)(X)
    assert len(graphs) == 2


@case("torch.compiler.config", "torch._dynamo.config.patch")
def _patched() -> None:
    with torch._dynamo.config.patch(assume_static_by_default=False):  # type: ignore[attr-defined]
        assert len(_graphs(_plus_one, (X,), (torch.ones(5, 7),))) == 1
    with torch.compiler.config.patch(assume_static_by_default=False):  # type: ignore[attr-defined]
        assert len(_graphs(_plus_one, (X,), (torch.ones(5, 7),))) == 1
    assert len(_graphs(_plus_one, (X,), (torch.ones(5, 7),))) == 2


@case("torch._dynamo.patch_dynamo_config")
def _patched_inside() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch._dynamo.patch_dynamo_config(capture_scalar_outputs=True):  # type: ignore[attr-defined]
            x = x + 1
        return x * 2

    assert len(_graphs(function, (X,), fullgraph=True)) == 1

    def broken(x: torch.Tensor) -> torch.Tensor:
        with torch._dynamo.patch_dynamo_config(capture_scalar_outputs=True):  # type: ignore[attr-defined]
            x = x + 1
            torch._dynamo.graph_break()
            x = x * 3
        return x * 2

    assert len(_graphs(broken, (X,))) == 3  # at the break, and where the block ends in Python


@case(
    "torch._dynamo.mark_dynamic", "torch._dynamo.maybe_mark_dynamic", "torch._dynamo.decorators.mark_unbacked"
)
def _dynamic() -> None:
    marks: list[Any] = [torch._dynamo.mark_dynamic, torch._dynamo.maybe_mark_dynamic,
                        torch._dynamo.decorators.mark_unbacked]  # fmt: skip
    for mark in marks:
        x = torch.ones(3, 2)
        mark(x, 0)
        assert len(_graphs(_plus_one, (x,), (torch.ones(4, 2),), (torch.ones(5, 2),))) == 1
    x = torch.ones(3, 2)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=4)
    assert len(_graphs(_plus_one, (x,), (torch.ones(4, 2),))) == 1
    assert len(_graphs(_plus_one, (x,), (torch.ones(5, 2),))) == 2


@case("torch._dynamo.mark_static", "torch._dynamo.mark_static_address")
def _static() -> None:
    calls = [(torch.ones(length, 2),) for length in (3, 4, 5)]
    for (x,) in calls:
        torch._dynamo.mark_static_address(x)
    assert len(_graphs(_plus_one, *calls, dynamic=True)) == 1
    for (x,) in calls:
        torch._dynamo.mark_static(x, 0)
    assert len(_graphs(_plus_one, *calls, dynamic=True)) == 3


@case("torch._dynamo.graph_break", "torch._dynamo.skip_frame", "torch._dynamo.step_unsupported")
def _ended() -> None:
    for end in (torch._dynamo.graph_break, torch._dynamo.skip_frame, torch._dynamo.step_unsupported):

        def function(x: torch.Tensor, end: Any = end) -> torch.Tensor:
            x = x + 1
            end()
            return x * 2

        assert len(_graphs(function, (X,))) == 2


@case("torch._dynamo.disallow_in_graph", "torch._dynamo.forbid_in_graph")
def _kept_out() -> None:
    torch._dynamo.disallow_in_graph(torch.sub)
    try:
        graphs = _graphs(lambda x: torch.sub(x + 1, 2) * 2, (X,))
    finally:
        torch._dynamo.allow_in_graph(torch.sub)
    assert len(graphs) == 2
    assert torch.sub not in _targets(graphs)
    forbidden = torch._dynamo.forbid_in_graph(lambda x: x + 1)
    assert len(_graphs(lambda x: forbidden(x * 3) * 2, (X,))) == 2
    with pytest.raises(Exception, match="CAP231"):
        _graphs(lambda x: forbidden(x), (X,), fullgraph=True)


@case("torch._dynamo.error_on_graph_break")
def _error() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        with torch._dynamo.error_on_graph_break(True):
            x = x + 1
            torch._dynamo.graph_break()
        return x

    with pytest.raises(Exception, match="CAP231"):
        _graphs(function, (X,))


@case("torch._dynamo.dont_skip_tracing")
def _traced_anyway() -> None:
    assert len(_graphs(torch._dynamo.dont_skip_tracing(_plus_one), (X,))) == 1


def test_compiled_modules_have_a_class_of_ours() -> None:
    model = torch.nn.Linear(2, 2)
    compiled = fxstack.compile(model)
    assert isinstance(compiled, torch.nn.Linear)
    assert isinstance(compiled, fxstack.OptimizedModule)
    assert not isinstance(model, fxstack.OptimizedModule)
    assert not isinstance(compiled, torch._dynamo.OptimizedModule)


@case("torch.compiler.load_compiled_function", "torch.compiler.set_enable_guard_collectives")
def _nothing_of_the_kind() -> None:
    torch.compiler.set_enable_guard_collectives(True)
    try:
        assert len(_graphs(_plus_one, (X,))) == 1
    finally:
        torch.compiler.set_enable_guard_collectives(False)
    assert not hasattr(fxstack.compile(_plus_one), "save_compiled_function")


@case("torch.compiler.keep_portable_guards_unsafe", "torch.compiler.skip_guard_on_inbuilt_nn_modules_unsafe",
      "torch.compiler.skip_guard_on_all_nn_modules_unsafe", "torch.compiler.keep_tensor_guards_unsafe",
      "torch.compiler.skip_guard_on_globals_unsafe", "torch.compiler.skip_all_guards_unsafe")  # fmt: skip
def _guards() -> None:
    for entry in COMPILER:
        if entry.name.endswith("_unsafe"):
            kept = getattr(torch.compiler, entry.name)
            compiled = fxstack.compile(_plus_one, options={"guard_filter_fn": kept})
            torch.testing.assert_close(compiled(X), X + 1)
            torch.testing.assert_close(compiled(X.double()), X.double() + 1)


@case("torch._check", "torch._check_is_size", "torch._check_value", "torch._check_index", "torch._check_type",
      "torch._check_not_implemented", "torch._check_with", "torch._check_tensor_all", "torch._assert")  # fmt: skip
def _checked() -> None:
    def function(x: torch.Tensor, count: torch.Tensor) -> torch.Tensor:
        n = count.item()
        torch._check(n >= 1, lambda: "at least one row")
        torch._check_is_size(n)  # type: ignore[arg-type]
        torch._check_value(n <= x.shape[0])
        torch._check_index(n <= x.shape[0])
        torch._check_type(n <= x.shape[0])
        torch._check_not_implemented(n <= x.shape[0])
        torch._check_with(RuntimeError, n <= x.shape[0], lambda: "no more than there are")
        torch._check_tensor_all(x > -1, lambda: "no negative numbers")
        torch._assert(n < 100, "few")  # type: ignore[arg-type]
        return x[: int(n)] * 2

    compiled = fxstack.compile(function, fullgraph=True)
    torch.testing.assert_close(compiled(X, torch.tensor(2)), X[:2] * 2)
    for x, count, error in ((X, 0, RuntimeError), (X, 9, ValueError), (X - 9, 2, RuntimeError)):
        with pytest.raises(error) as expected:
            function(x, torch.tensor(count))
        with pytest.raises(error) as found:
            compiled(x, torch.tensor(count))
        assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("tried", dict.fromkeys(CASES.values()), ids=lambda tried: tried.__name__)
def test_each(tried: Callable[[], None]) -> None:
    if tried is _backends and not hasattr(torch.compiler, "set_default_backend"):
        pytest.skip("torch before 2.12 has no default backend")
    tried()
