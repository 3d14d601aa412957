"""What programs ask about CUDA's devices.

The properties of a device never change once CUDA has begun. Which device is current does, and is guarded where an
answer depends on it. Before CUDA has begun the functions of torch are captured as they are written: they begin it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.known_objects import in_c
from dynamo_capture.semantics.modes.settings import read
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import NONE, Const, ObjectValue, Value
from dynamo_capture.values.base import Context

_OF_A_DEVICE = ("get_device_capability", "get_device_name", "get_device_properties")
_OF_ALL = ("device_count", "get_arch_list")


def _begun() -> bool:
    return bool(torch.cuda.is_initialized())  # type: ignore[no-untyped-call]


def _index(tx: Context, device: Value) -> int:
    """Which device is meant: a number, a device or its name; without a number the current one."""
    known = tx.fold(lambda: _as_device(tx.constant(device)))
    return read(tx, torch.cuda.current_device) if known is None else known


def _as_device(given: Any) -> int | None:
    if given is None or isinstance(given, int):
        return given
    device = torch.device(given)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    return device.index


def _about_a_device(function: Callable[[Any], Any]) -> Any:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if not _begun():
            return None
        (device,) = (*args, *kwargs.values()) or (NONE,)
        index = _index(tx, device)
        return tx.known(tx.fold(lambda: function(index)))

    return handle


def _about_all(function: Callable[[], Any]) -> Any:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        return tx.calls.from_python(tx.fold(function)) if _begun() else None

    return handle


for _name in _OF_A_DEVICE:
    handles(getattr(torch.cuda, _name))(_about_a_device(getattr(torch.cuda, _name)))
for _name in _OF_ALL:
    handles(getattr(torch.cuda, _name))(_about_all(getattr(torch.cuda, _name)))


def _fact(getter: Any) -> Any:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        facts = tx.force(args[0])
        if not isinstance(facts, ObjectValue) or facts.real is None or facts.source is None:
            return None
        tx.guards.is_object(facts.source, facts.real)
        return tx.known(tx.fold(lambda: getter(facts.real)))

    return handle


def declare_facts(cls: type) -> None:
    """The attributes of the objects of a class in C++ never change."""
    for member in vars(cls).values():
        if isinstance(member, property):
            handles(in_c(member.fget))(_fact(member.fget))


if hasattr(torch._C, "_CudaDeviceProperties"):
    declare_facts(torch._C._CudaDeviceProperties)


@handles(torch.cuda.current_device)
def current_device(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return Const(read(tx, torch.cuda.current_device)) if _begun() else None


@handles(torch.cuda.is_initialized)
def is_initialized(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return Const(read(tx, torch.cuda.is_initialized))


@handles(torch.cuda.is_bf16_supported)
def is_bf16_supported(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    if not _begun():
        return None
    emulated = tx.truth((*args, *kwargs.values(), Const(True))[0])
    read(tx, torch.cuda.current_device)
    return Const(tx.fold(lambda: torch.cuda.is_bf16_supported(emulated)))
