"""Memory that an operator leaves as it finds it, filled: two runs with other contents tell what depends on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch._ops import OpOverload

from fx_interface.torch_internals.dispatch_mode import DispatchMode

_EMPTY = frozenset(
    getattr(torch.ops.aten, name)
    for name in (
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "resize_",
        "resize",
        "resize_as_",
    )
)


class Filling(DispatchMode):
    """While it is active, such tensors hold ``value``; ``met``: whether there were any."""

    def __init__(self, value: int) -> None:
        super().__init__()
        self._value = value
        self.met = False

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run ``func``; fill what it gives if nobody has."""
        if func.overloadpacket not in _EMPTY:
            return func(*args, **kwargs)
        kept = args[0].numel() if func.overloadpacket is torch.ops.aten.resize_ else 0
        result = func(*args, **kwargs)
        if isinstance(result, Tensor) and result.layout is torch.strided and result.device.type != "meta":
            start = result.storage_offset() + kept if kept else 0
            count = result.untyped_storage().nbytes() // result.dtype.itemsize - start
            if count > 0:
                self.met = True
                result.detach().as_strided((count,), (1,), start).fill_(self._value)
        return result
