"""What torch's own classes of tensors have under each name, as at import.

A program may put a method or an attribute of its own there (``torch.Tensor.numel = counted``). Then it is that of the
program which is traced, not what the graph builder knows of torch's.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES


def _by_method_only() -> dict[Any, str]:
    """Python functions that torch has as methods of tensors and nowhere under their own names: ``__pow__`` is one."""
    found = {}
    for name, member in inspect.getmembers_static(torch.Tensor, inspect.isfunction):
        places = (torch.Tensor, sys.modules[member.__module__])
        if all(getattr(place, member.__name__, None) is not member for place in places):
            found[member] = name
    return found


DISABLED = torch._C._disabled_torch_function_impl
"""The ``__torch_function__`` of classes that leave operations on their instances to torch."""
BY_METHOD_ONLY = _by_method_only()
"""Such a function, and the name of the method by which a graph calls it."""
_MEMBERS: dict[type, dict[str, Any]] = {
    cls: {name: fx_guards.class_lookup(cls, name) for name in dir(cls)} for cls in PLAIN_CLASSES
}


def is_torchs(cls: type, name: str, found: Any) -> bool:
    """Whether ``found``, which one of torch's classes has under a name, is what it had at import."""
    return found is _MEMBERS[cls].get(name, fx_guards.ABSENT)


@once_per_class
def overrides(cls: type) -> bool:
    """Whether a class of tensors takes over the operations on its instances."""
    return cls is not torch.Tensor and cls.__torch_function__ is not DISABLED  # type: ignore[attr-defined]
