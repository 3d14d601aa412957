"""The stack of ``TorchFunctionMode`` objects of a thread, and taking the program's off it for a while.

Compiling a function, or running what it was compiled to, calls functions of torch that the program does not call. Modes
that the program has entered are not to be asked about those, so they are set aside: taken off torch's stack, and put
back before the program goes on. ``program_stack`` is the stack as the program sees it, whatever is set aside.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _device
from torch.utils._device import DeviceContext


class _Aside(threading.local):
    def __init__(self) -> None:
        self.modes: list[Any] = []


_aside = _Aside()


def torchs_stack() -> list[Any]:
    """The modes on torch's own stack, outermost first."""
    return [torch._C._get_function_stack_at(at) for at in range(torch._C._len_torch_function_stack())]


def program_stack() -> list[Any]:
    """The modes that the program has entered, outermost first."""
    return [*torchs_stack(), *_aside.modes]


def is_default_device(mode: Any) -> bool:
    """Whether a mode only says on which device tensors are made."""
    return type(mode) is DeviceContext


def asked_modes() -> list[Any]:
    """The modes on torch's stack that are asked about each function, without default devices outside of them. One that
    is inside is asked before they are. Nothing is asked where ``DisableTorchFunction`` is at work."""
    if torch._C._len_torch_function_stack() == 0 or torch._C._is_torch_function_all_disabled():
        return []
    stack = torchs_stack()
    outer = next((at for at, mode in enumerate(stack) if not is_default_device(mode)), len(stack))
    return stack[outer:]


def set_modes_aside(count: int) -> list[Any]:
    """Take the innermost modes off torch's stack; what is returned says where to put them back."""
    taken = [torch._C._pop_torch_function_stack() for _ in range(count)]
    taken.reverse()
    place: list[Any] = [_aside.modes, taken]
    _aside.modes = [*_aside.modes, *taken]
    return place


def put_modes_back(place: list[Any], modes: Sequence[Any] | None = None) -> None:
    """Put back what was set aside, or other modes in place of those. Nothing happens the second time."""
    if not place:
        return
    before, taken = place
    place.clear()
    _aside.modes = before
    for mode in taken if modes is None else modes:
        torch._C._push_on_torch_function_stack(mode)


@contextmanager
def modes_aside() -> Iterator[None]:
    """The program's modes are set aside for a block."""
    asked = asked_modes()
    if not asked:
        yield
        return
    place = set_modes_aside(len(asked))
    try:
        yield
    finally:
        put_modes_back(place)


def modes_kept() -> Callable[[], None]:
    """What puts the modes, those aside too, back as they are now; it may be called twice."""
    stack, aside, device = torchs_stack(), _aside.modes, _device.CURRENT_DEVICE

    def put_back() -> None:
        _device.CURRENT_DEVICE = device
        if [id(mode) for mode in torchs_stack()] != [id(mode) for mode in stack]:
            while torch._C._len_torch_function_stack():
                torch._C._pop_torch_function_stack()
            for mode in stack:
                torch._C._push_on_torch_function_stack(mode)
        _aside.modes = aside

    return put_back


def without_program(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled graph that is run while modes are set aside: functions of the program that it calls see none."""

    def run(*inputs: Any) -> Any:
        before, _aside.modes = _aside.modes, []
        try:
            return compiled(*inputs)
        finally:
            _aside.modes = before

    return run


def default_devices_kept() -> Callable[[], None]:
    """What puts this thread's default devices back as they are now; modes that are asked have to be aside then."""
    stack, current = torchs_stack(), _device.CURRENT_DEVICE
    space: Any = getattr(torch, "_GLOBAL_DEVICE_CONTEXT")  # noqa: B009
    chosen = getattr(space, "device_context", None)
    parts = [(mode, dict(vars(mode))) for mode in stack]

    def put_back() -> None:
        for _ in range(torch._C._len_torch_function_stack()):
            torch._C._pop_torch_function_stack()
        for mode, attributes in parts:
            vars(mode).clear()
            vars(mode).update(attributes)
            torch._C._push_on_torch_function_stack(mode)
        _device.CURRENT_DEVICE, space.device_context = current, chosen

    return put_back
