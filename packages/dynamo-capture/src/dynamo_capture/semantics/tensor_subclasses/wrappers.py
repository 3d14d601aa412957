"""Tensors that dispatch in Python, as the trace sees them: existing ones, their attributes, operations on them."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch._ops import OpOverload

import fx_guards
from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON, SUBCLASS_TAKES_OVER
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.distributed_tensors import is_distributed, is_waiting
from dynamo_capture.graph.region_body import Body
from dynamo_capture.semantics.attributes.lookup import ABSENT
from dynamo_capture.semantics.modes.modes import set_grad
from dynamo_capture.semantics.tensor_subclasses.dispatch_decomposition import TakenApart
from dynamo_capture.semantics.tensor_subclasses.distributed import property_of, read_distributed
from dynamo_capture.semantics.tensor_subclasses.subclass_region import Stretch
from dynamo_capture.semantics.tensors.attributes import is_own, own_attribute
from dynamo_capture.semantics.tensors.inputs import is_of_torch
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.values import Const, Lazy, SequenceValue, TensorMeta, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.wrapper import WrapperValue, dispatches
from fx_interface.source import InstanceDictSource, Source
from fx_interface.tensor_spec import TensorSpec
from fx_interface.torch_internals.dispatch_mode import DispatchMode

_KEYS = torch._C.DispatchKeySet
_FORBIDDEN = frozenset({"__dict__", "__weakref__"})
_READERS = frozenset({"item", "tolist", "__float__", "__int__", "__index__", "__bool__", "is_nonzero"})
_IN_DISPATCH = ("__torch_dispatch__", "__getattribute__", "__getattr__", "__setattr__")


def existing(tx: Context, real: torch.Tensor, source: Source) -> WrapperValue | None:
    """An existing tensor whose class dispatches, and is none of torch's machinery."""
    kind = type(real)
    if not dispatches(kind) or (is_of_torch(kind) and not (is_distributed(kind) or is_waiting(kind))):
        return None
    refusal = _refusal(real)
    if refusal is not None:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{source}, a {kind.__name__}, {refusal}")
    for name in _IN_DISPATCH:
        tx.attributes.in_class(kind, name)
    sizes, strides, dynamic = tx.policy.sizes_of(tx, real, source)
    spec = TensorSpec(sizes, strides, real.dtype, real.device)
    meta = TensorMeta.of(spec, real.requires_grad, real.is_leaf, kind, real.is_inference())
    tx.guards.add(
        fx_guards.tensor_match(
            source, real, dynamic_sizes=dynamic[0], dynamic_strides=dynamic[1], where=tx.where()
        )
    )
    made = WrapperValue(meta, source, real)
    if is_distributed(kind):
        read_distributed(tx, made, real, source)
    return made


def by_dispatch(tx: Context, call: Operation) -> Value | None:
    """What classes that dispatch in Python make of an operation on their tensors."""
    found = list(tensors_in(tx, [*call.args, *call.kwargs.values()]))
    if any(type(tensor) is WrapperValue for tensor in found):
        return _taken_apart(tx, call.function, found, call.args, call.kwargs)
    if tx.tensors.below and torch.is_grad_enabled() and any(tensor.meta.requires_grad for tensor in found):
        set_grad(tx, False)
        try:
            return tx.tensors.plain(call)
        finally:
            set_grad(tx, True)
    return None


def by_library(
    tx: Context, function: Callable[..., Any], args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """A function in Python of torch's about tensors whose operators torch takes apart."""
    return _taken_apart(tx, function, list(tensors_in(tx, [*args, *kwargs.values()])), args, kwargs)


def tensors_in(tx: Context, values: Iterable[Value]) -> Iterable[TensorValue]:
    """The tensors in values, and in structures of them."""
    for value in values:
        if type(value) is Lazy:
            value = tx.force(value)
        if isinstance(value, TensorValue):
            yield value
        elif isinstance(value, SequenceValue):
            yield from tensors_in(tx, value.kinds)
        elif not isinstance(value, Const):
            yield from tensors_in(tx, value.parts(tx) or ())


def _taken_apart(
    tx: Context,
    function: Callable[..., Any],
    tensors: list[TensorValue],
    args: list[Value],
    kwargs: dict[str, Value],
) -> Value:
    name = getattr(function, "__name__", "an operation")
    if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{name} on a tensor that dispatches in Python under autocast")
    if tx.levels:
        text = f"{name} on a tensor that dispatches in Python in a transform of torch.func"
        raise GraphBreak(DISPATCH_IN_PYTHON, text)
    output = tx.output
    while isinstance(output, Body) and not tx.tensors.below:
        if not output.may_dispatch:  # it may be differentiated, one level too low
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"{name} on a tensor that dispatches in Python inside of a region"
            )
        output.once = True
        output = output.parent
    followed = torch.is_grad_enabled() and any(tensor.meta.requires_grad for tensor in tensors)
    if followed and name != "detach":
        if tx.tensors.stretch is None:
            tx.tensors.stretch = Stretch(tx)
        stretch: Stretch = tx.tensors.stretch
        return stretch.run(function, name, tensors, args, kwargs)
    return TakenApart(tx).run(function, args, kwargs)


def method(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """``tensor.name(...)``, of a tensor that dispatches and has a method of its own."""
    if type(owner) is not WrapperValue:
        return None
    if is_found(tx, owner, name):
        return owner.get_attr(tx, name).call(tx, args, kwargs)
    if name in _READERS:
        tx.tensors.number(owner, f"`{name}()` reads the tensor's content")
    return None


def attribute(tx: Context, owner: TensorValue, name: str) -> Value | None:
    """``tensor.name``, of a tensor that dispatches, where the program says what that is."""
    if type(owner) is not WrapperValue or name in (owner.attrs or ()):
        return None
    if name in _FORBIDDEN:
        raise GraphBreak(DISPATCH_IN_PYTHON, f"{name} of a tensor that dispatches in Python")
    if is_distributed(owner.meta.cls):
        answer = property_of(tx, owner, name)
        if answer is not None:
            return answer
    if is_found(tx, owner, name):
        return own_attribute(tx, owner, name)
    if not hasattr(torch.Tensor, name):
        fallback = tx.attributes.in_class(owner.meta.cls, "__getattr__")
        if fallback is not ABSENT:
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"__getattr__ of {owner.meta.cls.__name__}, a class of tensors"
            )
    return None


def is_found(tx: Context, owner: TensorValue, name: str) -> bool:
    """Whether the program says what is under the name: on the object or in its class."""
    if name in (owner.attrs or ()) or is_own(tx, owner.meta.cls, name):
        return True
    found = getattr(torch.Tensor, name, None)
    if owner.real is None or isinstance(found, (property, types.GetSetDescriptorType)):
        return False
    if name in fx_guards.instance_dict(owner.real):
        return True
    if owner.source is not None and found is not None:
        tx.guards.absent(InstanceDictSource(owner.source), name)
    return False


def set_attribute(tx: Context, owner: TensorValue, name: str, value: Value) -> bool:
    """``tensor.name = value``, of a tensor that dispatches; whether this did it."""
    if type(owner) is not WrapperValue:
        return False
    found = tx.attributes.in_class(owner.meta.cls, name)
    setter = tx.attributes.in_class(owner.meta.cls, "__setattr__")
    is_slot = isinstance(found, types.MemberDescriptorType)
    if isinstance(setter, types.FunctionType) or (has_member(type(found), "__set__") and not is_slot):
        if hasattr(torch.Tensor, name) and not isinstance(setter, types.FunctionType):
            return False
        raise GraphBreak(SUBCLASS_TAKES_OVER, f"the attribute {name!r} of a tensor subclass is set")
    if owner.attrs is None:
        owner.attrs = {}
    owner.attrs[name] = value
    if owner.source is not None:
        tx.effects.tensor_attribute(owner, name)
    return True


class _Asked(DispatchMode):
    """Tells whether reading a tensor's form runs code of its class."""

    def dispatch(self, func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        raise _AsksItsClass


class _AsksItsClass(Exception):
    """A tensor's form is what its class says."""


def _refusal(real: torch.Tensor) -> str | None:
    """Why the trace cannot take a tensor for one whose operations end in its class, and nowhere else."""
    keys = torch._C._dispatch_keys(real)
    try:
        with _Asked():
            form = (real.shape, real.stride(), real.storage_offset(), real.layout, real.device)
    except _AsksItsClass:
        return "asks its class for its form"
    except RuntimeError as error:
        return f"has no strides: {error}"
    if form[3] is not torch.strided:
        return "is not strided"
    plain = torch._C._dispatch_keys(torch.empty(0, device=real.device, dtype=real.dtype))
    more = keys - plain - _KEYS(torch._C.DispatchKey.Python) - _KEYS(torch._C.DispatchKey.PythonTLSSnapshot)
    if str(more) != str(keys - keys):  # the bit of the device stays
        return f"has dispatch keys of its own: {more}"
    if not isinstance(type(real).__torch_dispatch__, types.MethodType):
        return "has a __torch_dispatch__ that is not written in Python"
    return None
