"""The mode in which every ATen operator is handed to us, below autograd; torch's own compiler stays unloaded."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import (
    TorchDispatchMode,
    _get_current_dispatch_mode_stack,
    _pop_mode,
    _push_mode,
)


class DispatchMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While it is active, operators are given to ``dispatch``, with the mode put aside."""

    def __init_subclass__(cls) -> None:  # with types, as ``__init__``, for those who derive from it
        super().__init_subclass__()  # type: ignore[no-untyped-call]

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch would otherwise wrap the handler so that the first operator imports its own compiler."""
        return False

    def __torch_dispatch__(
        self,
        func: OpOverload,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """How torch calls it."""
        return self.dispatch(func, args, kwargs or {})

    @abstractmethod
    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """What ``func`` gives."""


@contextmanager
def without_dispatch_modes() -> Iterator[None]:
    """Operators reach their kernels, or a mode that is entered inside."""
    put_aside: list[Any] = []
    try:
        while torch._C._len_torch_dispatch_stack():
            put_aside.append(_pop_mode())
        yield
    finally:
        for mode in reversed(put_aside):
            _push_mode(mode)


def dispatch_modes_kept() -> Callable[[], None]:
    """What puts the modes back as they are now; it may be called twice."""
    stack: list[Any] = _get_current_dispatch_mode_stack()

    def put_back() -> None:
        if list(map(id, _get_current_dispatch_mode_stack())) == list(map(id, stack)):
            return
        while torch._C._len_torch_dispatch_stack():
            _pop_mode()
        for mode in stack:
            _push_mode(mode)

    return put_back


class _Aside(threading.local):
    def __init__(self) -> None:
        self.ignoring = 0


_aside = _Aside()


def ignores_compiled(mode: Any) -> bool:
    """Whether a mode of a program says that compiled code is none of its business. Modes of torch's own tracers are no
    modes of a program."""
    ignores = getattr(type(mode), "ignore_compile_internals", None)
    return ignores is not None and not mode.is_infra_mode() and bool(ignores())


def is_described() -> bool:
    """Whether operators are described, and not run: they are handed to the stack itself, or torch's own tracers have
    put their modes aside for kernels of the device ``meta``, with dispatch to Python left out."""
    left_out = torch._C._dispatch_tls_is_dispatch_key_excluded(torch._C.DispatchKey.Python)
    return left_out or any(isinstance(mode, DispatchMode) for mode in _get_current_dispatch_mode_stack())


def operators_are_watched() -> bool:
    """Whether a mode of a program is at work that wants to see each operator, as eager runs it."""
    return any(
        not mode.is_infra_mode() and not ignores_compiled(mode) for mode in _get_current_dispatch_mode_stack()
    )


def all_ignore_compiled() -> bool:
    """Whether there are modes, or have been set aside, and none has to see what compiled code does."""
    stack = _get_current_dispatch_mode_stack()
    return bool(stack or _aside.ignoring) and all(map(ignores_compiled, stack))


@contextmanager
def ignoring_modes_aside() -> Iterator[None]:
    """The modes that ignore compiled code are set aside for a block, if there are no others."""
    if not torch._C._len_torch_dispatch_stack() or not all_ignore_compiled():
        yield
        return
    _aside.ignoring += 1
    try:
        with without_dispatch_modes():
            yield
    finally:
        _aside.ignoring -= 1


def beside_ignoring_modes(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """A compiled graph that is run while modes are set aside."""

    def run(*inputs: Any) -> Any:
        with without_dispatch_modes():
            return compiled(*inputs)

    return run
