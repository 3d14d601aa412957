"""A program that runs again where nobody may come to know of it: not if it does more than to compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch._ops import OpOverload

from aot_autograd.runtime.double_backward.second_derivatives import Repetition, Run
from fx_interface.operator_facts.data_errors import is_opaque
from fx_interface.torch_internals.dispatch_mode import DispatchMode, without_dispatch_modes


class _DoesMore(Exception):
    """An operator speaks to other processes, or may do anything."""


class _OnlyComputing(DispatchMode):
    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        if is_opaque(func):
            raise _DoesMore
        return func(*args, **kwargs)


def run_unseen(repetition: Repetition, given: Sequence[Any], random: Any) -> Run | None:
    """The program run again on ``given``, past modes of ``__torch_dispatch__``; None if that is no computation only."""
    with without_dispatch_modes():
        try:
            with _OnlyComputing():
                return repetition.run(list(given), random)
        except _DoesMore:
            return None
