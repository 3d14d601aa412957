"""Interpreters of others that see each operator of this thread: while one is at work, programs run as they are written.

A compiled graph runs kernels, not operators: a tracer would record nothing of it, a mode would count nothing, a
transform differentiate nothing. What was compiled before is kept from running there by guards: each of them changes the
dispatch keys or modes in torch's state, except forward-mode differentiation, which ``forward_level_guard`` is for.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch.autograd import forward_ad

import fx_guards
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource
from fx_interface.torch_internals.dispatch_mode import all_ignore_compiled
from fx_interface.torch_internals.function_levels import open_levels

_BY_KEY = {
    torch._C.DispatchKey.Python: "a TorchDispatchMode",
    torch._C.DispatchKey.PythonDispatcher: "torch's Python dispatcher",
}
"""What is at work while the thread's dispatch includes a key."""


def _never() -> bool:
    return False


_is_redispatching: Callable[[], bool] = getattr(torch._C, "_peek_should_skip_torch_function", _never)
"""Whether ``redispatch_function`` has marked the next call; torch before 2.13 has no such mark."""

_LEVEL = ItemSource(InstanceDictSource(ImportedModuleSource(forward_ad.__name__)), "_current_level")
_NO_LEVEL = -1


def foreign_interpreter() -> str | None:
    """The name of what interprets this thread's operators now, or None. Levels of transforms of ``torch.func`` are
    followed (``function_transforms``)."""
    if torch._C._get_tracing_state() is not None:
        return "torch.jit.trace"
    if torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python):
        return "a block without dispatch to Python"  # where tensors without data would meet real kernels
    for key, name in _BY_KEY.items():
        if torch._C._dispatch_tls_is_dispatch_key_included(key) and not (
            key is torch._C.DispatchKey.Python and all_ignore_compiled()
        ):
            return name
    if forward_ad._current_level != _NO_LEVEL and not any(level.kind == "jvp" for level in open_levels()):
        return "forward-mode differentiation"
    if _is_redispatching():
        return "redispatch_function"  # whose mark goes to the next question about __torch_function__, ours included
    return None


def forward_level_guard() -> fx_guards.GuardRecord:
    """Forward-mode differentiation is as it is now: not entered, but by a transform."""
    return fx_guards.EqualsConstant(_LEVEL, forward_ad._current_level)
