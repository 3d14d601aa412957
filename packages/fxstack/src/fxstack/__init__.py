"""A compiler for PyTorch programs: ``fxstack.compile(model)``."""

from fxstack import shadowed  # noqa: F401  (before all others: it looks whether they are what they should be)

# isort: split
import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)

# isort: split
from typing import TYPE_CHECKING

from fx_interface.python_runtime.gc_pause import loading_modules
from fx_interface.python_runtime.lazy_names import lazy_names
from fxstack.__about__ import __version__

with loading_modules():
    from dynamo_capture import CompiledModule as OptimizedModule  # the name that torch's counterpart has
    from dynamo_capture import (
        allow_in_graph,
        assume_constant_result,
        disable,
        disallow_in_graph,
        error_on_graph_break,
        explain_recompiles,
        graph_break,
        is_compiling,
        mark_dynamic,
        mark_static,
        patch_options,
        set_stance,
        substitute_in_graph,
    )
    from fxstack.backends import backend
    from fxstack.compile import compile, in_place_of_torch_compile, list_backends, reset
    from fxstack.options import Options, logged_topics

if TYPE_CHECKING:
    from fxstack.artifacts.compiling import aot_compile
    from fxstack.artifacts.dynamic_shapes import Dim, Number
    from fxstack.artifacts.errors import ExportError
    from fxstack.artifacts.exporting import Exported, export
    from fxstack.checking import CheckWarning
    from fxstack.observing.logs import logging
    from fxstack.observing.record import recording
    from fxstack.report import Explanation, explain
    from fxstack.torch_compile.translation import OptionWarning
    from fxstack.verification import Verification
    from fxstack.verifying import verify
    from fxstack_artifact import ArtifactError, inspect, load, make_key, sign
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "fxstack.checking": ("CheckWarning",),
            "fxstack.observing.logs": ("logging",),
            "fxstack.observing.record": ("recording",),
            "fxstack.torch_compile.translation": ("OptionWarning",),
            "fxstack.report": ("Explanation", "explain"),
            "fxstack.verification": ("Verification",),
            "fxstack.verifying": ("verify",),
            "fxstack.artifacts.compiling": ("aot_compile",),
            "fxstack.artifacts.dynamic_shapes": ("Dim", "Number"),
            "fxstack.artifacts.errors": ("ExportError",),
            "fxstack.artifacts.exporting": ("Exported", "export"),
            "fxstack_artifact": ("ArtifactError", "inspect", "load", "make_key", "sign"),
        },
    )

from fxstack import cache

if logged_topics():
    from fxstack.observing import logs

    logs.logging(*logged_topics())

__all__ = [
    "ArtifactError",
    "CheckWarning",
    "Dim",
    "Explanation",
    "ExportError",
    "Exported",
    "Number",
    "OptimizedModule",
    "OptionWarning",
    "Options",
    "Verification",
    "__version__",
    "allow_in_graph",
    "aot_compile",
    "assume_constant_result",
    "backend",
    "cache",
    "compile",
    "disable",
    "disallow_in_graph",
    "error_on_graph_break",
    "explain",
    "explain_recompiles",
    "export",
    "graph_break",
    "in_place_of_torch_compile",
    "inspect",
    "is_compiling",
    "list_backends",
    "logging",
    "load",
    "make_key",
    "mark_dynamic",
    "mark_static",
    "patch_options",
    "recording",
    "reset",
    "set_stance",
    "sign",
    "substitute_in_graph",
    "verify",
]
