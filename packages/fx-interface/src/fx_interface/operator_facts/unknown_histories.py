"""Operators of which autograd knows nothing: it follows what their kernels call, if they call anything that it knows.

library.impl("sine", lambda x: x.sin(), "CPU")    # eager gives a gradient, and warns
library.impl("sine", a_kernel_in_c, "CPU")        # eager gives none
"""

from __future__ import annotations

from typing import Any

import torch
from torch._ops import OpOverload

from fx_interface.operator_facts.data_errors import is_opaque

_KEYS = ("Autograd", "AutogradCPU", "AutogradCUDA", "CompositeImplicitAutograd")


def has_unknown_history(op: OpOverload, args: Any, results: Any) -> bool:
    """Whether only the kernel of ``op`` can tell what gradients its call has: autograd is at work, and neither a
    formula nor a fallthrough is registered."""
    if not is_opaque(op) or not torch.is_grad_enabled() or not _any(args, _requires_grad):
        return False
    name = op.name()  # type: ignore[no-untyped-call]
    if any(torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in _KEYS):
        return False
    return op._schema.is_mutable or _any(results, _is_differentiable)


def _requires_grad(tensor: torch.Tensor) -> bool:
    return tensor.requires_grad


def _is_differentiable(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()


def _any(value: Any, holds: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(holds(value))
    if isinstance(value, dict):
        return any(_any(item, holds) for item in value.values())
    return isinstance(value, list | tuple) and any(_any(item, holds) for item in value)
