"""The guard on torch's state: each fact's change is seen, natively and in Python, and in the right thread."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
from torch.overrides import TorchFunctionMode

import fx_guards
from fx_guards.kinds.state import FACTS
from fx_guards.torch_bridge import native_readers


class Mode(TorchFunctionMode):
    """A mode that does nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


@contextmanager
def toggled(read: Callable[[], Any], write: Callable[[Any], Any], value: Any) -> Iterator[None]:
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


@contextmanager
def deterministic_fill() -> Iterator[None]:
    module: Any = torch.utils.deterministic

    before = module.fill_uninitialized_memory
    module.fill_uninitialized_memory = not before
    try:
        yield
    finally:
        module.fill_uninitialized_memory = before


CHANGES: dict[str, Callable[[], Any]] = {
    "grad_mode": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "default_dtype": lambda: toggled(torch.get_default_dtype, torch.set_default_dtype, torch.float64),
    "dispatch_included": lambda: torch._C._IncludeDispatchKeyGuard(torch._C.DispatchKey.Python),
    "dispatch_excluded": torch.inference_mode,
    "torch_function_modes": Mode,
    "torch_function_state": torch._C.DisableTorchFunctionSubclass,
    "autocast_cpu": lambda: torch.autocast("cpu"),
    "autocast_cuda": lambda: toggled(
        lambda: torch.is_autocast_enabled("cuda"), lambda v: torch.set_autocast_enabled("cuda", v), True
    ),
    "autocast_cache": lambda: toggled(
        torch.is_autocast_cache_enabled, torch.set_autocast_cache_enabled, False
    ),
    "deterministic": lambda: toggled(
        torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms, True
    ),
    "deterministic_warn_only": lambda: toggled(
        torch.is_deterministic_algorithms_warn_only_enabled,
        lambda v: torch.use_deterministic_algorithms(False, warn_only=v),
        True,
    ),
    "deterministic_fill": deterministic_fill,
    "cudnn_enabled": lambda: torch.backends.cudnn.flags(enabled=False),
    "cudnn_benchmark": lambda: torch.backends.cudnn.flags(benchmark=True),
    "cudnn_deterministic": lambda: torch.backends.cudnn.flags(deterministic=True),
    "mkldnn_enabled": lambda: torch.backends.mkldnn.flags(enabled=False),
    "sdp_flash": lambda: toggled(torch._C._get_flash_sdp_enabled, torch._C._set_sdp_use_flash, False),
    "sdp_math": lambda: toggled(torch._C._get_math_sdp_enabled, torch._C._set_sdp_use_math, False),
    "sdp_mem_efficient": lambda: toggled(
        torch._C._get_mem_efficient_sdp_enabled, torch._C._set_sdp_use_mem_efficient, False
    ),
    "sdp_cudnn": lambda: toggled(torch._C._get_cudnn_sdp_enabled, torch._C._set_sdp_use_cudnn, False),
    "sdp_overrideable": lambda: toggled(
        torch._C._get_overrideable_sdp_enabled, torch._C._set_sdp_use_overrideable, False
    ),
    "num_threads": lambda: toggled(torch.get_num_threads, torch.set_num_threads, torch.get_num_threads() + 1),
}


def function() -> None: ...


@pytest.mark.parametrize("name", FACTS)
def test_each_fact(name: str) -> None:
    alone, all_ = fx_guards.global_state([name]), fx_guards.global_state()
    natives = [fx_guards.build([g]) for g in (alone, all_)]
    assert name in native_readers()
    for _ in range(2):
        assert all(n.check_call(function) for n in natives)
        assert alone.holds(None)
        with CHANGES[name]():
            assert not alone.holds(None)
            assert not any(n.check_call(function) for n in natives)
            assert name in alone.explain(None)


def test_the_dtype_of_an_autocast_that_is_off_does_not_matter() -> None:
    guard = fx_guards.global_state()
    evaluator = fx_guards.build([guard])
    with toggled(
        lambda: torch.get_autocast_dtype("cpu"), lambda v: torch.set_autocast_dtype("cpu", v), torch.float16
    ):
        assert guard.holds(None)
        assert evaluator.check_call(function)


def test_modes_are_the_same_by_identity_and_device_contexts_by_device() -> None:
    mode = Mode()
    with mode:
        guard = fx_guards.global_state(["torch_function_modes"])
        evaluator = fx_guards.build([guard])
        assert evaluator.check_call(function)
    with Mode():
        assert not guard.holds(None)
        assert not evaluator.check_call(function)
    with torch.device("meta"):
        guard = fx_guards.global_state(["torch_function_modes"])
    with torch.device("meta"):
        assert guard.holds(None)
    with torch.device("cpu"):
        assert not guard.holds(None)


def test_state_is_the_calling_threads() -> None:
    evaluator = fx_guards.build(
        [fx_guards.global_state(["grad_mode", "dispatch_included", "dispatch_excluded"])]
    )
    answers: list[bool] = []

    def run() -> None:
        answers.append(evaluator.check_call(function))
        with torch.no_grad(), torch.inference_mode():
            answers.append(evaluator.check_call(function))

    thread = threading.Thread(target=run)
    with torch.inference_mode():
        thread.start()
        thread.join()
    assert answers == [True, False]
    assert evaluator.check_call(function)
