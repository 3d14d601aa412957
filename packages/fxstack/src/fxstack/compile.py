"""``fxstack.compile``: where capture and a backend are put together."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, overload

import torch
from torch import nn
from torch.fx import GraphModule

import dynamo_capture
from dynamo_capture.foundation.break_kinds import CONTROL_FLOW, OTHER_INTERPRETER
from fx_interface import Backend, plugins
from fx_interface.errors import UnknownBackendError
from fxstack.backends import Inductor, inductor, named, resolve
from fxstack.options import ARGUMENTS, MODES, OptionError, Options, check_choices, is_own_option
from primtorch_decomps import LIBRARY

F = TypeVar("F", bound=Callable[..., Any])

_SWITCHES = ("TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE")
"""Torch's variables of the environment by which all compiling is off."""
_REGISTRY = "torch._dynamo.backends.registry"
_OURS = "inductor"
"""The backend that torch has where nobody has set another one: a name, which is our own backend's here."""


@overload
def compile(
    model: F,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Backend | Callable[..., Any] | None = ...,
    mode: str | None = ...,
    options: Options | Mapping[str, Any] | None = ...,
    name: str | None = ...,
    disable: bool = ...,
    recompile_limit: int | None = ...,
    isolate_recompiles: bool = ...,
    shapes_spec: Any = ...,
) -> F: ...


@overload
def compile(
    model: None = None,
    *,
    fullgraph: bool = ...,
    dynamic: bool | None = ...,
    backend: str | Backend | Callable[..., Any] | None = ...,
    mode: str | None = ...,
    options: Options | Mapping[str, Any] | None = ...,
    name: str | None = ...,
    disable: bool = ...,
    recompile_limit: int | None = ...,
    isolate_recompiles: bool = ...,
    shapes_spec: Any = ...,
) -> Callable[[F], F]: ...


def compile(
    model: Callable[..., Any] | None = None,
    *,
    fullgraph: bool = False,
    dynamic: bool | None = None,
    backend: str | Backend | Callable[..., Any] | None = None,
    mode: str | None = None,
    options: Options | Mapping[str, Any] | None = None,
    name: str | None = None,
    disable: bool = False,
    recompile_limit: int | None = None,
    isolate_recompiles: bool = False,
    shapes_spec: Any = None,
) -> Any:
    """``model`` (a function, method or ``nn.Module``), captured and compiled when it is called.

    The arguments are those of ``torch.compile``; docs/torch-compile.md says of each, and of each mode and option, what
    it is here. ``backend``: a name (``inductor``, ``aot_eager``, ``eager``, any installed plug-in's or torch's) or a
    callable ``(graph_module, example_inputs) -> callable``. ``fullgraph``: a graph break is an error. ``dynamic``: True
    makes sizes symbolic at once, False never, None when a size changes. ``mode``: ``strict`` gives eager's results to
    the last bit on a CPU (``fxstack.options.MODES``). Without ``model``, returns a decorator.
    A module's result is the module for all purposes but speed: same parameters, ``state_dict`` keys, hooks and class.

    Raises at once for an unknown backend, mode or option; later, whatever the function itself raises.
    """
    check_choices(
        {
            "fullgraph": fullgraph,
            "dynamic": dynamic,
            "disable": disable,
            "isolate_recompiles": isolate_recompiles,
        },
        ARGUMENTS,
    )
    if disable or any(os.environ.get(switch) == "1" for switch in _SWITCHES):
        return _unchanged if model is None else model
    if shapes_spec is not None:
        from fxstack.torch_compile import translation  # tables that few programs need

        translation.say(translation.argument_notes({"shapes_spec": shapes_spec}))
    compiler = _backend(backend, mode, options)
    capture = functools.partial(
        dynamo_capture.optimize,
        compiler,
        fullgraph=fullgraph,
        dynamic=dynamic,
        operators=LIBRARY,
        recompile_limit=recompile_limit,
        name=name,
        guard_filter=_guard_filter(options),
        in_python=_in_python(compiler),
        weighs_arrays=_is_inductor(compiler),
    )
    if model is None:
        return lambda decorated: _apply(decorated, capture)
    made = _apply(model, capture)
    return _in_eager(model, made) if _is_eager_control_flow(model) else made


dynamo_capture.declare_compiler(compile)


def _unchanged(model: F) -> F:
    return model


def _is_eager_control_flow(model: Any) -> bool:
    """Whether this is how torch itself runs ``torch.cond`` and its like outside of a compiled function: it compiles the
    call, as one graph, and calls it."""
    return str(getattr(model, "__module__", "")).startswith("torch._higher_order_ops.")


def _in_eager(model: Callable[..., Any], compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A call of torch's control flow. What a mode is to see, or whose branches have no common form, runs as written;
    what a branch may not do (change something outside) is an error, as in eager."""

    @functools.wraps(model)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except dynamo_capture.CaptureError as error:
            if error.code == OTHER_INTERPRETER:
                return model(*args, **kwargs)
            if error.code != CONTROL_FLOW or model.__name__ != "_cond_op_wrapper":
                raise
        condition, on_true, on_false, operands = args
        return (on_true if condition else on_false)(*operands)

    return run


def _guard_filter(options: Options | Mapping[str, Any] | None) -> Any:
    """The function that chooses among guards, which is for capture and no backend."""
    return options.guard_filter_fn if isinstance(options, Options) else (options or {}).get("guard_filter_fn")


def _backend(
    backend: str | Backend | Callable[..., Any] | None,
    mode: str | None,
    options: Options | Mapping[str, Any] | None,
) -> Backend:
    """The backend that is meant, with its options: where none is named our own, for which nobody's entry points need to
    be read. One that is no plug-in is given the mode and the options that are
    not this stack's as they are, as torch does."""
    if backend is None:
        chosen = getattr(sys.modules.get(_REGISTRY), "_default_backend", None)
        backend = inductor if chosen is None or chosen == _OURS else chosen
    found = _named(backend) if isinstance(backend, str) else backend
    if not callable(found):
        raise OptionError(
            "FXS103",
            f"backend is {backend!r}",
            action="use a name (fxstack.list_backends()), or a callable (graph_module, example_inputs) -> callable",
        )
    if hasattr(found, "interface_version"):
        return resolve(backend, Options.make(options, mode))
    passed: dict[str, Any] = {}
    if mode is not None and mode not in MODES:
        passed["mode"], mode = mode, None
    if isinstance(options, Mapping):
        theirs = {key: value for key, value in options.items() if not is_own_option(key)}
        options = {key: value for key, value in options.items() if key not in theirs}
        passed |= {"options": theirs} if theirs else {}
    return resolve(found, Options.make(options, mode), passed, _as_torch_calls)


def _packed_layer(kind: str, *args: Any, **kwargs: Any) -> Any:
    from aot_autograd.operators.packed_layers import called  # few programs have such layers

    return called(kind, *args, **kwargs)


_PACKED_LAYERS = {
    getattr(torch, kind): functools.partial(_packed_layer, kind)
    for kind in ("gru", "lstm", "rnn_tanh", "rnn_relu")
}


def _in_python(compiler: object) -> Mapping[Callable[..., Any], Callable[..., Any]]:
    """What Python calls in place of functions of torch behind a graph break: where gradients need not have eager's last
    bits, as in generated code."""
    ours = getattr(compiler, "backend", compiler)
    return _PACKED_LAYERS if isinstance(ours, Inductor) and not ours.is_strict else {}


def _is_inductor(compiler: object) -> bool:
    """Whether graphs become code of our own, which is to be faster than what it stands for."""
    return isinstance(getattr(compiler, "backend", compiler), Inductor)


def _as_torch_calls(
    graph_module: GraphModule, inputs: Sequence[Any]
) -> contextlib.AbstractContextManager[None]:
    from fxstack.adapters.tracing_context import as_torch_calls  # nothing that our own backends need

    return as_torch_calls(graph_module, inputs)


def _named(name: str) -> Callable[..., Any]:
    """An installed plug-in, else one of torch's backends. UnknownBackendError FXI202 lists the known names."""
    try:
        return named(name)
    except UnknownBackendError:
        from fxstack.adapters.stock_backends import stock_backend  # for names that no plug-in has

        found = stock_backend(name)
        if found is None:
            raise
        return found


def _apply(function: Any, capture: Callable[[], dynamo_capture.Optimizer]) -> Any:
    return capture()(original(function))


def in_place_of_torch_compile() -> contextlib.AbstractContextManager[None]:
    """While the block runs, ``torch.compile`` is ``fxstack.compile``, and so is what ``Module.compile`` calls: for a
    program that calls it where nobody else can. What was compiled in the block stays so. In all threads."""
    from fxstack.adapters.in_place import in_place  # touches torch, for those who ask for it

    return in_place(compile)


def list_backends() -> list[str]:
    """The names that ``compile(backend=...)`` takes without loading torch's compiler: those of installed plug-ins."""
    return sorted({info.name for info in plugins.list_backends()})


def reset() -> None:
    """Forget all that was compiled in this process; what is kept on disk stays."""
    dynamo_capture.reset()


def original(function: Any) -> Any:
    """What was compiled, given what ``compile`` returned; anything else unchanged."""
    if isinstance(function, nn.Module):
        return dynamo_capture.original_of(function)
    return getattr(function, "__fxstack_original__", function)


def original_callable(function: Any) -> Callable[..., Any]:
    """The same of what is to be called. TypeError for what cannot be."""
    plain = original(function)
    if not callable(plain):
        raise TypeError(f"{function!r} is no function, module or other callable: there is nothing to run")
    return plain  # type: ignore[no-any-return]
