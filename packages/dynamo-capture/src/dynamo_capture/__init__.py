"""Capture of FX graphs from running Python functions.

The facade is lazy (PEP 562), so that the bytecode layer and the frame hook import without torch.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamo_capture.__about__ import __version__

_EXPORTS: dict[str, str] = {
    "BackendError": "dynamo_capture.errors",
    "BreakReport": "dynamo_capture.graph_breaks",
    "CaptureError": "dynamo_capture.errors",
    "ExportError": "dynamo_capture.errors",
    "Exported": "dynamo_capture.exporting",
    "Recompilation": "dynamo_capture.report",
    "RecompileReport": "dynamo_capture.report",
    "Optimizer": "dynamo_capture.optimizer",
    "Replacement": "dynamo_capture.report",
    "Report": "dynamo_capture.report",
    "allow_in_graph": "dynamo_capture.controls",
    "assume_constant_result": "dynamo_capture.controls",
    "mark_static": "dynamo_capture.controls",
    "set_stance": "dynamo_capture.controls",
    "disable": "dynamo_capture.controls",
    "explain": "dynamo_capture.optimizer",
    "explain_recompiles": "dynamo_capture.optimizer",
    "export": "dynamo_capture.exporting",
    "graph_break": "dynamo_capture.controls",
    "is_compiling": "dynamo_capture.controls",
    "mark_dynamic": "dynamo_capture.controls",
    "error_on_graph_break": "dynamo_capture.part_options",
    "optimize": "dynamo_capture.optimizer",
    "patch_options": "dynamo_capture.part_options",
    "reset": "dynamo_capture.optimizer",
    "run_graph": "dynamo_capture.optimizer",
}
"""Public name -> module that defines it; imported when first asked for."""

__all__ = [
    "__version__",
    "BackendError",
    "BreakReport",
    "CaptureError",
    "Optimizer",
    "ExportError",
    "Exported",
    "Recompilation",
    "RecompileReport",
    "Replacement",
    "Report",
    "allow_in_graph",
    "assume_constant_result",
    "mark_static",
    "set_stance",
    "disable",
    "error_on_graph_break",
    "explain",
    "explain_recompiles",
    "export",
    "graph_break",
    "is_compiling",
    "mark_dynamic",
    "optimize",
    "patch_options",
    "reset",
    "run_graph",
]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    importlib.import_module("fx_interface")  # first: modules that follow get builtins of their own
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
