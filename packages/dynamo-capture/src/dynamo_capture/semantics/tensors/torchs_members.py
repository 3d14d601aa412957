"""What torch's own classes of tensors have under each name, as at import.

A program may put a method or an attribute of its own there (``torch.Tensor.numel = counted``). Then it is that of the
program which is traced, not what the graph builder knows of torch's.
"""

from __future__ import annotations

import sys
from types import FunctionType
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES


def _members(cls: type) -> dict[str, Any]:
    """What the class has under each name, itself or from a base; descriptors are not asked."""
    return {name: member for base in reversed(cls.__mro__) for name, member in vars(base).items()}


def _by_method_only() -> dict[Any, str]:
    """Python functions that torch has as methods of tensors and nowhere under their own names: ``__pow__`` is one."""
    found = {}
    for name, member in sorted(_MEMBERS[torch.Tensor].items()):
        if isinstance(member, FunctionType):
            places = (torch.Tensor, sys.modules.get(member.__module__))
            if all(getattr(place, member.__name__, None) is not member for place in places):
                found[member] = name
    return found


_MEMBERS: dict[type, dict[str, Any]] = {cls: _members(cls) for cls in PLAIN_CLASSES}


DISABLED = torch._C._disabled_torch_function_impl
"""The ``__torch_function__`` of classes that leave operations on their instances to torch."""
BY_METHOD_ONLY = _by_method_only()
"""Such a function, and the name of the method by which a graph calls it."""


def is_torchs(cls: type, name: str, found: Any) -> bool:
    """Whether ``found``, which one of torch's classes has under a name, is what it had at import."""
    return found is _MEMBERS[cls].get(name, fx_guards.ABSENT)


@once_per_class
def overrides(cls: type) -> bool:
    """Whether a class of tensors takes over the operations on its instances."""
    return cls is not torch.Tensor and fx_guards.class_lookup(cls, "__torch_function__") is not DISABLED
