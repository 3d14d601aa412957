"""What of the caller's surroundings is set aside while a frame is compiled: cycle search, saved-tensor hooks, modes."""

from __future__ import annotations

import contextlib
import gc
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
from torch.autograd import profiler

from dynamo_capture.foundation.errors import forget_frames
from dynamo_capture.foundation.part_options import part_options_kept
from dynamo_capture.semantics.given_warnings import answers_kept
from fx_interface.python_runtime.gc_pause import collector_paused
from fx_interface.torch_internals.dispatch_mode import dispatch_modes_kept, ignoring_modes_aside
from fx_interface.torch_internals.function_modes import modes_aside, modes_kept
from fx_interface.torch_internals.modes import SWITCHES, autocast_kept

T = TypeVar("T")


def isolated(function: Callable[[], T]) -> T:
    """What ``function`` gives, called with all that set aside. An interrupt may arrive where a manager's ``__exit__``
    begins, which then does nothing until the manager dies, with the frames that the interrupt's traceback holds. So
    these go at once, and then what was set aside is looked at once more."""
    put_back = _surroundings()
    try:
        with set_aside():
            return function()
    except BaseException as error:
        if not isinstance(error, Exception):
            forget_frames(error)
        raise
    finally:
        _surely(put_back)


def _surely(step: Callable[[], None]) -> None:
    """Do a step that may be done twice, to its end, whatever interrupts it."""
    arrived: BaseException | None = None
    while True:
        try:
            step()
            break
        except BaseException as error:
            if arrived is not None:
                raise
            arrived = error
    if arrived is not None:
        raise arrived


def _surroundings() -> Callable[[], None]:
    """What puts back, where that differs later, what is so now: what is set aside, and what a trace enters for real."""
    collects, modes, dispatch_modes = gc.isenabled(), modes_kept(), dispatch_modes_kept()
    entered = autocast_kept(), part_options_kept(), answers_kept()
    switches = [(setter, reader, reader()) for setter, reader in SWITCHES.items()]
    autograd: Any = torch._C._autograd
    profiled = profiler._is_profiler_enabled

    def put_back() -> None:
        if collects:
            gc.enable()
        dispatch_modes()
        modes()
        for leave in entered:
            leave()
        for setter, reader, value in switches:
            if reader() != value:
                setter(value)
        while (hooks := autograd._top_saved_tensors_default_hooks(True)) is not None and _is_same(hooks):
            autograd._pop_saved_tensors_default_hooks()
        if profiled:
            autograd._enable_record_function(True)

    return put_back


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
        _profilers_kept_out(),
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
def _profilers_kept_out() -> Iterator[None]:
    """A profile of the program counts its own operators, not those by which their results are inferred."""
    profiled = profiler._is_profiler_enabled
    if profiled:
        torch._C._autograd._enable_record_function(False)
    try:
        yield
    finally:
        if profiled:
            torch._C._autograd._enable_record_function(True)


@contextlib.contextmanager
def _saved_tensor_hooks_hidden() -> Iterator[None]:
    """Under ``torch.utils.checkpoint``, say, each tensor that autograd saves is counted, and must be again when the
    forward is recomputed: what compiling saves is not the program's."""
    autograd: Any = torch._C._autograd
    hooks = autograd._top_saved_tensors_default_hooks(False)
    if hooks is None:
        yield
        return
    passing = types.FunctionType(_same.__code__, globals())
    passing.__module__ = getattr(hooks[0], "__module__", "")  # whose they are may be asked
    autograd._push_saved_tensors_default_hooks(passing, passing)
    try:
        yield
    finally:
        autograd._pop_saved_tensors_default_hooks()


def _same(value: Any) -> Any:
    return value


def _is_same(hooks: tuple[Any, Any]) -> bool:
    return getattr(hooks[0], "__code__", None) is _same.__code__
