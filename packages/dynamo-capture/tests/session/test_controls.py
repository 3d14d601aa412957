"""What a user says about capture: where not to capture, what to take as one operation, and when not to compile."""

import threading
from typing import Any

import pytest
import torch

import dynamo_capture
from dynamo_capture import (
    CaptureError,
    allow_in_graph,
    assume_constant_result,
    disable,
    disallow_in_graph,
    explain,
    export,
    graph_break,
    is_compiling,
    mark_dynamic,
    mark_static,
    optimize,
    run_graph,
    set_stance,
)

X = torch.arange(12.0).reshape(4, 3)


def capture(function, *calls, **settings):
    """The report of running these calls; each must give what eager gives."""
    fast = optimize(run_graph, **settings)(function)
    for call in calls:
        assert torch.equal(function(*call), fast(*call))
    return fast.__fxstack_capture__.report


def breaks(report):
    return [str(r.stopped) for _, r in report.replacements if r.stopped is not None]


# ---- is_compiling ----


def test_is_compiling_while_captured():
    seen = []

    def f(x):
        seen.append((is_compiling(), torch.compiler.is_compiling(), torch.compiler.is_dynamo_compiling()))
        return x + 1

    assert not is_compiling()
    f(X)
    optimize(run_graph)(f)(X)
    assert seen == [(False, False, False), (True, True, True)]


def test_is_compiling_chooses_a_path():
    def f(x):
        return x * 2 if is_compiling() and torch.compiler.is_compiling() else x * 3

    assert torch.equal(optimize(run_graph)(f)(X), X * 2)
    assert torch.equal(f(X), X * 3)


# ---- disable, graph_break ----


def test_disabled_functions_run_as_they_are():
    seen = []

    def inside(x):
        seen.append(is_compiling())
        return x * 2

    @disable
    def off(x):
        seen.append(is_compiling())
        return inside(x)

    report = capture(lambda x: off(x + 1) - 1, (X,))
    assert seen == [False] * 4
    (text,) = breaks(report)
    assert "CAP231" in text
    assert "off is marked by disable()" in text


def test_disable_says_why_and_keeps_the_name():
    @disable(reason="it plays sounds")
    def off(x):
        """Its text."""
        return x * 2

    assert (off.__name__, off.__doc__) == ("off", "Its text.")
    (text,) = breaks(capture(lambda x: off(x) + 1, (X,)))
    assert "it plays sounds" in text


def test_disable_without_what_is_called():
    seen = []

    def inside(x):
        seen.append(is_compiling())
        return x * 2

    @disable(recursive=False)
    def off(x):
        seen.append(is_compiling())
        return inside(x)

    fast = optimize(run_graph)(lambda x: off(x) + 1)
    assert torch.equal(fast(X), X * 2 + 1)
    assert seen == [False, True]


def test_disable_of_a_module():
    linear = torch.nn.Linear(3, 3)
    off = disable(linear)
    report = capture(lambda x: off(x + 1) * 2, (X,))
    assert len(breaks(report)) == 1


def test_disable_of_torch_is_respected():
    seen = []

    @torch.compiler.disable
    def off(x):
        seen.append(is_compiling())
        return x * 2

    (text,) = breaks(capture(lambda x: off(x + 1) - 1, (X,)))
    assert "torch.compiler.disable" in text
    assert seen == [False, False]


def test_graph_break_with_a_message():
    def f(x):
        y = x + 1
        graph_break("because I say so")
        return y * 2

    (text,) = breaks(capture(f, (X,)))
    assert "because I say so" in text
    assert f":{f.__code__.co_firstlineno + 2}" in text


def test_graph_break_of_torch_is_passed_over_in_torchs_own_code():
    import torch._dynamo

    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([weight], lr=0.1)

    def step(x):
        weight.grad = x
        optimizer.step()
        return weight * 2

    report = explain(step)(X[0])
    assert breaks(report) == []
    assert "torch._dynamo.graph_break() was called" in str(
        breaks(explain(lambda x: torch._dynamo.graph_break())(X))
    )


def test_graph_break_of_torch():
    import torch._dynamo

    def f(x):
        y = x + 1
        torch._dynamo.graph_break()
        return y * 2

    assert len(breaks(capture(f, (X,)))) == 1


# ---- allow_in_graph, assume_constant_result ----


@allow_in_graph
def opaque(x, scale):
    return torch.where(x > 0, x * scale, x) if x.shape[0] > 1 else x


def test_allowed_functions_are_one_node():
    exported = export(lambda x: opaque(x, 2.0) + 1)(X)
    targets = [node.target for node in exported.graph_module.graph.nodes if node.op == "call_function"]
    assert targets[0] is opaque
    assert len(targets) == 2


class Scaling:
    def __init__(self, factor):
        self.factor = factor

    def __call__(self, x):
        return torch.where(x > 0, x * self.factor, x) if x.shape[0] > 1 else x


def test_allowed_objects_are_one_node_and_are_told_apart():
    def f(x, scaling):
        return scaling(x) + 1

    fast = optimize(run_graph, fullgraph=True)(f)
    double, triple = allow_in_graph([Scaling(2.0), Scaling(3.0)])
    for scaling in (double, triple, double):
        assert torch.equal(fast(X, scaling), f(X, scaling))
    graphs = [one.graph.graph for _, one in fast.__fxstack_capture__.report.replacements]
    calls = [[node.target for node in g.nodes if node.op == "call_function"] for g in graphs]
    assert [called[0].function for called in calls] == [double, triple]
    assert [len(called) for called in calls] == [2, 2]


def test_objects_that_torchs_compiler_allows_are_nodes():
    """Such as the functions in C++ of stock's compiled autograd."""
    inner = type(
        "Op", (), {"__module__": "torch._dynamo.compiled_autograd", "__call__": lambda self, x: x * 2}
    )()
    inner.__name__ = "Doubled"
    torch._dynamo.allow_in_graph(inner)
    exported = export(lambda x: inner(x) + 1)(X)
    targets = [node.target for node in exported.graph_module.graph.nodes if node.op == "call_function"]
    assert inner in targets


def test_what_is_disallowed_ends_the_graph_until_it_is_allowed_again():
    def f(x):
        return torch.sub(x + 1, 2) * 2

    assert disallow_in_graph([torch.sub]) == [torch.sub]
    try:
        report = capture(f, (X,))
        assert len(breaks(report)) == 1
        with pytest.raises(CaptureError, match=r"CAP231.*disallow_in_graph"):
            optimize(run_graph, fullgraph=True)(f)(X)
    finally:
        allow_in_graph(torch.sub)
    assert not breaks(capture(f, (X,)))
    with pytest.raises(TypeError, match="takes a function"):
        disallow_in_graph(3)


def test_allow_in_graph_takes_lists_and_nothing_else():
    def one(x):
        return x

    def two(x):
        return x

    assert allow_in_graph([one, two]) == [one, two]
    with pytest.raises(TypeError, match="takes a function"):
        allow_in_graph(3)


@pytest.mark.parametrize("mark", [assume_constant_result, torch.compiler.assume_constant_result])
def test_constant_results_are_computed_once(mark):
    calls = []

    class Settings:
        def __init__(self):
            self.values = {"scale": 3}

    @mark
    def setting(settings, name):
        calls.append(name)
        return eval("settings.values[name]")

    settings = Settings()
    fast = optimize(run_graph, fullgraph=True)(lambda x: x * setting(settings, "scale"))
    for _ in range(3):
        assert torch.equal(fast(X), X * 3)
    assert calls == ["scale"]


# ---- stances ----


def test_force_eager_uses_nothing_that_is_compiled():
    seen = []

    def f(x):
        seen.append(is_compiling())
        return x + 1

    fast = optimize(run_graph)(f)
    fast(X)
    with set_stance("force_eager"):
        assert torch.equal(fast(X), X + 1)
        assert torch.equal(fast(X[:2]), X[:2] + 1)
    fast(X)
    assert seen == [True, False, False, True]


def test_eager_on_recompile():
    fast = optimize(run_graph)(lambda x: x + (1 if is_compiling() else 2))
    fast(X)
    report = fast.__fxstack_capture__.report
    with set_stance("eager_on_recompile"):
        assert torch.equal(fast(X), X + 1)
        assert torch.equal(fast(X[:2]), X[:2] + 2)
    assert len(report.replacements) == 1
    assert torch.equal(fast(X[:2]), X[:2] + 1)
    assert len(report.replacements) == 2


def test_fail_on_recompile():
    fast = optimize(run_graph)(lambda x: x + 1)
    with set_stance("fail_on_recompile"):
        fast(X)
        assert torch.equal(fast(X), X + 1)
        with pytest.raises(CaptureError, match="would have to be compiled again") as caught:
            fast(X.double())
    assert "dtype" in str(caught.value)
    assert torch.equal(fast(X.double()), X.double() + 1)


def test_another_optimizers_version_is_none_of_ours():
    def function(x):
        return x + 1

    first, second = optimize(run_graph)(function), optimize(run_graph)(function)
    first(X)
    with set_stance("fail_on_recompile"):
        assert torch.equal(second(X.double()), X.double() + 1)
    assert not dynamo_capture.explain_recompiles(second).entries


def test_stances_nest_and_decorate():
    fast = optimize(run_graph)(lambda x: x + (1 if is_compiling() else 2))

    @set_stance("force_eager")
    def eagerly(x):
        return fast(x)

    assert torch.equal(fast(X), X + 1)
    assert torch.equal(eagerly(X), X + 2)
    assert torch.equal(fast(X), X + 1)
    with set_stance("force_eager"):
        with set_stance("default"):
            assert torch.equal(fast(X), X + 1)
        assert torch.equal(fast(X), X + 2)
    assert torch.equal(fast(X), X + 1)


def test_a_stance_stays_until_the_next():
    fast = optimize(run_graph)(lambda x: x + (1 if is_compiling() else 2))
    try:
        set_stance("force_eager")
        assert torch.equal(fast(X), X + 2)
    finally:
        set_stance("default")
    assert torch.equal(fast(X), X + 1)


def test_a_stance_holds_in_every_thread():
    fast = optimize(run_graph)(lambda x: x + (1 if is_compiling() else 2))
    found = []
    with set_stance("force_eager"):
        thread = threading.Thread(target=lambda: found.append(fast(X)))
        thread.start()
        thread.join()
    assert torch.equal(found[0], X + 2)


@pytest.mark.parametrize("stance", ["eager_then_compile", "aot_eager_then_compile"])
def test_the_second_call_compiles_for_what_differs_from_the_first(stance):
    seen = []

    def f(x, n):
        seen.append(is_compiling())
        return x * n

    fast = optimize(run_graph)(f)
    with set_stance(stance):
        for length, n in ((2, 5), (3, 6), (4, 7)):
            assert torch.equal(fast(torch.ones(length), n), torch.full((length,), float(n)))
    assert seen == [False, True, True]
    assert len(fast.__fxstack_capture__.report.replacements) == 1


def test_a_forced_backend_compiles_what_is_called_meanwhile_and_nothing_else():
    def backend(graph_module, example_inputs):
        return lambda *inputs: tuple(torch.full_like(result, 9.0) for result in graph_module(*inputs))

    fast = optimize(run_graph)(lambda x: x + 1)
    assert torch.equal(fast(X), X + 1)
    with set_stance(force_backend=backend):
        assert torch.equal(fast(X), torch.full_like(X, 9.0))
    assert torch.equal(fast(X), X + 1)
    assert torch.equal(set_stance("default", force_backend=backend)(fast)(X), torch.full_like(X, 9.0))
    assert torch.equal(fast(X), X + 1)
    with pytest.raises(RuntimeError, match="force_backend"):
        set_stance("force_eager", force_backend=backend)


def test_an_unknown_stance():
    with pytest.raises(ValueError, match="no stance 'fast'"):
        set_stance("fast")


# ---- marks on tensors ----


def _versions(function, *tensors):
    fast = optimize(run_graph)(function)
    for tensor in tensors:
        assert torch.equal(function(tensor), fast(tensor))
    return len(fast.__fxstack_capture__.report.replacements)


def _flat(x):
    return x.flatten()


def _symbols(x):
    signature = export(lambda x: x * 2)(x).signature
    return sum(declared.kind.name == "SYMBOL" for declared in signature.inputs)


def test_mark_dynamic_makes_symbols_at_once():
    assert _symbols(X.clone()) == 0
    assert _symbols(mark_dynamic(X.clone(), 0)) == 1
    assert _symbols(mark_dynamic(X.clone(), [0, -1])) == 2


def test_mark_dynamic_with_bounds():
    x = mark_dynamic(X.clone(), 0, min=2, max=5)
    report = capture(lambda x: x + x.shape[0], (x,))
    (_, replacement) = report.replacements[0]
    assert "ranges=((" in str(replacement.guards[-1])


def test_mark_static_keeps_sizes():
    shapes = [X, X[:3], X[:2]]
    assert _versions(lambda x: x * 2, *[mark_static(x.clone()) for x in shapes]) == 3
    assert _symbols(mark_static(mark_dynamic(X.clone(), [0, 1]), 0)) == 1


def test_reset_compiles_again():
    graphs = []

    def backend(module, inputs):
        graphs.append(module)
        return module.forward

    fast = optimize(backend)(lambda x: x + 1)
    fast(X)
    fast(X)
    assert len(graphs) == 1
    dynamo_capture.reset()
    fast(X)
    assert len(graphs) == 2


@pytest.mark.parametrize("mark", [dynamo_capture.mark_dynamic, dynamo_capture.mark_static])
def test_only_dimensions_of_tensors_are_marked(mark: Any) -> None:
    x = torch.ones(2, 3)
    for d in (2, -3):
        with pytest.raises(IndexError, match=f"the tensor has 2 dimensions, and none is {d}"):
            mark(x, d)
    with pytest.raises(TypeError, match="not of a Linear"):
        mark(torch.nn.Linear(2, 2), 0)
    assert mark(x, -1) is x
