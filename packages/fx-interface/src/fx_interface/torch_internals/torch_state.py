"""Torch's process and thread state that decides what a program does: one list, with who reads each entry.

A trace is made in one state. What it relied on is held in two ways: facts that are ``guarded`` are part of the guards
of every captured frame, and all facts are part of the key of a stored program. Where ``setter`` is given, captured
graphs may call it, and what runs them puts the old value back if they raise (``fx_interface.torch_internals.modes``).
Other settings are read by torch's kernels when they run, compiled or not; a program that asks for one gets a guard of
its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import torch

from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fact:
    """A part of torch's state: how it is read and, for some, set. ``name`` is stable."""

    name: str
    read: Callable[[], Any]
    guarded: bool = True
    setter: Callable[[Any], Any] | None = None


def _autocast(device: str) -> torch.dtype | None:
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def _mode_key(mode: Any) -> Any:
    """Two device contexts of one device are one mode; any other mode is itself."""
    kind = type(mode)
    is_device = kind.__name__ == "DeviceContext" and kind.__module__ == "torch.utils._device"
    return (kind, str(mode.device)) if is_device else mode


def _function_modes() -> tuple[Any, ...]:
    depth = torch._C._len_torch_function_stack()
    return tuple(_mode_key(torch._C._get_function_stack_at(i)) for i in range(depth))


_C: Final[Any] = torch._C


def saved_tensors_hooks_refusal() -> str | None:
    """With what words hooks on saved tensors are refused; None where they are not."""
    refusal: str | None = _C._autograd._saved_tensors_hooks_get_disabled_error_message()
    return refusal


def set_saved_tensors_hooks_refusal(words: str | None) -> None:
    """Refuse hooks on saved tensors with these words, or (None) allow them."""
    if words is None:
        _C._autograd._saved_tensors_hooks_enable()
    else:
        _C._autograd._saved_tensors_hooks_disable(words)


def saved_tensors_are_watched() -> bool:
    """Whether a program has hooks on what autograd saves, as a checkpoint does."""
    return _C._autograd._top_saved_tensors_default_hooks(True) is not None


def saved_tensors_are_watched_by_program() -> bool:
    """Whether those hooks are a program's own, and not a checkpoint's, say, which raise nothing that code catches."""
    hooks = _C._autograd._top_saved_tensors_default_hooks(True)
    return hooks is not None and str(getattr(hooks[0], "__module__", "")).partition(".")[0] != "torch"


def set_deterministic(enabled: bool) -> None:
    """Whether operators have to be deterministic; those that are not warn or raise as before."""
    _C._set_deterministic_algorithms(enabled, warn_only=_C._get_deterministic_algorithms_warn_only())


def set_deterministic_warn_only(enabled: bool) -> None:
    """Whether an operator that is not deterministic only warns where it has to be."""
    _C._set_deterministic_algorithms(_C._get_deterministic_algorithms(), warn_only=enabled)


FACTS: Final[tuple[Fact, ...]] = (
    Fact("grad_mode", torch.is_grad_enabled, setter=_C._set_grad_enabled),
    Fact("inference_mode", torch.is_inference_mode_enabled),
    Fact("default_dtype", torch.get_default_dtype, setter=_C._set_default_dtype),
    Fact("dispatch_included", lambda: _C._dispatch_tls_local_include_set().raw_repr()),
    Fact("dispatch_excluded", lambda: _C._dispatch_tls_local_exclude_set().raw_repr()),
    Fact("torch_function_modes", _function_modes),
    Fact("torch_function_state", lambda: int(_C._get_torch_function_state())),
    Fact("autocast_cpu", lambda: _autocast("cpu")),
    Fact("autocast_cuda", lambda: _autocast("cuda")),
    Fact("autocast_cache", torch.is_autocast_cache_enabled),
    Fact("deterministic", _C._get_deterministic_algorithms, setter=set_deterministic),
    Fact(
        "deterministic_warn_only",
        _C._get_deterministic_algorithms_warn_only,
        setter=set_deterministic_warn_only,
    ),
    Fact("deterministic_fill", _C._get_deterministic_fill_uninitialized_memory),
    Fact("cudnn_enabled", _C._get_cudnn_enabled, setter=_C._set_cudnn_enabled),
    Fact("cudnn_benchmark", _C._get_cudnn_benchmark, setter=_C._set_cudnn_benchmark),
    Fact("cudnn_deterministic", _C._get_cudnn_deterministic, setter=_C._set_cudnn_deterministic),
    Fact("mkldnn_enabled", _C._get_mkldnn_enabled, setter=_C._set_mkldnn_enabled),
    Fact("sdp_flash", _C._get_flash_sdp_enabled, setter=_C._set_sdp_use_flash),
    Fact("sdp_math", _C._get_math_sdp_enabled, setter=_C._set_sdp_use_math),
    Fact("sdp_mem_efficient", _C._get_mem_efficient_sdp_enabled, setter=_C._set_sdp_use_mem_efficient),
    Fact("sdp_cudnn", _C._get_cudnn_sdp_enabled, setter=_C._set_sdp_use_cudnn),
    Fact("sdp_overrideable", _C._get_overrideable_sdp_enabled, setter=_C._set_sdp_use_overrideable),
    Fact("num_threads", torch.get_num_threads),
    Fact("multithreading", _C._is_multithreading_enabled, False, _C._set_multithreading_enabled),
    Fact("sdp_priority", _C._get_sdp_priority_order, False, _C._set_sdp_priority_order),
    Fact("mkldnn_deterministic", _C._get_mkldnn_deterministic, False, _C._set_mkldnn_deterministic),
    Fact("forward_gradients", _C._is_fwd_grad_enabled, False, _C._set_fwd_grad_enabled),
    Fact("saved_tensors_hooks", saved_tensors_hooks_refusal, False, set_saved_tensors_hooks_refusal),
    Fact("view_replay", _C._is_view_replay_enabled, False),
    Fact("matmul_precision", torch.get_float32_matmul_precision, False),
    Fact("cudnn_tf32", lambda: torch.backends.cudnn.allow_tf32, False),
    Fact("cublas_reduced_fp16", _C._get_cublas_allow_fp16_reduced_precision_reduction, False),
    Fact("cublas_reduced_bf16", _C._get_cublas_allow_bf16_reduced_precision_reduction, False),
    Fact("blas", lambda: str(_C._get_blas_preferred_backend()), False),
    Fact("linalg", lambda: str(_C._get_linalg_preferred_backend()), False),
    Fact("nnpack", _C._get_nnpack_enabled, False),
    Fact("anomaly", lambda: (torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()), False),
)
"""Every fact. The guarded ones come first, in the order in which guards check them."""


def described() -> str | None:
    """All facts in words that mean the same in every process; None where an object of the program is one of them."""
    parts: list[str] = []
    for fact in FACTS:
        try:
            value = fact.read()
        except (
            RuntimeError
        ) as error:  # a setting that torch cannot tell, because two interfaces set parts of it
            value = f"unknown: {error}"
        if fact.name == "torch_function_modes":
            if not all(isinstance(mode, tuple) for mode in value):
                return None
            value = [device for _, device in value]
        parts.append(f"{fact.name}={value!r}")
    return "\n".join(parts)


_OF_KERNELS: Final = (
    torch.is_inference_mode_enabled,
    _C._get_deterministic_algorithms,
    _C._get_deterministic_fill_uninitialized_memory,
    _C._get_cudnn_enabled,
    _C._get_cudnn_benchmark,
    _C._get_cudnn_deterministic,
    _C._get_flash_sdp_enabled,
    _C._get_math_sdp_enabled,
    _C._get_mem_efficient_sdp_enabled,
    _C._get_cudnn_sdp_enabled,
    _C._get_cublas_allow_tf32,
    _C._get_cudnn_allow_tf32,
    _C._get_cublas_allow_fp16_reduced_precision_reduction,
    _C._get_cublas_allow_bf16_reduced_precision_reduction,
    _C._get_linalg_preferred_backend,
)


def read_by_kernels() -> tuple[Any, ...]:
    """The settings by which library calls on a GPU choose what they do and how results are made: cheap to read, and
    values that can be compared within one process."""
    return tuple([_value(read) for read in _OF_KERNELS])


def _value(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except RuntimeError as error:  # two interfaces set parts of it
        return str(error)
