from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from dynamo_capture import CaptureError, optimize


class _Counted:
    """A backend whose compiled graphs count their runs."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, graph_module: torch.fx.GraphModule, example_inputs: Any) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            self.runs += 1
            return graph_module.forward(*args)

        return run


def _program(x: torch.Tensor) -> torch.Tensor:
    return _scaled(torch.sin(x))


def _scaled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.fixture(params=[False, True], ids=["cold", "warm"])
def compiled(request: pytest.FixtureRequest) -> tuple[Callable[..., Any], _Counted]:
    """The program, compiled before the other interpreter comes, or not."""
    backend = _Counted()
    function = optimize(backend)(_program)
    if request.param:
        function(torch.randn(3))
    backend.runs = 0
    return function, backend


def test_jit_trace_records_the_operators(compiled: Any) -> None:
    function, backend = compiled
    x = torch.randn(3)
    traced = torch.jit.trace(function, x, check_trace=False)
    assert backend.runs == 0
    assert {"aten::sin", "aten::mul"} <= {node.kind() for node in traced.graph.nodes()}
    torch.testing.assert_close(traced(x), _program(x), rtol=0, atol=0)


def test_tracing_to_fx_records_the_operators(compiled: Any) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    function, _ = compiled
    graph = make_fx(function)(torch.randn(3)).graph
    assert [node.target for node in graph.nodes if node.op == "call_function"] == [
        torch.ops.aten.sin.default,
        torch.ops.aten.mul.Tensor,
    ]


def test_forward_mode_keeps_tangents(compiled: Any) -> None:
    function, _ = compiled
    x, tangent = torch.randn(3), torch.randn(3)
    with forward_ad.dual_level():
        found = forward_ad.unpack_dual(function(forward_ad.make_dual(x, tangent))).tangent
    torch.testing.assert_close(found, 2 * x.cos() * tangent, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("transformed", "runs"),
    [
        (lambda f: torch.func.grad(lambda x: f(x).sum()), 0),
        (torch.func.vmap, 1),
        (lambda f: torch.func.hessian(lambda x: f(x).sum()), 0),
        (lambda f: lambda x: torch.func.jvp(f, (x,), (torch.ones_like(x),)), 0),
    ],
    ids=["grad", "vmap", "hessian", "jvp"],
)
def test_transforms(compiled: Any, transformed: Callable[..., Any], runs: int) -> None:
    """In ``vmap`` alone the graph is compiled, with that in it; elsewhere it runs as operators."""
    function, backend = compiled
    x = torch.randn(3)
    torch.testing.assert_close(transformed(function)(x), transformed(_program)(x), rtol=0, atol=0)
    assert backend.runs == runs


class _Dispatched(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


class _Called(TorchFunctionMode):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(func.__name__)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("kind", "runs"), [(_Dispatched, 0), (_Called, 1)])
def test_modes_see_the_program_and_nothing_of_the_compiler(compiled: Any, kind: Any, runs: int) -> None:
    """Modes of torch's functions are traced; the others have to see each operator."""
    function, backend = compiled
    x = torch.randn(3)
    for _ in range(2):
        with kind() as mode:
            function(x)
        assert mode.seen == ["sin", "mul"]
        assert backend.runs == runs
        backend.runs = 0
        function(x)
        assert backend.runs == 1, "outside of the mode, the compiled graph runs"
        backend.runs = 0


def test_a_block_without_dispatch_to_python(compiled: Any) -> None:
    function, backend = compiled
    x = torch.randn(3)
    for _ in range(2):
        with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined]
            torch.testing.assert_close(function(x), _program(x), rtol=0, atol=0)
    assert backend.runs == 0


def test_kernels_that_are_described_may_call_what_is_one_graph() -> None:
    """Torch's tracers run kernels for the device ``meta`` so; when the kernel runs, the function is compiled."""
    backend = _Counted()
    strict = optimize(backend, fullgraph=True)
    function, x = strict(_program), torch.randn(3)
    with torch._C._DisableTorchDispatch():  # type: ignore[attr-defined]
        torch.testing.assert_close(function(x), _program(x), rtol=0, atol=0)
    assert len(strict.report.eager) == 1
    function(x)
    assert backend.runs == 1


def test_counted_operations() -> None:
    weight = torch.randn(3, 3)
    function = optimize(_Counted())(lambda x: x @ weight)
    counts = []
    for _ in range(2):
        with FlopCounterMode(display=False) as counter:
            function(torch.randn(4, 3))
        counts.append(counter.get_total_flops())
        function(torch.randn(4, 3))
    assert counts == [2 * 4 * 3 * 3] * 2


def test_default_device_is_no_foreign_interpreter() -> None:
    backend = _Counted()
    function = optimize(backend)(_program)
    with torch.device("cpu"):
        function(torch.randn(3))
    assert backend.runs == 1


def test_reported_once_and_refused_by_fullgraph() -> None:
    lenient = optimize(_Counted())
    function = lenient(_program)
    for _ in range(3):
        with _Dispatched():
            function(torch.randn(3))
    assert [reason for _, reason in lenient.report.eager] == [
        "a TorchDispatchMode is at work, which has to see each operator"
    ]
    strict = optimize(_Counted(), fullgraph=True)(_program)
    with _Dispatched(), pytest.raises(CaptureError, match="CAP239"):
        strict(torch.randn(3))
