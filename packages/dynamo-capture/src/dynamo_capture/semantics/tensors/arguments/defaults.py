"""Defaults that torch makes tensors by, the device and the dtype: a graph states them, so that it needs none around it.

    with torch.device("meta"): compiled(x)     # torch.ones(4) in the program: torch.ones(4, device="meta") in the graph

Stated is what differs from what torch starts with, the CPU and float32; guards see to it that the rest stays so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _device
from torch.utils import _pytree as pytree

from dynamo_capture.foundation.break_kinds import TORCH_STATE_CHANGED
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.semantics.modes.modes import default_device
from dynamo_capture.values import Const, TensorValue, Value
from dynamo_capture.values.base import Context
from fx_interface.tensor_spec import TensorSpec

_INITIAL = torch.float32
_FIRST_DEVICE = torch.device("cpu")


def makers() -> Any:
    """The functions that make tensors on the default device."""
    return _device._device_constructors()


def with_default_device(
    tx: Context, function: Callable[..., Any], kwargs: dict[str, Value]
) -> dict[str, Value]:
    """The arguments of a call inside a block of ``with torch.device`` of the program."""
    return _with_device(function, kwargs, default_device(tx))


def with_surrounding_device(tx: Context, function: Any, kwargs: dict[str, Value]) -> dict[str, Value]:
    """The arguments of a call that no mode of the program has taken, under the default device outside of the trace, or
    that which the program has set since."""
    device = _surrounding_device()
    if device is None and tx.tensors.modes.devices is not None:
        device = _FIRST_DEVICE
    return _with_device(function, kwargs, device)


def _with_device(function: Any, kwargs: dict[str, Value], device: torch.device | None) -> dict[str, Value]:
    if device is None or function not in makers() or not _is_none(kwargs.get("device")):
        return kwargs
    return {**kwargs, "device": Const(device)}


def _surrounding_device() -> torch.device | None:
    """The device of the innermost ``with torch.device``, or of ``set_default_device``, outside of the trace."""
    if torch._C._is_torch_function_all_disabled():
        return None
    for at in reversed(range(torch._C._len_torch_function_stack())):
        mode = torch._C._get_function_stack_at(at)
        if type(mode) is _device.DeviceContext:
            return torch.device(mode.device)
    return None


def with_dtype(function: Callable[..., Any], kwargs: dict[str, Value], result: Any) -> dict[str, Value]:
    """The arguments of a call that makes this result, and its dtype if the default may have decided on it."""
    if torch.get_default_dtype() is _INITIAL or not isinstance(result, TensorSpec):
        return kwargs
    if function is not torch.normal and function not in makers():
        return kwargs
    given = not _is_none(kwargs.get("dtype")) or "out" in kwargs
    if given or not (result.dtype.is_floating_point or result.dtype.is_complex):
        return kwargs
    return {**kwargs, "dtype": Const(result.dtype)}


def by_promotion(
    tx: Context,
    args: Sequence[Value],
    kwargs: dict[str, Value],
    result: Any,
    run: Callable[[list[Value]], Value],
) -> Value | None:
    """What ``run`` makes of floats, where a default dtype that was set in the graph decides that integers become some,
    as in ``torch.arange(3) / 2``: compilers leave out what sets it, and no argument states it. None: it decides
    nothing."""
    default = torch.get_default_dtype()
    if tx.entry.get(torch._C._set_default_dtype, default) is default or not _is_none(kwargs.get("dtype")):
        return None
    made = {spec.dtype for spec in pytree.tree_leaves(result) if isinstance(spec, TensorSpec)}
    given = [value.meta.spec.dtype for value in args if isinstance(value, TensorValue)]
    of_integers = bool(given) and not any(dtype.is_floating_point or dtype.is_complex for dtype in given)
    if not (of_integers and made & {default, default.to_complex()}):
        return None
    try:
        return run([_as_floats(tx, value) for value in args])
    except UserRaise:  # a mask or an index, of integers only
        raise GraphBreak(
            TORCH_STATE_CHANGED, "a default dtype that was set inside decides on a result"
        ) from None


def _as_floats(tx: Context, value: Value) -> Value:
    if not isinstance(value, TensorValue):
        return value
    made: Value = tx.tensors.operation(
        "call_method", "to", torch.Tensor.to, [value], {"dtype": Const(torch.get_default_dtype())}
    )
    return made


def _is_none(value: Value | None) -> bool:
    return value is None or value.stands_for(None)
