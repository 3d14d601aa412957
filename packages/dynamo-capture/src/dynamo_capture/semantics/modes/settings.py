"""Settings of torch's libraries: ``torch.backends.cudnn.flags`` and its like.

What a program reads is guarded, where the guard on torch's state does not hold it anyway. What it sets is a switch
(``modes.py``) if nothing else depends on it; the rest may be set to what it is, and runs in Python otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import NONE, Const, Value
from fx_guards.kinds.state import FACTS
from fx_interface.torch_internals.modes import SWITCHES

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

_READ_ONLY: dict[str, str] = {
    "_set_cudnn_allow_tf32": "_get_cudnn_allow_tf32",
    "_set_cudnn_depthwise_kernel": "_get_cudnn_depthwise_kernel",
    "_cuda_set_cudnn_benchmark_limit": "_cuda_get_cudnn_benchmark_limit",
    "_set_cublas_allow_tf32": "_get_cublas_allow_tf32",
    "_set_onednn_allow_tf32": "_get_onednn_allow_tf32",
    "_set_fp32_precision_setter": "_get_fp32_precision_getter",
    "_set_float32_matmul_precision": "_get_float32_matmul_precision",
}
"""Setters of ``torch._C`` that change more than one setting, or warn; what reads theirs. Few torches have all."""

_HELD_ANYWAY = frozenset(FACTS.values())


def _reads(reader: Callable[..., Any]) -> Any:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return Const(read(tx, reader, tuple(tx.constant(value) for value in args)))

    return handle


def read(tx: Context, reader: Callable[..., Any], which: tuple[Any, ...] = ()) -> Any:
    """What a setting is now; that it was what it was at the entry is guarded."""
    value = tx.fold(lambda: reader(*which))
    at_entry = next((tx.entry[s] for s, r in SWITCHES.items() if r is reader), value)
    source = CallSource(known_object(reader), which, ())
    if reader not in _HELD_ANYWAY and source not in tx.guards.told:
        tx.guards.told.add(source)
        tx.guards.equals(source, at_entry)
    return value


def _sets(setter: Callable[..., Any], reader: Callable[..., Any]) -> Any:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        *which, wanted = (tx.constant(value) for value in args)
        if read(tx, reader, tuple(which)) != wanted:
            raise GraphBreak("CAP237", f"{setter.__name__}() sets {', '.join(map(repr, (*which, wanted)))}")
        return NONE

    return handle


for _name, _reader in _READ_ONLY.items():
    if hasattr(torch._C, _name) and hasattr(torch._C, _reader):
        _setter, _getter = getattr(torch._C, _name), getattr(torch._C, _reader)
        handles(_setter)(_sets(_setter, _getter))
        handles(_getter)(_reads(_getter))

for _getter in dict.fromkeys(SWITCHES.values()):
    if _getter not in (torch.is_grad_enabled, torch._C._get_sdp_priority_order):
        handles(_getter)(_reads(_getter))
