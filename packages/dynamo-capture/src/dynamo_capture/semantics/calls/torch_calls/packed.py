"""Operators that take weights packed into objects of C++, as modules of dynamic quantization do: one node."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import UNTRACEABLE
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.runtime.calls.packed_calls import PackedCall, Part, name_of, operators
from dynamo_capture.values import Const, ListValue, ObjectValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import items_of, kinds_of
from fx_interface.tensor_spec import TensorSpec

_PACKED = "__torch__.torch.classes."
_CLASSES = tuple(f"{_PACKED}{name}" for name in ("quantized.", "rnn.", "mkldnn.", "xnnpack."))
"""Classes of objects that hold weights, and that no operator changes."""
_LINEAR = frozenset(
    f"linear_{form}" for form in ("dynamic", "dynamic_fp16", "relu_dynamic", "relu_dynamic_fp16")
)
"""Linear maps from and to tensors of float32."""


def call_packed(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """A call of a function of torch with such an object; None for any other call."""
    if not any(isinstance(value, ObjectValue) for value in kinds_of(tx, [*args, *kwargs.values()])):
        return None
    given = [one for value in (*args, *kwargs.values()) for one in items_of(tx, value)]
    objects = [value for value in given if isinstance(value, ObjectValue) and _is_packed(value)]
    if not objects or tx.tensors.modes:
        return None
    tensors = [value for value in given if isinstance(value, TensorValue)]
    if not tensors or not all(map(_is_plain, tensors)):
        return None
    if torch.is_grad_enabled() and any(tensor.meta.requires_grad for tensor in tensors):
        return None
    for value in objects:
        assert value.source is not None
        tx.guards.is_object(value.source, value.real)
    places: list[Value] = []
    try:
        parts = tuple(_part(tx, value, places) for value in args)
        named = tuple((name, _part(tx, value, places)) for name, value in kwargs.items())
    except NotConstant:
        return None
    call, linear = operators()
    width = _width(owner.value, objects, tensors)
    if width is not None:
        name = name_of(PackedCall(owner.value, parts, named, width=width))
        return tx.tensors.call_function(linear, [*places, Const(name)], {})
    forms, is_one = _forms(owner.value, parts, named, [tensor.meta.spec for tensor in tensors])
    name = name_of(PackedCall(owner.value, parts, named, forms))
    results = tx.tensors.call_function(call, [ListValue(places), Const(name)], {}).unpack(tx)
    return results[0] if is_one else TupleValue(results)


def _is_packed(value: ObjectValue) -> bool:
    if value.source is None or not isinstance(value.real, torch.ScriptObject):
        return False
    return str(value.real._type()).startswith(_CLASSES)


def _is_plain(tensor: TensorValue) -> bool:
    spec = tensor.meta.spec
    return type(tensor) is TensorValue and tensor.meta.cls is torch.Tensor and spec.device.type == "cpu"


def _part(tx: Context, value: Value, places: list[Value]) -> Part:
    """How an argument is made, of tensors that are added to ``places``."""
    value = tx.force(value)
    if isinstance(value, TensorValue):
        places.append(value)
        return len(places) - 1
    if isinstance(value, ObjectValue) and isinstance(value.real, torch.ScriptObject):
        return "object", weakref.ref(value.real)
    if isinstance(value, (ListValue, TupleValue)):
        return "list", tuple(_part(tx, item, places) for item in value.unpack(tx))
    return "value", tx.calls.python_object(value)


def _width(function: Any, objects: list[Any], tensors: list[TensorValue]) -> int | None:
    """How many numbers a linear map gives for each row; None for another function, or what it would refuse."""
    name = str(getattr(function, "_qualified_op_name", function)).rpartition("::")[2].partition(".")[0]
    spec = tensors[0].meta.spec
    if name not in _LINEAR or len(tensors) != 1 or len(spec.sizes) < 2 or spec.dtype is not torch.float32:
        return None
    rows, columns = objects[0].real.unpack()[0].shape
    return int(rows) if spec.sizes[-1] == columns else None


def _forms(
    function: Any, args: tuple[Part, ...], kwargs: tuple[tuple[str, Part], ...], specs: list[TensorSpec]
) -> tuple[tuple[torch.Tensor, ...], bool]:
    """The results without data, and whether there is only one: of a call with zeros."""
    if not all(spec.is_static for spec in specs):
        raise GraphBreak(
            UNTRACEABLE,
            "what packed weights give for sizes that vary is known only when they are used",
        )
    operands = [_zeros(spec) for spec in specs]
    with torch.no_grad():
        try:
            results = PackedCall(function, args, kwargs)(operands)
        except Exception as error:
            raise GraphBreak(UNTRACEABLE, f"packed weights are not to be called so: {error}") from None
    found = [results] if isinstance(results, torch.Tensor) else list(results)
    if not all(
        isinstance(one, torch.Tensor) and one.layout is torch.strided and not one.is_quantized
        for one in found
    ):
        raise GraphBreak(UNTRACEABLE, "packed weights give something other than plain tensors")
    memories = {one.untyped_storage()._cdata for one in (*operands, *found)}
    if len(memories) < len(operands) + len(found):
        raise GraphBreak(UNTRACEABLE, "packed weights give tensors that share memory")
    return tuple(one.to("meta") for one in found), isinstance(results, torch.Tensor)


def _zeros(spec: TensorSpec) -> torch.Tensor:
    sizes: Any = spec.sizes
    strides: Any = spec.strides
    made = torch.empty_strided(sizes, strides, dtype=spec.dtype, device="cpu")
    return made.zero_()
