"""A compiler for PyTorch programs: ``fxstack.compile(model)``."""

from fxstack import shadowed  # noqa: F401  (before all others: it looks whether they are what they should be)

# isort: split
import fx_interface  # noqa: F401  (first: modules that follow get builtins of their own)
from dynamo_capture import (
    allow_in_graph,
    assume_constant_result,
    disable,
    error_on_graph_break,
    explain_recompiles,
    graph_break,
    is_compiling,
    mark_dynamic,
    mark_static,
    patch_options,
    set_stance,
)
from fxstack.__about__ import __version__
from fxstack.backends import backend
from fxstack.checking import CheckWarning
from fxstack.compile import compile, reset
from fxstack.options import Options
from fxstack.report import Explanation, explain
from fxstack.verification import Verification
from fxstack.verify import verify

__all__ = [
    "CheckWarning",
    "Explanation",
    "Options",
    "Verification",
    "__version__",
    "allow_in_graph",
    "assume_constant_result",
    "backend",
    "compile",
    "disable",
    "error_on_graph_break",
    "explain",
    "explain_recompiles",
    "graph_break",
    "is_compiling",
    "mark_dynamic",
    "mark_static",
    "patch_options",
    "reset",
    "set_stance",
    "verify",
]
