"""What of the caller's surroundings is set aside while a frame is compiled: cycle search, saved-tensor hooks, modes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from fx_interface.python_runtime.gc_pause import collector_paused
from fx_interface.torch_internals.dispatch_mode import ignoring_modes_aside
from fx_interface.torch_internals.function_modes import modes_aside


@contextlib.contextmanager
def set_aside() -> Iterator[None]:
    """Compiling runs operators of its own, which hooks and modes of the program must not see, and makes objects by the
    thousand."""
    with (
        collector_paused(),
        _saved_tensor_hooks_hidden(),
        modes_aside(),
        ignoring_modes_aside(),
        _backwards_run_at_once(),
    ):
        yield


@contextlib.contextmanager
def _backwards_run_at_once() -> Iterator[None]:
    """Torch can hand each backward to a compiler of the program's: those of compiling are none of its business."""
    setter = torch._C._dynamo.compiled_autograd.set_autograd_compiler
    before, dynamic = setter(None, False)
    try:
        yield
    finally:
        if before is not None:
            setter(before, dynamic)


@contextlib.contextmanager
def _saved_tensor_hooks_hidden() -> Iterator[None]:
    """Under ``torch.utils.checkpoint``, say, each tensor that autograd saves is counted, and must be again when the
    forward is recomputed: what compiling saves is not the program's."""
    autograd: Any = torch._C._autograd
    if autograd._top_saved_tensors_default_hooks(False) is None:
        yield
        return
    autograd._push_saved_tensors_default_hooks(_same, _same)
    try:
        yield
    finally:
        autograd._pop_saved_tensors_default_hooks()


def _same(value: Any) -> Any:
    return value
