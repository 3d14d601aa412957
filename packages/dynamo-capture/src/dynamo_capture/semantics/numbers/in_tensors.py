"""Numbers that vary as arguments of operations that take a number: torch reads them when the graph runs.

    torch.addmm(x, a, b, alpha=n)    ->    addmm(x, a, b, alpha=t)

``t`` is the float as a tensor without dimensions, and the function one of ``fx_interface.composites.numbers``, which
gives eager's bits where the graph runs as it is, and a tracer a formula. What torch or the formula requires of the
number is a fact on which the trace depends.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from dynamo_capture.sources.number_facts import COMPARISONS
from dynamo_capture.values import Const, TensorValue, Value, tensors_of
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.composites.numbers import LIMITS, NUMBERED

_WIDE = (torch.float32, torch.float64)
_IN_PLACE = {"ipow": "pow"}
_INDICES = ("index",)
"""Parameters for tensors of indices, whose dtype is another one."""


def read_by_torch(tx: Context, call: Any) -> Value | None:
    """The operation with open floats in tensors without dimensions. None where torch may refuse one, or a tracer has no
    formula."""
    written = call.name.endswith("_") or call.name in _IN_PLACE
    name = _IN_PLACE.get(call.name, call.name.removesuffix("_"))
    function = NUMBERED.get(name)
    values: list[Value] = [*call.args, *call.kwargs.values()] if function is not None else []
    if function is None or not any(value.is_open for value in values):
        return None
    given = _bound(function, call.args, call.kwargs)
    owner = call.args[0] if call.args else None
    if given is None or not isinstance(owner, TensorValue):
        return None
    dtype = _dtype(name, given, written)
    if dtype is None or not _is_plain(tx, values) or not _has_formula(name, given, values):
        return None
    if not all(_is_taken(key, value, dtype, name) for key, value in given.items()):
        return None

    def tensor(value: Value) -> Value:
        return value.tensor() if isinstance(value, RuntimeFloat) and value.is_open else value

    args = list(map(tensor, call.args))
    if written and owner.meta.requires_grad and torch.is_grad_enabled():  # the backward reads what was there
        args[0] = owner.call_method(tx, "clone", [], {})
    kwargs = {key: tensor(value) for key, value in call.kwargs.items()}
    made: Value = tx.tensors.operation("call_function", function, function, args, kwargs)
    return owner.call_method(tx, "copy_", [made], {}) if written else made


def _bound(
    function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> Mapping[str, Value] | None:
    """What each parameter is given; None where the function does not take it."""
    try:
        return _signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def _dtype(name: str, given: Mapping[str, Value], written: bool) -> torch.dtype | None:
    """The dtype to which torch converts the numbers; None where the function has no formula for these tensors."""
    tensors = tensors_of([value for key, value in given.items() if key not in _INDICES])
    dtypes = {tensor.meta.spec.dtype for tensor in tensors}
    if len(dtypes) != 1:
        return None
    dtype = dtypes.pop()
    if dtype in _WIDE:
        return dtype
    if name != "pow" or dtype.is_complex or (written and not dtype.is_floating_point):
        return None
    return dtype if dtype.is_floating_point else torch.get_default_dtype()


def _is_plain(tx: Context, args: list[Value]) -> bool:
    """Whether nobody but torch's own kernels is given the arguments, in the CPU's memory."""
    plain = all(
        tensor.meta.spec.device.type == "cpu" and tensor.meta.cls in PLAIN_CLASSES
        for tensor in tensors_of(args)
    )
    outermost = getattr(tx.output, "parent", None) is None
    return plain and outermost and not tx.tensors.modes and not torch.is_autocast_enabled("cpu")


def _has_formula(name: str, given: Mapping[str, Value], values: list[Value]) -> bool:
    """Whether the formula is one for these arguments."""
    if name != "histc":
        return True
    followed = torch.is_grad_enabled() and any(tensor.meta.requires_grad for tensor in tensors_of(values))
    limits = [given.get(key) for key in ("min", "max")]
    return not followed and all(value is not None for value in limits) and _are_ordered(*limits)


def _are_ordered(low: Any, high: Any) -> bool:
    """``low < high``, of two floats of which one is open."""
    for one, symbol, other in ((low, "<", high), (high, ">", low)):
        if isinstance(one, RuntimeFloat) and one.is_open and one.formula is not None:
            known = other if isinstance(other, RuntimeFloat) and other.is_open else other.as_constant()
            return one.compare(symbol, known)
    return False


def _is_taken(parameter: str, value: Value, dtype: torch.dtype, name: str) -> bool:
    """Whether torch takes it for this parameter, and the formula holds for it; also of what is no open float."""
    limits = LIMITS.get(name, {}).get(parameter, ())
    if not isinstance(value, RuntimeFloat) or not value.is_open:
        return not limits or _is_within(value, limits)
    if value.formula is None:  # drawn, or computed in the graph: no fact can be stated
        return name == "pow"
    if not is_in_range(value, dtype):
        return False
    return all(value.compare(*limit) for limit in limits)


def _is_within(value: Value, limits: Sequence[tuple[str, float]]) -> bool:
    known = value.value if isinstance(value, Const) else None
    is_number = isinstance(known, (int, float))
    return is_number and all(COMPARISONS[symbol](known, limit) for symbol, limit in limits)


def is_in_range(value: RuntimeFloat, dtype: torch.dtype) -> bool:
    """Whether torch converts the number to ``dtype``, on which the trace depends then."""
    if dtype is torch.float64 or dtype is torch.complex128 or dtype is torch.bool:
        return True
    is_float = dtype.is_floating_point or dtype.is_complex
    limits: Any = torch.finfo(dtype) if is_float else torch.iinfo(dtype)
    return value.compare("<=", limits.max) and value.compare(">=", limits.min)


__all__ = ["is_in_range", "read_by_torch"]
