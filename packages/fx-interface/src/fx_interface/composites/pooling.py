"""The largest of each window along one dimension of symbolic size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.nn import functional

from fx_interface.composites.products import is_symbolic


def max_pool1d(*args: Any, **kwargs: Any) -> Any:
    """``torch.max_pool1d``: pooling of images of one row; without gradients a CPU has a kernel with a packed result."""
    return _pooled(torch.max_pool1d, args, kwargs)


def functional_max_pool1d(*args: Any, **kwargs: Any) -> Any:
    """``functional.max_pool1d``; with the places of what was found, torch's own."""
    if len(args) > 6 or kwargs.get("return_indices"):
        return functional.max_pool1d(*args, **kwargs)
    return _pooled(torch.max_pool1d, args, {k: v for k, v in kwargs.items() if k != "return_indices"})


def _pooled(function: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    names = ("input", "kernel_size", "stride", "padding", "dilation", "ceil_mode")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, kernel = given.get("input"), given.get("kernel_size")
    if not isinstance(x, torch.Tensor) or not given.keys() <= set(names) or x.dim() not in (2, 3):
        return function(*args, **kwargs)
    is_packed = x.device.type == "cpu" and not (x.requires_grad and torch.is_grad_enabled())
    if not is_symbolic([x]) or (is_packed and not x.is_floating_point()):
        found = function(*args, **kwargs)
        if is_packed:
            _ask_packed_kernel(x.dtype)
        return found
    steps = given.get("stride")
    steps = kernel if steps is None or steps == [] or steps == () else steps
    rows = x.contiguous() if is_packed else x
    try:
        found = functional.max_pool2d(
            rows.unsqueeze(-2),
            (1, _one(kernel)),
            (1, _one(steps)),
            (0, _one(given.get("padding", 0))),
            (1, _one(given.get("dilation", 1))),
            given.get("ceil_mode", False),
        )
    except RuntimeError:
        return function(*args, **kwargs)  # which refuses it in words of its own
    return found.squeeze(-2)


def _ask_packed_kernel(dtype: torch.dtype) -> None:
    """Raise what the kernel with a packed result raises for a dtype. A tracer would go past it to the one that keeps
    the places of what was found, which takes more dtypes."""
    with torch._C.DisableTorchFunction(), torch._C._DisableTorchDispatch():
        torch.max_pool1d(torch.zeros((1, 1), dtype=dtype, device="cpu"), 1)


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, (tuple, list)) else value
