"""The native extension, calibrated to the running torch."""

from __future__ import annotations

from functools import cache

import torch

try:
    from inductor_codegen import _runtime
except ImportError as error:
    raise ImportError(
        f"the native extension of inductor-codegen cannot be loaded ({error}); in a source tree, build it with "
        "`python packages/inductor-codegen/hatch_build.py`"
    ) from error
from inductor_codegen._runtime import ENTRY_ABI, CompiledGraph, described

__all__ = [
    "ENTRY_ABI",
    "TENSOR_SLOT",
    "CompiledGraph",
    "calibrate",
    "described",
    "device_numbers",
    "exports",
    "scalar_type",
]


def calibrate(*, use_slot: bool = True) -> int:
    """Learn at which byte of a Python tensor object torch keeps its tensor, checked on tensors of several kinds.

    -1 when there is no such place, or if ``use_slot`` is false: then every tensor is asked for ``_cdata``, which is
    slower and needs no knowledge of the object. Affects the whole process.
    """
    examples = (
        torch.empty(()),
        torch.empty(2, 3, dtype=torch.int64),
        torch.empty(1, 2, 3, 4, dtype=torch.bfloat16).transpose(1, 3),
        torch.nn.Parameter(torch.empty(5)),
    )
    return _runtime.calibrate(torch.Tensor, torch.nn.Parameter, examples, use_slot)


def exports(name: str) -> bool:
    """Whether the loaded torch has a C function ``name`` that generated code can call."""
    return _runtime.exports(name)


@cache
def scalar_type(dtype: torch.dtype) -> int:
    """The number of ``dtype`` in torch's C interface. KeyError for one that it has no number for."""
    return _runtime.scalar_type(str(dtype).removeprefix("torch."))


def device_numbers(device: torch.device) -> tuple[int, int]:
    """The type and index of ``device`` in torch's C interface; a CPU has index -1. KeyError for an unknown type."""
    return _DEVICE_TYPES[device.type], -1 if device.type == "cpu" else device.index or 0


_DEVICE_TYPES = {"cpu": 0, "cuda": 1}

TENSOR_SLOT = calibrate()
"""Where tensor objects keep their tensor, in bytes, or -1; read once at import."""
