"""Settings of torch's libraries: ``torch.backends.cudnn.flags`` and its like.

What a program reads is guarded, where the guard on torch's state does not hold it anyway. What it sets is a switch
(``modes.py``) if nothing else depends on it; the rest may be set to what it is, and runs in Python otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import TORCH_STATE_CHANGED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.modes.contexts import NullContext
from dynamo_capture.semantics.registry import handles
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import NONE, Const, Value
from dynamo_capture.values.base import Context
from fx_guards.kinds.state import FACTS
from fx_interface.torch_internals.modes import SWITCHES
from fx_interface.torch_internals.torch_state import saved_tensors_hooks_refusal

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
            raise GraphBreak(
                TORCH_STATE_CHANGED, f"{setter.__name__}() sets {', '.join(map(repr, (*which, wanted)))}"
            )
        return NONE

    return handle


for _name, _reader in _READ_ONLY.items():
    if hasattr(torch._C, _name) and hasattr(torch._C, _reader):
        _setter, _getter = getattr(torch._C, _name), getattr(torch._C, _reader)
        handles(_setter, least=1)(_sets(_setter, _getter))
        handles(_getter)(_reads(_getter))

for _getter in dict.fromkeys(SWITCHES.values()):
    if _getter not in (torch.is_grad_enabled, torch._C._get_sdp_priority_order):
        handles(_getter)(_reads(_getter))

for _getter in (
    torch.autograd._is_checkpoint_valid,
    torch._C._is_torch_function_all_disabled,
    torch._C._are_functorch_transforms_active,
):
    handles(_getter)(_reads(_getter))


@handles(torch._C._autograd._saved_tensors_hooks_get_disabled_error_message)
def saved_tensors_hooks(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(read(tx, saved_tensors_hooks_refusal))


def _autocast_dtype(tx: Context, device: str) -> Value:
    """The guards on torch's state hold it while autocast is on; otherwise a guard of its own does."""
    found = tx.fold(lambda: torch.get_autocast_dtype(device))
    if torch.is_autocast_enabled(device):
        return Const(found)
    if tx.blocks:
        raise GraphBreak(
            TORCH_STATE_CHANGED, "the dtype of autocast is asked for inside of a block, where it is off"
        )
    return Const(read(tx, torch.get_autocast_dtype, (device,)))


@handles(torch.get_autocast_dtype)
def autocast_dtype(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return _autocast_dtype(tx, tx.constant(args[0] if args else kwargs["device_type"]))


def _deprecated(reader: Callable[..., Any], answer: Callable[[Context], Value]) -> None:
    """Declare a reader that warns whenever it is called: it is called once more after the graph."""

    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tx.effects.deferred(reader, [], {})
        return answer(tx)

    handles(reader)(handle)


_deprecated(torch.is_autocast_cpu_enabled, lambda tx: Const(torch.is_autocast_enabled("cpu")))
_deprecated(torch.get_autocast_cpu_dtype, lambda tx: _autocast_dtype(tx, "cpu"))
_deprecated(torch.get_autocast_gpu_dtype, lambda tx: _autocast_dtype(tx, "cuda"))


@handles(torch.autograd.set_detect_anomaly)
def set_detect_anomaly(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    turned_on = tx.truth(args[0] if args else kwargs["mode"])
    if torch.is_anomaly_enabled() or turned_on:
        raise _switching_anomalies(turned_on)
    return NullContext(NONE)


@handles(torch.autograd.detect_anomaly)
def detect_anomaly(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise _switching_anomalies(True)


def _switching_anomalies(on: bool) -> GraphBreak:
    """What is turned ``on`` tells by which lines of the program an operation came about: they are to run in Python."""
    what = "the detection of anomalies is switched, which looks at each operation's gradient"
    return GraphBreak(TORCH_STATE_CHANGED, what, as_written=on)


@handles(torch.set_printoptions)
def set_printoptions(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(
        TORCH_STATE_CHANGED, "texts of tensors, which are made when the graph has run, change form"
    )
