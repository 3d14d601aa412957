"""Which code is captured on its own when a frame of it starts."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import CodeType
from typing import Any

import torch

from dynamo_capture import numpy_types
from fx_interface.backend import STACK_PACKAGES

_UNCAPTURED: tuple[str, ...] = ()


def is_worth_capturing(code: CodeType, namespace: Mapping[str, Any]) -> bool:
    """Whether frames of this code are captured on their own: not the machinery of Python, torch or the stack itself."""
    name = code.co_filename
    if name.startswith("<frozen") or str(namespace.get("__name__")).partition(".")[0] in STACK_PACKAGES:
        return False
    return not name.startswith(_UNCAPTURED) or _is_torch_module_code(name)


def is_of_stock_compiler(code: CodeType) -> bool:
    """Whether a frame is the entry of what stock's compiler compiles or leaves alone (``torch.compiler.disable``): all
    that it calls is none of ours."""
    return code.co_filename.endswith("/torch/_dynamo/eval_frame.py")


def is_import(code: CodeType) -> bool:
    """Whether a frame loads a module: what runs while it is loaded runs once."""
    return code.co_name == "_find_and_load" and code.co_filename == "<frozen importlib._bootstrap>"


def _is_torch_module_code(name: str) -> bool:
    return "/torch/nn/modules/" in name


def _uncaptured_paths() -> tuple[str, ...]:
    stdlib = os.path.dirname(os.path.abspath(os.__file__))
    packages = [torch.__file__, *([numpy_types.FILE] if numpy_types.FILE else [])]
    return (
        *(os.path.dirname(os.path.abspath(file)) + os.sep for file in packages),
        *(os.path.join(stdlib, entry) for entry in os.listdir(stdlib) if entry != "site-packages"),
    )


_UNCAPTURED = _uncaptured_paths()
