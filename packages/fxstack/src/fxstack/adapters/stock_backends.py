"""Torch's registry of backends: ``fxstack.compile(m, backend=name)`` with a name that only ``torch.compile`` knows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

GROUP = "torch_dynamo_backends"
REGISTRY = "torch._dynamo.backends.registry"
NAMES = (
    "aot_eager_decomp_partition",
    "aot_eager_decomp_partition_with_mode",
    "aot_eager_default_partitioner",
    "aot_ts",
    "cudagraphs",
    "eager_debug",
    "eager_noexcept",
    "onnxrt",
    "openxla",
    "pre_dispatch_eager",
    "tensorrt",
    "ts",
    "tvm",
)
"""What torch brings along, beside the names that are this stack's too."""


def stock_backend(name: str) -> Callable[..., Any] | None:
    """The backend of that name, or None. Torch's compiler is imported for what it brings along, for nothing else."""
    if name in NAMES or REGISTRY in sys.modules:
        from torch._dynamo.backends.registry import lookup_backend
        from torch._dynamo.exc import InvalidBackend

        try:
            found: Callable[..., Any] = lookup_backend(name)
        except InvalidBackend:
            return None
        return found
    for entry in entry_points(group=GROUP, name=name):
        loaded: Callable[..., Any] = entry.load()
        return loaded
    return None
