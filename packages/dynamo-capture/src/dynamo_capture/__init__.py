"""Capture of FX graphs from running Python functions.

The facade is lazy (PEP 562), so that the bytecode layer and the frame hook import without torch.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamo_capture.__about__ import __version__

_EXPORTS: dict[str, str] = {
    "BackendError": "dynamo_capture.foundation.errors",
    "BreakReport": "dynamo_capture.foundation.graph_breaks",
    "CaptureError": "dynamo_capture.foundation.errors",
    "ExportError": "dynamo_capture.foundation.errors",
    "Exported": "dynamo_capture.driver.exporting",
    "Recompilation": "dynamo_capture.session.report",
    "RecompileReport": "dynamo_capture.session.report",
    "Optimizer": "dynamo_capture.driver.optimizer",
    "Replacement": "dynamo_capture.session.report",
    "Report": "dynamo_capture.session.report",
    "allow_in_graph": "dynamo_capture.session.controls",
    "assume_constant_result": "dynamo_capture.session.controls",
    "mark_static": "dynamo_capture.session.controls",
    "set_stance": "dynamo_capture.session.controls",
    "declare_compiler": "dynamo_capture.session.controls",
    "disable": "dynamo_capture.session.controls",
    "disallow_in_graph": "dynamo_capture.session.controls",
    "explain": "dynamo_capture.driver.optimizer",
    "explain_recompiles": "dynamo_capture.driver.optimizer",
    "export": "dynamo_capture.driver.exporting",
    "graph_break": "dynamo_capture.session.controls",
    "is_compiling": "dynamo_capture.session.controls",
    "mark_dynamic": "dynamo_capture.session.controls",
    "error_on_graph_break": "dynamo_capture.foundation.part_options",
    "optimize": "dynamo_capture.driver.optimizer",
    "original_of": "dynamo_capture.driver.compiled_module",
    "CompiledModule": "dynamo_capture.driver.compiled_module",
    "substitute_in_graph": "dynamo_capture.polyfills.by_users",
    "patch_options": "dynamo_capture.foundation.part_options",
    "reset": "dynamo_capture.driver.optimizer",
    "run_graph": "dynamo_capture.driver.optimizer",
}
"""Public name -> module that defines it; imported when first asked for."""

__all__ = [
    "__version__",
    "BackendError",
    "BreakReport",
    "CaptureError",
    "CompiledModule",
    "Optimizer",
    "ExportError",
    "Exported",
    "Recompilation",
    "RecompileReport",
    "Replacement",
    "Report",
    "allow_in_graph",
    "disallow_in_graph",
    "assume_constant_result",
    "mark_static",
    "set_stance",
    "declare_compiler",
    "disable",
    "error_on_graph_break",
    "explain",
    "explain_recompiles",
    "export",
    "graph_break",
    "is_compiling",
    "mark_dynamic",
    "optimize",
    "original_of",
    "patch_options",
    "reset",
    "run_graph",
    "substitute_in_graph",
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
