"""Which objects' methods, and which bound functions, are called in a way of their own."""

from __future__ import annotations

import inspect
import re
import types
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.semantics.modes.contexts import ContextValue

FOLDED = (
    int, float, str, bytes, complex, tuple, frozenset, range, slice, torch.dtype, torch.device, torch.Size, torch.finfo,
    torch.iinfo, types.MappingProxyType, re.Pattern, re.Match, types.CodeType, inspect.Signature, inspect.Parameter,
    *numpy_types.CONSTANTS,
)  # fmt: skip


BUILTIN_METHODS = (types.BuiltinMethodType, types.MethodWrapperType)


def is_constant_object(value: Any) -> bool:
    """Whether a method of the object may be called on it as on any constant: modules' functions are no methods."""
    return value is not None and is_known(value) and not isinstance(value, (types.ModuleType, type))


def is_tensor_getter(function: Any) -> bool:
    """Whether a function is how torch names the reading of a tensor's attribute to ``__torch_function__``."""
    owner = function.__self__
    return (
        function.__name__ == "__get__"
        and getattr(torch.Tensor, getattr(owner, "__name__", ""), None) is owner
    )


def is_method_of(manager: ContextValue, function: Any) -> bool:
    """Whether ``function`` is what the class of a known context manager enters or leaves its block with."""
    name = function.__name__
    return name in ("__enter__", "__exit__") and getattr(manager.python_type(), name, None) is function
