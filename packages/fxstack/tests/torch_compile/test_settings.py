"""Flags of torch._dynamo.config and variables of the environment that are done, each in a program."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch
import torch._dynamo
from torch import nn

import fxstack
from fxstack.torch_compile.entry import DONE
from fxstack.torch_compile.settings import COMPILER_SETTINGS, ENVIRONMENT, SETTINGS

CASES: dict[str, Callable[[], None]] = {}
X = torch.arange(6.0).reshape(3, 2)


def case(*names: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    def register(function: Callable[[], None]) -> Callable[[], None]:
        CASES.update(dict.fromkeys(names, function))
        return function

    return register


def _flags(**flags: Any) -> Any:
    return torch._dynamo.config.patch(**flags)  # type: ignore[attr-defined]


def _graphs(function: Callable[..., Any], *calls: tuple[Any, ...], **arguments: Any) -> int:
    """How many graphs these calls make; each gives what eager gives."""
    graphs: list[Any] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    compiled = fxstack.compile(function, backend=backend, **arguments)
    for call in calls:
        torch.testing.assert_close(compiled(*call), function(*call))
    return len(graphs)


SIZES = [(torch.ones(length),) for length in (3, 4, 5, 6)]


def _plus_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


@case("assume_static_by_default", "automatic_dynamic_shapes")
def _sizes() -> None:
    assert _graphs(_plus_one, *SIZES) == 2
    with _flags(assume_static_by_default=False):
        assert _graphs(_plus_one, *SIZES) == 1
        assert _graphs(_plus_one, *SIZES, dynamic=False) == 4
    with _flags(automatic_dynamic_shapes=False):
        assert _graphs(_plus_one, *SIZES) == 4
        assert _graphs(_plus_one, *SIZES, dynamic=True) == 1


@case("specialize_int", "specialize_float")
def _numbers() -> None:
    for flag, numbers in (("specialize_int", (2, 3, 4, 5)), ("specialize_float", (2.5, 3.5, 4.5, 5.5))):
        calls = [(X, number) for number in numbers]
        assert _graphs(lambda x, n: x * n, *calls) == 2
        with _flags(**{flag: True}):
            assert _graphs(lambda x, n: x * n, *calls) == 4


@case("force_parameter_static_shapes")
def _parameters() -> None:
    calls = [(nn.Parameter(torch.ones(length)),) for length in (3, 4, 5, 6)]
    assert _graphs(_plus_one, *calls) == 4
    with _flags(force_parameter_static_shapes=False):
        assert _graphs(_plus_one, *calls) == 2


@case("recompile_limit", "fail_on_recompile_limit_hit")
def _limits() -> None:
    calls = [(X, text) for text in "abcd"]

    def function(x: torch.Tensor, text: str) -> torch.Tensor:
        return x + ord(text)

    assert _graphs(function, *calls) == 4
    with _flags(recompile_limit=2):
        assert _graphs(function, *calls) == 2
        assert _graphs(function, *calls, recompile_limit=3) == 3
        with pytest.raises(Exception, match="CAP252"):
            _graphs(function, *calls, fullgraph=True)
        with _flags(fail_on_recompile_limit_hit=True), pytest.raises(Exception, match="CAP252"):
            _graphs(function, *calls)
    with _flags(cache_size_limit=1):
        assert _graphs(function, *calls) == 1
    with pytest.raises(Exception, match="CAP252"):
        _graphs(function, *calls, fullgraph=True, recompile_limit=3)
    assert _graphs(function, *calls, fullgraph=True, recompile_limit=4) == 4


@case("error_on_recompile")
def _no_recompiling() -> None:
    with _flags(error_on_recompile=True), pytest.raises(Exception, match="CAP251"):
        _graphs(_plus_one, *SIZES)


@case("suppress_errors", "disable")
def _errors() -> None:
    def broken(graph_module: Any, example_inputs: Any) -> Any:
        raise ValueError("a broken backend")

    with pytest.raises(Exception, match="CAP301"):
        fxstack.compile(_plus_one, backend=broken)(X)
    with _flags(suppress_errors=True):
        torch.testing.assert_close(fxstack.compile(_plus_one, backend=broken)(X), X + 1)
    with _flags(disable=True):
        torch.testing.assert_close(fxstack.compile(_plus_one, backend=broken)(X), X + 1)


@case("ignore_logging_functions", "ignore_logger_methods")
def _silenced() -> None:
    said: list[str] = []

    def note(text: str) -> None:
        said.append(text)
        open("/dev/null").close()

    def function(x: torch.Tensor) -> torch.Tensor:
        note("half")
        return x + 1

    for flag in ("ignore_logging_functions", "ignore_logger_methods"):
        with _flags(**{flag: {note}}):
            fxstack.compile(function, backend="eager", fullgraph=True)(X)
    assert said == []


@case("capture_scalar_outputs", "capture_dynamic_output_shape_ops", "rewrite_assert_with_torch_assert")
def _data() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        if not x.sum() > 0:  # an assertion, as the test library leaves it alone
            raise AssertionError("positive")
        return x[x > 2] * x.sum().item()

    assert _graphs(function, (X,), (X + 1,), fullgraph=True) == 1


class _Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.register_buffer("buffer", torch.ones(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        return x * self.count + self.buffer.sum()


@case("allow_unspec_int_on_nn_module", "force_nn_module_property_static_shapes", "guard_nn_modules",
      "inline_inbuilt_nn_modules")  # fmt: skip
def _modules() -> None:
    graphs: list[Any] = []

    def backend(graph_module: torch.fx.GraphModule, example_inputs: Any) -> Any:
        graphs.append(graph_module)
        return graph_module.forward

    plain, module = _Counting(), _Counting()
    compiled = fxstack.compile(module, backend=backend)
    for length in (2, 2, 2, 2, 3, 4, 5):
        plain.buffer = module.buffer = torch.ones(length)
        torch.testing.assert_close(compiled(X), plain(X))
    assert len(graphs) <= 3


@case("allow_rnn")
def _recurrent() -> None:
    layer = nn.GRU(2, 3).eval()
    assert _graphs(lambda x: layer(x)[0], (X,), fullgraph=True) == 1


@case("capture_func_transforms", "capture_autograd_function")
def _transforms() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            return gradient * 2

    assert _graphs(Twice.apply, (X.clone().requires_grad_(),), fullgraph=True) == 1
    assert _graphs(torch.func.vmap(torch.sin), (X,), fullgraph=True) == 1


@case("trace_numpy")
def _numpy() -> None:
    assert _graphs(lambda x: torch.from_numpy(numpy.sin(x.numpy())), (X,), fullgraph=True) == 1


@case("capture_sparse_compute")
def _sparse() -> None:
    assert _graphs(lambda x: torch.sparse.mm(x.to_sparse(), X.t()), (X,)) >= 0


@case("allow_ignore_mark_dynamic")
def _marked_in_vain() -> None:
    x = torch.ones(3)
    torch._dynamo.mark_dynamic(x, 0)
    assert _graphs(lambda x: x + 1 if x.shape[0] == 3 else x - 1, (x,)) == 1


@case("reorderable_logging_functions")
def _printing() -> None:
    heard: list[str] = []

    def function(x: torch.Tensor) -> torch.Tensor:
        heard.append("before")
        x = x + 1
        heard.append("after")
        return x

    assert _graphs(function, (X,)) == 1
    assert heard == ["before", "after"] * 2


@case("nested_graph_breaks")
def _nested_breaks() -> None:
    def inner(x: torch.Tensor) -> torch.Tensor:
        x = x + 1
        fxstack.graph_break()
        return x * 2

    assert _graphs(lambda x: inner(x * 3) - 1, (X,)) == 2


@case("error_on_nested_fx_trace")
def _traced_symbolically() -> None:
    compiled = fxstack.compile(_plus_one)
    traced = torch.fx.symbolic_trace(lambda x: compiled(x) * 2)
    torch.testing.assert_close(traced(X), (X + 1) * 2)


@case("force_disable_caches", "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCH_COMPILE_FORCE_DISABLE_CACHES",
      "CXX", "FXSTACK_CACHE_DIR", "FXSTACK_CHECK", "FXSTACK_DEBUG_KERNELS", "FXSTACK_ON_INTERNAL_ERROR")  # fmt: skip
def _environment() -> None:
    program = (
        "import fxstack; o = fxstack.Options.make(None); "
        "print(o.cache, o.compiler, o.cache_dir, o.check and o.debug_kernels)"
    )
    ours = {"CXX": "c", "FXSTACK_CACHE_DIR": "d", "FXSTACK_CHECK": "1", "FXSTACK_ON_INTERNAL_ERROR": "eager"}
    ours["FXSTACK_DEBUG_KERNELS"] = "1"
    names = "TORCHINDUCTOR_FORCE_DISABLE_CACHES", "TORCH_COMPILE_FORCE_DISABLE_CACHES"
    assert _output(program, {**ours, names[0]: "1"}) == "False c d True"
    assert (
        _output(program + "; print(o.on_internal_error)", {**ours, names[1]: "1"}) == "False c d True\neager"
    )


@case("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
def _disabled() -> None:
    for name in ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE"):
        with pytest.MonkeyPatch.context() as changed:
            changed.setenv(name, "1")
            assert fxstack.compile(_plus_one) is _plus_one


def _output(program: str, environment: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_all_are_tried() -> None:
    done = {
        entry.name
        for table in (SETTINGS, COMPILER_SETTINGS, ENVIRONMENT)
        for entry in table
        if entry.state == DONE
    }
    assert set(CASES) == done


@pytest.mark.parametrize("tried", dict.fromkeys(CASES.values()), ids=lambda tried: tried.__name__)
def test_each(tried: Callable[[], None], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "dynamo_capture")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        tried()
