"""The guard on torch's process and thread state: gradient mode, autocast, default dtype, determinism and so on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.utils._device import DeviceContext

from guards.kinds.base import GuardRecord, guard_kind, short
from guards.root_sources import STATE


def _autocast(device: str) -> torch.dtype | None:
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def _mode_key(mode: Any) -> Any:
    """Two device contexts of one device are one mode; any other mode is itself."""
    return (DeviceContext, str(mode.device)) if type(mode) is DeviceContext else mode


def _function_modes() -> tuple[Any, ...]:
    depth = torch._C._len_torch_function_stack()
    return tuple(_mode_key(torch._C._get_function_stack_at(i)) for i in range(depth))


FACTS: dict[str, Callable[[], Any]] = {
    "grad_mode": torch.is_grad_enabled,
    "inference_mode": torch.is_inference_mode_enabled,
    "default_dtype": torch.get_default_dtype,
    "dispatch_included": lambda: torch._C._dispatch_tls_local_include_set().raw_repr(),
    "dispatch_excluded": lambda: torch._C._dispatch_tls_local_exclude_set().raw_repr(),
    "torch_function_modes": _function_modes,
    "torch_function_state": lambda: int(torch._C._get_torch_function_state()),  # type: ignore[attr-defined]
    "autocast_cpu": lambda: _autocast("cpu"),
    "autocast_cuda": lambda: _autocast("cuda"),
    "autocast_cache": torch.is_autocast_cache_enabled,
    "deterministic": torch._C._get_deterministic_algorithms,
    "deterministic_warn_only": torch._C._get_deterministic_algorithms_warn_only,
    "deterministic_fill": torch._C._get_deterministic_fill_uninitialized_memory,
    "cudnn_enabled": torch._C._get_cudnn_enabled,
    "cudnn_benchmark": torch._C._get_cudnn_benchmark,
    "cudnn_deterministic": torch._C._get_cudnn_deterministic,
    "mkldnn_enabled": torch._C._get_mkldnn_enabled,
    "sdp_flash": torch._C._get_flash_sdp_enabled,
    "sdp_math": torch._C._get_math_sdp_enabled,
    "sdp_mem_efficient": torch._C._get_mem_efficient_sdp_enabled,
    "sdp_cudnn": torch._C._get_cudnn_sdp_enabled,
    "sdp_overrideable": torch._C._get_overrideable_sdp_enabled,
    "num_threads": torch.get_num_threads,
}
"""Every fact by its stable name, with how it is read."""


@guard_kind
@dataclass(frozen=True, slots=True)
class GlobalState(GuardRecord):
    """Named facts of torch's state (names from ``FACTS``) have these values in the calling thread."""

    kind: ClassVar[str] = "global_state"
    facts: tuple[tuple[str, Any], ...]

    def holds(self, value: Any) -> bool:
        return self._first_change() is None

    def explain(self, value: Any) -> str:
        return self._first_change() or "holds"

    def _first_change(self) -> str | None:
        for name, expected in self.facts:
            try:
                actual = FACTS[name]()
            except Exception as error:
                return f"{name} cannot be read: {error}"
            if not _same(expected, actual):
                return f"expected {name} {short(expected)}, got {short(actual)}"
        return None


def global_state(names: Iterable[str] | None = None) -> GlobalState:
    """The guard that the calling thread's state satisfies now, on all facts or only those named."""
    chosen = FACTS if names is None else names
    return GlobalState(STATE, tuple((name, FACTS[name]()) for name in chosen))


def _same(expected: Any, actual: Any) -> bool:
    if isinstance(expected, tuple):
        return (
            isinstance(actual, tuple)
            and len(expected) == len(actual)
            and all(
                a is b or (isinstance(a, tuple) and a == b) for a, b in zip(expected, actual, strict=True)
            )
        )
    return bool(expected == actual)
