"""Nested tensors in jagged layout, as the trace sees them: made, read, and asked.

One is a view of the tensor that holds its rows, and that tensor is a view of it: torch differentiates through both
ways. So an operation on a nested tensor is what torch's class makes of it, on the rows, and autograd follows that:
what the graph holds are plain operations on plain tensors, and the nested tensors are made of them again behind it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch._ops import OpOverload
from torch.nested._internal.nested_tensor import NestedTensor

from dynamo_capture.foundation.break_kinds import C_OBJECT_MADE, DISPATCH_IN_PYTHON, UNUSUAL_TENSOR
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.torch import jagged
from dynamo_capture.semantics.declared import register_loaded
from dynamo_capture.semantics.tensor_subclasses.nested_stand_ins import ReachedOperators
from dynamo_capture.semantics.tensor_subclasses.wrappers import is_found, tensors_in
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.sources.sources import AnswerSource, TensorAttributeSource
from dynamo_capture.values import (
    NONE,
    TRUE,
    Const,
    DictValue,
    TensorValue,
    TupleValue,
    Value,
    is_none,
    tensors_of,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.nested import NestedValue
from fx_interface.source import InstanceDictSource, ItemSource, Source

_OPERATORS = "torch.nested._internal.ops"
_BY_ROWS = frozenset(
    {"dtype", "device", "requires_grad", "is_cuda", "is_cpu", "itemsize", "is_meta", "is_sparse"}
)
_QUESTIONS = frozenset({"is_floating_point", "is_complex", "element_size", "get_device", "is_inference"})


_OPERATOR_KINDS = (OpOverload, torch._ops.OpOverloadPacket)


def _meet(tx: Context) -> None:
    """Load what eager loads with the first operation on a nested tensor, so that its functions are known."""
    if not tx.tensors.has_nested:
        import_module(_OPERATORS)
        register_loaded()
        tx.tensors.has_nested = True


def existing(tx: Context, real: Any, source: Source) -> NestedValue | None:
    """An existing nested tensor."""
    if type(real) is not NestedTensor:
        return None
    _meet(
        tx,
    )
    space = InstanceDictSource(source)
    tx.guards.type_is(source, type(real))
    ragged = tx.constant(tx.wrap(real._ragged_idx, ItemSource(space, "_ragged_idx")))
    tx.policy.note_jagged(source, tuple(real._values.shape), ragged - 1)
    rows_source = AnswerSource(source, "values")
    rows = tx.force(tx.wrap(rows_source.step(real), rows_source))
    parts = [
        tx.force(tx.wrap(vars(real)[name], ItemSource(space, name)))
        for name in ("_offsets", "_lengths", "_metadata_cache")
    ]
    offsets, lengths, cache = parts
    if type(rows) is not TensorValue or type(offsets) is not TensorValue:
        raise GraphBreak(UNUSUAL_TENSOR, f"{source} is a nested tensor of other than plain tensors")
    return NestedValue(type(real), rows, offsets, lengths, ragged, cache, source, real)


def by_rows(tx: Context, call: Operation) -> Value | None:
    """What torch's class makes of an operation on nested tensors."""
    own = jagged.DIFFERENTIABLE.get(call.function) if isinstance(call.function, _OPERATOR_KINDS) else None
    if own is None and not tx.tensors.has_nested:
        return None
    found = list(tensors_in(tx, [*call.args, *call.kwargs.values()]))
    if own is not None and torch.is_grad_enabled() and any(one.meta.requires_grad for one in found):
        if own is jagged.unpadded and len(call.args) < 3:
            raise GraphBreak(
                DISPATCH_IN_PYTHON, "a padded tensor is made nested, of a number of rows that data tell"
            )
        return tx.inliner.call_function(Const(own), call.args, call.kwargs)
    if any(isinstance(one, NestedValue) for one in found):
        return ReachedOperators(tx, _dispatched).run(call.function, call.args, call.kwargs)
    return None


def _dispatched(tx: Context, func: OpOverload, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What torch's class makes of an operator that has reached it."""
    if func._schema.is_mutable:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} writes to a nested tensor")
    if func in (torch.ops.aten._nested_get_values.default, torch.ops.aten.values.default):
        owner = args[0]
        assert isinstance(owner, NestedValue)
        return owner.rows
    if func is torch.ops.aten._to_copy.default:
        return _copied(tx, func, args[0], kwargs)
    found = import_module(_OPERATORS).JAGGED_OPS_TABLE.get(func)  # eager loads it with its first operation
    if found is not None:
        return Const(found).call(tx, args, kwargs)
    if torch.Tag.pointwise in func.tags:
        return _of_each_element(tx, func, args, kwargs)
    raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} on a nested tensor")


def _copied(tx: Context, func: OpOverload, owner: Value, kwargs: dict[str, Value]) -> Value:
    """``nested.to(...)`` on the device where it is: of the rows, whose places stay the same."""
    assert isinstance(owner, NestedValue)
    device = kwargs.get("device", NONE)
    if not is_none(device) and torch.device(tx.constant(device)) != owner.rows.meta.spec.device:
        raise GraphBreak(DISPATCH_IN_PYTHON, "a nested tensor is moved to another device")
    options = {name: value for name, value in kwargs.items() if name != "layout"}
    rows = tx.tensors.call_function(func, [owner.rows], options)
    return new_nested(tx, rows, owner.offsets, owner.lengths, Const(owner.ragged), owner.cache)


def _of_each_element(tx: Context, func: OpOverload, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """An operator that computes each element by itself: of the rows."""
    first, *more = (arg for arg in args if isinstance(arg, NestedValue))
    tensors = tensors_of(args)
    for other in more:
        if other.ragged != first.ragged or not tx.operators.same(other.origin, first.origin):
            raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} of nested tensors whose rows begin elsewhere")
    if len(tensors) > 2:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{func} on nested tensors")
    most = first.rows.meta.spec.rank - 1
    given = [arg.rows if isinstance(arg, NestedValue) else _beside(tx, func, arg, most) for arg in args]
    found = tx.tensors.call_function(func, given, kwargs)
    return new_nested(tx, found, first.offsets, first.lengths, Const(first.ragged), first.cache)


def _beside(tx: Context, func: OpOverload, arg: Value, most: int) -> Value:
    """A plain tensor that is the same for each row."""
    while isinstance(arg, TensorValue) and arg.meta.spec.rank and arg.meta.spec.sizes[0] == 1:
        arg = arg.call_method(tx, "squeeze", [Const(0)], {})
    if isinstance(arg, TensorValue) and arg.meta.spec.rank > most:
        raise GraphBreak(
            DISPATCH_IN_PYTHON, f"{func} of a nested tensor and one of {arg.meta.spec.rank} dimensions"
        )
    return arg


def method(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """``nested.name(...)``."""
    if not isinstance(owner, NestedValue):
        return None
    if name == "values":
        return owner.rows
    if name in ("size", "dim", "ndimension", "stride", "numel", "storage_offset", "data_ptr"):
        return _form(tx, owner, name, args, kwargs)
    if name in _QUESTIONS:
        return owner.rows.call_method(tx, name, args, kwargs)
    if is_found(tx, owner, name):
        return owner.get_attr(tx, name).call(tx, args, kwargs)
    function = getattr(torch.Tensor, name, None)
    if function is None:
        return None
    return tx.tensors.operation("call_method", name, function, [owner, *args], kwargs)


def _form(tx: Context, owner: NestedValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    sizes = owner.sizes()
    if name in ("dim", "ndimension"):
        return Const(len(sizes))
    if name != "size":
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{name}() of a nested tensor")
    dim = args[0] if args else kwargs.get("dim", NONE)
    if is_none(dim):
        return TupleValue(sizes, torch.Size)
    return TupleValue(sizes, torch.Size).get_item(tx, dim)


def attribute(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """``nested.name``."""
    if not isinstance(owner, NestedValue):
        return None
    match name:
        case "_values":
            return owner.rows
        case "_offsets":
            return owner.offsets
        case "_lengths":
            return owner.lengths
        case "_ragged_idx":
            return Const(owner.ragged)
        case "_metadata_cache":
            return owner.cache
        case "_size":
            return TupleValue(owner.sizes())
        case "shape":
            return TupleValue(owner.sizes(), torch.Size)
        case "ndim":
            return Const(len(owner.sizes()))
        case "layout":
            return Const(torch.jagged)
        case "is_nested":
            return TRUE
        case "requires_grad" if owner.source is not None and owner.real is not None:
            source = TensorAttributeSource(owner.source, "requires_grad")
            return tx.wrap(source.step(owner.real), source)
        case "_strides" | "data" | "grad" | "_base" | "T" | "mT" | "H" | "mH":
            raise GraphBreak(DISPATCH_IN_PYTHON, f"{name} of a nested tensor")
        case _ if name in _BY_ROWS:
            return owner.rows.get_attr(tx, name)
    return None


def set_attribute(tx: Context, owner: TensorValue, name: str, value: Value) -> bool:
    """``nested.name = value`` ends the graph."""
    if isinstance(owner, NestedValue):
        raise GraphBreak(DISPATCH_IN_PYTHON, f"the attribute {name!r} of a nested tensor is set")
    return False


def new_nested(
    tx: Context,
    rows: Value,
    offsets: Value,
    lengths: Value = NONE,
    ragged: Value | None = None,
    cache: Value = NONE,
) -> NestedValue:
    """A new nested tensor."""
    _meet(
        tx,
    )
    rows, offsets, lengths, cache = (tx.force(value) for value in (rows, offsets, lengths, cache))
    is_plain = type(rows) is TensorValue and type(offsets) is TensorValue
    if not is_plain or not (is_none(lengths) or type(lengths) is TensorValue):
        raise GraphBreak(C_OBJECT_MADE, "a nested tensor is made of other than plain tensors")
    assert isinstance(rows, TensorValue)
    assert isinstance(offsets, TensorValue)
    if offsets.meta.spec.rank != 1 or offsets.meta.spec.device != rows.meta.spec.device:
        raise GraphBreak(C_OBJECT_MADE, "a nested tensor is made with offsets of another form or device")
    if not isinstance(cache, DictValue) or not cache.length(tx):
        cache = DictValue({})
    place = 1 if ragged is None else tx.constant(ragged)
    return NestedValue(NestedTensor, rows, offsets, lengths, place, cache)
