"""The device library's functions for Triton's interpreter, which has none, by numpy and torch."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

_NUMPY: dict[str, Callable[..., Any]] = {
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
    "nearbyint": np.rint,
    "pow": np.power,
    "fmod": np.fmod,
    "atan2": np.arctan2,
    "sub_rn": np.subtract,
}
_TORCH: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "erf": torch.erf,
    "erfc": torch.erfc,
    "lgamma": torch.lgamma,
}


def _on_blocks(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*blocks: Any) -> Any:
        first = blocks[0]
        with np.errstate(all="ignore"):
            result = function(*np.broadcast_arrays(*(block.handle.data for block in blocks)))
        handle = TensorHandle(np.asarray(result, dtype=first.handle.data.dtype), first.handle.dtype)
        return tl.tensor(
            handle, tl.block_type(first.dtype, list(result.shape)) if result.shape else first.dtype
        )

    return call


def _by_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Any]:
    return lambda data: function(torch.from_numpy(np.ascontiguousarray(data))).numpy()


DEVICE_LIBRARY = SimpleNamespace(
    **{name: _on_blocks(function) for name, function in _NUMPY.items()},
    **{name: _on_blocks(_by_torch(function)) for name, function in _TORCH.items()},
)
"""Stands in for ``triton.language.extra.libdevice``."""
