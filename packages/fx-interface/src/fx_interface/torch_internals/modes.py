"""What changes a mode of torch while a graph runs, and how the modes are put back afterwards.

Torch's own captured graphs call the same functions.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch.autograd import grad_mode
from torch.utils._python_dispatch import _disable_current_modes

from fx_interface.torch_internals import torch_state

enter_autocast: Final[Any] = getattr(torch.amp, "_enter_autocast")  # noqa: B009
exit_autocast: Final[Any] = getattr(torch.amp, "_exit_autocast")  # noqa: B009
enter_inference_mode: Final[Any] = getattr(grad_mode, "_enter_inference_mode")  # noqa: B009
exit_inference_mode: Final[Any] = getattr(grad_mode, "_exit_inference_mode")  # noqa: B009


def enter_grad_mode(enabled: bool) -> bool:
    """Turn gradients on or off, whatever they are before, which is returned."""
    before = torch.is_grad_enabled()
    torch._C._set_grad_enabled(enabled)
    return before


def exit_grad_mode(before: bool) -> None:
    """Gradients are on or off as before again."""
    torch._C._set_grad_enabled(before)


BLOCKS: Final[Mapping[Callable[..., Any], Callable[..., Any]]] = {
    enter_autocast: exit_autocast,
    enter_inference_mode: exit_inference_mode,
    enter_grad_mode: exit_grad_mode,
}
"""Functions that enter a block and give back what the one beside them is called with to leave it."""

SWITCHES: Final[Mapping[Callable[..., Any], Callable[[], Any]]] = {
    fact.setter: fact.read for fact in torch_state.FACTS if fact.setter is not None
}
"""Functions that set a mode, with what reads it."""


def _stable_name(setter: Any) -> str:
    own = str(setter.__module__).startswith("fx_interface")
    return f"{'fx_interface.modes' if own else 'torch._C'}.{setter.__name__}"


MODES: Final[Mapping[str, Callable[..., Any]]] = {
    "torch.amp._enter_autocast": enter_autocast,
    "torch.amp._exit_autocast": exit_autocast,
    "torch.autograd.grad_mode._enter_inference_mode": enter_inference_mode,
    "torch.autograd.grad_mode._exit_inference_mode": exit_inference_mode,
    "fx_interface.modes.enter_grad_mode": enter_grad_mode,
    "fx_interface.modes.exit_grad_mode": exit_grad_mode,
    **{_stable_name(setter): setter for setter in SWITCHES},
}
"""Every such function by its stable name."""

CHANGING: Final[frozenset[Callable[..., Any]]] = frozenset(MODES.values())

AUTOCAST_DEVICES: Final = ("cpu", "cuda")
"""Whose autocast is put back."""


def _autocast_depth() -> int:
    """How many blocks of autocast this thread is in. Nothing interrupts between the two calls."""
    steps = (torch.autocast_increment_nesting, torch.autocast_decrement_nesting)
    depth: int = tuple(map(operator.call, steps))[1]
    return depth


def autocast_kept() -> Callable[[], None]:
    """What puts autocast back as it is now, the number of its blocks too: torch drops the parameters that it has
    converted where it leaves the outermost. It may be called twice."""
    kept = [(d, torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in AUTOCAST_DEVICES]
    caches, depth = torch.is_autocast_cache_enabled(), _autocast_depth()

    def put_back() -> None:
        for device, enabled, dtype in kept:
            torch.set_autocast_enabled(device, enabled)
            torch.set_autocast_dtype(device, dtype)
        torch.set_autocast_cache_enabled(caches)
        if depth == 0 and _autocast_depth() > 0:
            torch.clear_autocast_cache()
        while _autocast_depth() > depth:
            torch.autocast_decrement_nesting()
        while _autocast_depth() < depth:
            torch.autocast_increment_nesting()

    return put_back


_ORDER: Final = torch._C._get_sdp_priority_order()
"""In which order torch tries the kernels for attention, until it is first asked which one it takes on a GPU."""
_settled: list[bool] = []


def settle_attention_order() -> None:
    """Have torch choose the order in which it tries the kernels for attention on this machine's GPU.

    It does so once in a process, when it is first asked for attention there. Asked by a trace, whose switches are put
    back afterwards, the order would be back as well, and attention slower from then on, the program's own too.
    """
    if _settled or not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return
    if torch.cuda.is_current_stream_capturing():
        return
    _settled.append(True)
    if torch._C._get_sdp_priority_order() == _ORDER:
        with torch._C.DisableTorchFunctionSubclass(), _disable_current_modes():
            query = torch.empty((1, 1, 8, 64), dtype=torch.float16, device="cuda")
            torch._fused_sdp_choice(query, query, query)


@contextmanager
def restored() -> Iterator[None]:
    """The switches are as before at the end, and what was entered with ``BLOCKS`` inside is the caller's to leave."""
    settle_attention_order()
    before = [(setter, reader()) for setter, reader in SWITCHES.items()]
    try:
        yield
    finally:
        for setter, value in before:
            if SWITCHES[setter]() != value:
                setter(value)
