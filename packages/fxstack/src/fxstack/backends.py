"""The backends of this distribution, found through the same entry points as anybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from torch.fx import GraphModule
from torch.fx._lazy_graph_module import _LazyGraphModule

import aot_autograd
from fx_interface import INTERFACE_VERSION, Backend, CompiledGraph
from fx_interface.errors import UnknownBackendError
from fx_interface.plugins import load_backend
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.torch_internals.graph_source import release_source
from fxstack.foreign_backends import Surroundings, WithKeywords, by_sizes, no_surroundings
from fxstack.internal_errors import default_policy, refused
from fxstack.options import Options
from fxstack.pipeline import compile_captured
from primtorch_decomps import LIBRARY


def _run_as_is(graph_module: GraphModule) -> CompiledGraph:
    forward: CompiledGraph = graph_module.forward
    return forward


def _run_traced(graph_module: GraphModule) -> CompiledGraph:
    if isinstance(graph_module, _LazyGraphModule):
        graph_module.real_recompile()  # else the first call goes through nn.Module.__call__, which is the user's
    forward: CompiledGraph = graph_module.forward
    release_source(graph_module)
    return forward


@dataclass(frozen=True, slots=True)
class Eager:
    """Runs the captured graph with torch's own kernels."""

    interface_version: tuple[int, int] = INTERFACE_VERSION

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        """The captured graph itself."""
        return _run_as_is(graph_module)


@dataclass(frozen=True, slots=True)
class AotEager:
    """Runs the forward and backward graphs with torch's own kernels."""

    interface_version: tuple[int, int] = INTERFACE_VERSION

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        """Trace ahead of time and run the functional graphs as they are."""
        with refused(default_policy(), graph_module):
            return aot_autograd.compile_joint(
                graph_module,
                example_inputs,
                operators=LIBRARY,
                forward_compiler=_run_traced,
                backward_compiler=_run_traced,
                inference_compiler=_run_traced,
            )


@dataclass(frozen=True, slots=True)
class Inductor:
    """The whole stack: ahead-of-time autograd, decompositions, generated kernels, and the cache. Without options it has
    those that the environment asks for when it is called."""

    options: Options | None = None
    interface_version: tuple[int, int] = INTERFACE_VERSION

    @property
    def is_strict(self) -> bool:
        """Whether results have eager's last bits."""
        return (self.options or Options.make(None)).mode == "strict"

    def configure(self, options: Options) -> Inductor:
        """This backend with the given options."""
        return Inductor(options)

    def __call__(self, graph_module: GraphModule, example_inputs: Sequence[Any]) -> CompiledGraph:
        """Compile, or load what an earlier process compiled."""
        options = self.options or Options.make(None)
        with refused(options.on_internal_error or default_policy(), graph_module):
            return compile_captured(graph_module, example_inputs, options)


eager = Eager()
aot_eager = AotEager()
inductor = Inductor()
_OWN: Mapping[str, Backend] = MappingProxyType({"eager": eager, "aot_eager": aot_eager, "inductor": inductor})


def named(name: str) -> Backend:
    """The installed plug-in of that name; ours also where nothing says what is installed (``PYTHONPATH``, a frozen
    program), and never torch's in their place. UnknownBackendError FXI202 lists the known names."""
    try:
        return load_backend(name)
    except UnknownBackendError:
        if name in _OWN:
            return _OWN[name]
        raise


def backend(name: str, options: Options | Mapping[str, Any] | None = None) -> Backend:
    """The installed backend of that name, with options: what ``compile(backend=name)`` uses."""
    return resolve(name, Options.make(options))


def resolve(
    backend: str | Backend | Callable[..., Any],
    options: Options,
    passed: Mapping[str, Any] | None = None,
    surroundings: Surroundings = no_surroundings,
) -> Backend:
    """The backend that the user means: a callable is itself, a name is looked up among the installed plug-ins.
    ``passed``: keyword arguments for one that is no plug-in; ``surroundings``: what it is called within.

    Raises UnknownBackendError (FXI202), which lists the known names, and IncompatibleInterfaceError (FXI201).
    """
    found = named(backend) if isinstance(backend, str) else backend
    configure = getattr(found, "configure", None)
    if passed and not hasattr(found, "interface_version"):
        found = WithKeywords(found, tuple(passed.items()))
    made = by_sizes(configure(options) if configure is not None else found, surroundings)
    if not options.check:
        return made
    from fxstack.checking.backend import checked  # with the referee, which nobody else needs

    return checked(made, backend)
