"""The mode in which every ATen operator is handed to us, below autograd; torch's own compiler stays unloaded."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode


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
