"""Which functions of torch are one operation of the graph."""

from __future__ import annotations

import types
from typing import Any

import torch

from dynamo_capture.foundation.library_functions import module_of_function

_LEAF_MODULES = frozenset(
    {"torch.nn.functional", "torch.functional", "torch._tensor", "torch._linalg_utils", "torch._lowrank"}
)
_C_MODULES = (
    "torch._C._nn",
    "torch._C._fft",
    "torch._C._linalg",
    "torch._C._special",
    "torch._C._sparse",
    "torch._C._nested",
)


def is_leaf_function(function: types.FunctionType) -> bool:
    """Whether a Python function of torch is one operation of the graph."""
    name = function.__name__
    return module_of_function(function) in _LEAF_MODULES and not name.startswith(
        ("_get_", "_convert", "__torch_function__")
    )


def is_tensor_method(function: types.FunctionType) -> bool:
    """Whether a Python function is a method of ``torch.Tensor``."""
    return function.__module__ == "torch._tensor" and vars(torch.Tensor).get(function.__name__) is function


def is_torch_builtin(function: Any) -> bool:
    """Whether a C function (or an operator of ``torch.ops``) is one operation of the graph."""
    if isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return True
    if not isinstance(function, types.BuiltinFunctionType):
        return False
    module = function.__module__ or ""
    return module.startswith(_C_MODULES) or function.__qualname__.startswith("_VariableFunctionsClass.")
