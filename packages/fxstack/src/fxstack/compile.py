"""``fxstack.compile``: where capture and a backend are put together."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from torch import nn

import dynamo_capture
from fx_interface import Backend
from fxstack.backends import resolve
from fxstack.module import compile_module, original_of
from fxstack.options import Options
from primtorch_decomps import LIBRARY

F = TypeVar("F", bound=Callable[..., Any])


@overload
def compile(
    function: F,
    /,
    *,
    backend: str | Backend | Callable[..., Any] = ...,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    mode: str = ...,
    options: Options | Mapping[str, Any] | None = ...,
) -> F: ...


@overload
def compile(
    function: None = None,
    /,
    *,
    backend: str | Backend | Callable[..., Any] = ...,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    mode: str = ...,
    options: Options | Mapping[str, Any] | None = ...,
) -> Callable[[F], F]: ...


def compile(
    function: Callable[..., Any] | None = None,
    /,
    *,
    backend: str | Backend | Callable[..., Any] = "inductor",
    fullgraph: bool = False,
    dynamic: bool | None = None,
    mode: str = "default",
    options: Options | Mapping[str, Any] | None = None,
) -> Any:
    """``function`` (a function, method or ``nn.Module``), captured and compiled when it is called.

    ``backend``: a name (``inductor``, ``aot_eager``, ``eager``, or any installed plug-in's) or a callable
    ``(graph_module, example_inputs) -> callable``. ``fullgraph``: a graph break is an error. ``dynamic``: True makes
    sizes symbolic at once, False never, None when a size changes. ``mode``: ``strict`` gives eager's results to the
    last bit on a CPU (``fxstack.options.MODES``). Without ``function``, returns a decorator.
    A module's result is the module for all purposes but speed: same parameters, ``state_dict`` keys, hooks and class.

    Raises at once for an unknown backend, mode or option; later, whatever the function itself raises.
    """
    compiler = resolve(backend, Options.make(options, mode))
    optimize = functools.partial(_optimize, compiler=compiler, fullgraph=fullgraph, dynamic=dynamic)
    if function is None:
        return lambda decorated: _apply(decorated, optimize)
    return _apply(function, optimize)


def _optimize(
    function: Callable[..., Any], *, compiler: Backend, fullgraph: bool, dynamic: bool | None
) -> Callable[..., Any]:
    capture = dynamo_capture.optimize(compiler, fullgraph=fullgraph, dynamic=dynamic, operators=LIBRARY)
    optimized: Callable[..., Any] = capture(function)
    return optimized


def _apply(function: Any, optimize: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Any:
    return (
        compile_module(function, optimize)
        if isinstance(function, nn.Module)
        else optimize(original(function))
    )


def reset() -> None:
    """Forget all that was compiled in this process; what is kept on disk stays."""
    dynamo_capture.reset()


def original(function: Any) -> Any:
    """What was compiled, given what ``compile`` returned; anything else unchanged."""
    if isinstance(function, nn.Module):
        return original_of(function)
    return getattr(function, "__fxstack_original__", function)
