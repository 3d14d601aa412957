"""Capture of FX graphs from running Python functions.

The facade is lazy (PEP 562), so that the bytecode layer and the frame hook import without torch.
"""

from __future__ import annotations

import importlib
from typing import Any

from dynamo_capture.__about__ import __version__

_EXPORTS: dict[str, str] = {
    "CaptureError": "dynamo_capture.graph_breaks",
    "CATALOGUE": "dynamo_capture.graph_breaks",
    "Optimizer": "dynamo_capture.optimize",
    "Report": "dynamo_capture.optimize",
    "optimize": "dynamo_capture.optimize",
    "reset": "dynamo_capture.optimize",
}
"""Public name -> module that defines it; imported when first asked for."""

__all__ = ["__version__"]


def __getattr__(name: str) -> Any:
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
