"""Making tensors that dispatch in Python, and what torch gives their classes to hand results back."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import return_and_correct_aliasing

from dynamo_capture.foundation.break_kinds import C_OBJECT_MADE, DISPATCH_IN_PYTHON, NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.builtins.construct import new_tensor
from dynamo_capture.semantics.registry import handles
from dynamo_capture.shapes.irregular import written_argument
from dynamo_capture.values import Const, TensorMeta, TensorValue, TupleValue, Value, is_none
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.wrapper import WrapperValue, dispatches
from fx_interface.tensor_spec import TensorSpec, contiguous_strides, located

_POSITIONS = ("cls", "size", "strides", "storage_offset", "memory_format", "dtype", "layout", "device")
_READ = frozenset({"size", "strides", "storage_offset", "dtype", "device"})
_DEFAULTS = {
    "memory_format": (None,),
    "layout": (torch.strided, None),
    "pin_memory": (False, None),
    "requires_grad": (False, None),
}
"""The arguments of ``_make_wrapper_subclass`` that may only be what they are by default, and those values."""


@handles(torch.Tensor._make_wrapper_subclass)
def make_wrapper(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.Tensor._make_wrapper_subclass(cls, size, ...)``: a tensor with a form and no memory."""
    given = {**dict(zip(_POSITIONS, args, strict=False)), **kwargs}
    if len(args) > len(_POSITIONS) or not given.keys() >= {"cls", "size"}:
        raise GraphBreak(
            NOT_IN_PYTHON, "_make_wrapper_subclass() is called with other arguments than it takes"
        )
    cls = tx.constant(given.pop("cls"))
    if not (isinstance(cls, type) and issubclass(cls, torch.Tensor) and dispatches(cls)):
        raise GraphBreak(NOT_IN_PYTHON, "_make_wrapper_subclass() of a class without a __torch_dispatch__")
    for name, value in given.items():
        if name not in _READ and tx.constant(value) not in _DEFAULTS.get(name, ()):
            raise GraphBreak(DISPATCH_IN_PYTHON, f"a {cls.__name__} is made with {name}={tx.constant(value)}")
    sizes = _numbers(tx, given["size"])
    strides = given.get("strides")
    spec = TensorSpec(
        sizes,
        contiguous_strides(sizes) if strides is None or is_none(strides) else _numbers(tx, strides),
        _constant(tx, given.get("dtype")) or torch.get_default_dtype(),
        located(torch.device(_constant(tx, given.get("device")) or "cpu")),
    )
    meta = TensorMeta.of(spec, False, True, cls, torch.is_inference_mode_enabled())
    return WrapperValue(meta, given=[Const(cls), *given.values()], names=(*given,))


@handles(torch.Tensor.__new__)
def new_tensor_of(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``super().__new__(cls, tensor)``."""
    cls = tx.constant(args[0]) if args else None
    if not (isinstance(cls, type) and issubclass(cls, torch.Tensor)) or kwargs:
        raise GraphBreak(
            C_OBJECT_MADE, "Tensor.__new__() is called with something else than a class and a tensor"
        )
    return new_tensor(tx, cls, args[1:])


@handles(torch.Tensor._make_subclass)
def make_subclass(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``torch.Tensor._make_subclass(cls, tensor, require_grad=False)``: the same memory without a history, of that
    class."""
    given = dict(zip(("cls", "data", "require_grad"), args, strict=False))
    if len(args) > 3 or given.keys() & kwargs.keys() or not {*given, *kwargs} >= {"cls", "data"}:
        raise GraphBreak(NOT_IN_PYTHON, "_make_subclass() is called with other arguments than it takes")
    given |= kwargs
    cls, data = tx.constant(given.pop("cls")), tx.force(given.pop("data"))
    if not (isinstance(cls, type) and issubclass(cls, torch.Tensor) and isinstance(data, TensorValue)):
        raise GraphBreak(NOT_IN_PYTHON, "_make_subclass() of something else than a class and a tensor")
    if any(tx.constant(value) for value in given.values()):
        raise GraphBreak(C_OBJECT_MADE, f"a {cls.__name__} that requires grad is made")
    made: Value = tx.tensors.as_class(data, cls, followed=False)
    return made


def _numbers(tx: Context, value: Value) -> tuple[Any, ...]:
    """Sizes or strides of a sequence of integers."""
    found: list[Any] = []
    for item in tx.force(value).unpack(tx):
        item = tx.force(item)
        found.append(item.expr if item.expr is not None else tx.integer(item))
    return tuple(found)


def _constant(tx: Context, value: Value | None) -> Any:
    return None if value is None else tx.constant(value)


@handles(return_and_correct_aliasing)
def correct_aliasing(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What an operator that writes returns are its arguments; that views share the wrappers' empty memory, nobody sees.

    Where torch itself has called ``__torch_dispatch__``, and that alone is captured, it does all that it does.
    """
    if not tx.tensors.below:
        return tx.inliner.call_function(Const(return_and_correct_aliasing), args, kwargs)
    func, given, options, out = (tx.force(value) for value in args)
    operator = tx.constant(func)
    returned = operator._schema.returns
    if not any(result.alias_info is not None and result.alias_info.is_write for result in returned):
        return out
    values = tuple(tx.force(value) for value in given.unpack(tx))
    named = {tx.constant(k): tx.force(options.get_item(tx, k)) for k in options.unpack(tx)}
    found = [written_argument(operator, result, values, named) for result in returned]
    if not all(isinstance(value, Value) for value in found):
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{operator} returns an argument and something else")
    return found[0] if len(found) == 1 else TupleValue(found)
