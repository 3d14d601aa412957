"""Attributes of tensors: metadata is known, the rest is an operation or stored on the object."""

from __future__ import annotations

import inspect
import types
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.break_kinds import (
    AUTOGRAD_STATE,
    DESCRIPTOR,
    HOOKED_TENSOR,
    OBJECT_OPERATION,
    OTHER_INTERPRETER,
)
from dynamo_capture.foundation.class_members import CLASS_OF_OBJECTS, has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.semantics.tensors.not_operations import check_is_known
from dynamo_capture.semantics.tensors.replaced_data import set_data
from dynamo_capture.semantics.tensors.torchs_members import is_torchs, overrides
from dynamo_capture.sources.sources import TensorAttributeSource
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    MethodValue,
    TensorValue,
    TupleValue,
    Value,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, Source

_OF_AUTOGRAD = frozenset({"requires_grad", "is_leaf", "grad", "grad_fn", "_grad_fn", "retains_grad"})
_OF_EVERY_OBJECT = frozenset(
    (
        *dir(object),
        "__torch_function__",
        "__deepcopy__",
        "__setstate__",
        "__dict__",
        "__module__",
        "__weakref__",
    )
) - {"__getattribute__", "__setattr__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}


@once_per_class
def redefines(kind: type) -> bool:
    """Whether a class has members of its own under names of torch's, which a compiled program would come to."""
    of_torch = {torch.nn.Parameter, torch.nn.Buffer, *torch.nn.Parameter.__mro__}
    own = {name for base in kind.__mro__ if base not in of_torch for name in vars(base)}
    return any(hasattr(torch.Tensor, name) for name in own - _OF_EVERY_OBJECT)


def check_reads(tx: Context, cls: type) -> None:
    """A graph break for tensors of a class that watches each read of an attribute, or says itself what class they
    have: torch reads many, in C and in Python, whatever is done with them. Or of one with a finalizer, which also runs
    for results of operations that nothing uses."""
    in_class = tx.attributes.in_class
    if isinstance(in_class(cls, "__getattribute__"), types.FunctionType):
        raise GraphBreak(
            DESCRIPTOR, f"a tensor of the class {cls.__qualname__} is asked for attributes, each"
        )
    if in_class(cls, "__class__") is not CLASS_OF_OBJECTS:
        raise GraphBreak(
            DESCRIPTOR, f"a tensor of the class {cls.__qualname__} says itself what class it has"
        )
    if in_class(cls, "__del__") is not fx_guards.ABSENT:
        raise GraphBreak(DESCRIPTOR, f"a tensor of the class {cls.__qualname__} has a finalizer")


def attribute(tx: Context, owner: TensorValue, name: str) -> Value:
    """What torch gives each tensor under a name, or what is kept on this one."""
    if owner.attrs is not None and name in owner.attrs:
        return owner.attrs[name]
    tx.attributes.in_class(torch.Tensor, name)
    spec = owner.meta.spec
    _check_followed(tx, owner, name)
    match name:
        case "shape":
            return TupleValue([size_value(n) for n in spec.sizes], torch.Size)
        case "dtype":
            return Const(spec.dtype)
        case "device":
            return Const(torch.device(spec.device))  # an object of its own for each question
        case "requires_grad":
            return Const(owner.meta.requires_grad)
        case "ndim":
            return Const(len(spec.sizes))
        case "nbytes":
            return tx.operators.binary(
                "*", tx.tensors.plain_method(owner, "numel", [], {}), Const(spec.dtype.itemsize)
            )
        case "_has_symbolic_sizes_strides":
            return Const(False)
        case "is_leaf":
            return Const(_is_leaf(tx, owner))
        case "__class__":
            return Const(owner.meta.cls)
        case "__dict__":
            raise GraphBreak(DESCRIPTOR, "the dictionary of a tensor is asked for")
        case "grad":
            return _grad(tx, owner)
        case "grad_fn" | "_grad_fn" if not owner.meta.requires_grad or _is_leaf(tx, owner):
            return NONE
        case "grad_fn" | "_grad_fn" | "_version" | "_base" | "output_nr":
            # The node is to be the operation's, not that of a graph that holds it.
            made_here = owner.real is None and name in ("grad_fn", "_grad_fn", "output_nr")
            raise GraphBreak(
                AUTOGRAD_STATE, f"the autograd state {name!r} of a tensor is asked for", as_written=made_here
            )
        case "_backward_hooks" | "_post_accumulate_grad_hooks" if tx.effects.hooks:
            raise GraphBreak(HOOKED_TENSOR, "a tensor's hooks are asked for after one was registered")
        case "retains_grad" | "_backward_hooks" if owner.real is not None and owner.source is not None:
            source = _fact(tx, owner, name)
            return tx.wrap(source.step(owner.real), source)
        case "grad_dtype" if not _is_leaf(tx, owner):
            raise GraphBreak(AUTOGRAD_STATE, "what dtype the gradient of a result is to have is asked")
        case "grad_dtype" if owner.real is not None and owner.source is not None:
            source = _fact(tx, owner, name)
            return tx.wrap(source.step(owner.real), source)
    found = fx_guards.class_lookup(owner.meta.cls, name)
    if isinstance(found, (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _instance_attribute(tx, owner, name) if has_itself(owner, name) else BuiltinMethod(owner, name)
    if found is fx_guards.ABSENT:
        return _instance_attribute(tx, owner, name)
    if isinstance(found, (property, types.GetSetDescriptorType)):
        check_is_known(name)
        return tx.tensors.operation("call_function", getattr, getattr, [owner, Const(name)], {})
    return Const(owner.meta.cls).get_attr(tx, name)


def _check_followed(tx: Context, owner: TensorValue, name: str) -> None:
    """A graph break where the answer about a result depends on which transform around the function follows it."""
    if tx.levels and name in _OF_AUTOGRAD and owner.meta.requires_grad and owner.real is None:
        what = f"{name!r} of a result is asked for, which follows from the transforms around"
        raise GraphBreak(OTHER_INTERPRETER, what)


def _is_leaf(tx: Context, owner: TensorValue) -> bool:
    """Whether a tensor is no result, in autograd's eyes: guarded, where an existing one may become one."""
    if owner.real is not None and owner.source is not None:
        with torch._C.DisableTorchFunctionSubclass():
            requires_grad, is_leaf = owner.real.requires_grad, owner.real.is_leaf
        if requires_grad:
            tx.guards.equals(_fact(tx, owner, "is_leaf"), is_leaf)
    return owner.meta.is_leaf


def is_own(tx: Context, cls: type, name: str) -> bool:
    """Whether the program, not torch, defines the attribute: in a class of its own, or in one of torch's."""
    found = tx.attributes.in_class(cls, name)
    if cls in PLAIN_CLASSES:
        return not is_torchs(cls, name, found)
    owner = next((base for base in cls.__mro__ if name in base.__dict__), None)
    if owner is None or owner is object:
        return False
    return owner not in torch.Tensor.__mro__ or not is_torchs(torch.Tensor, name, found)


def reads_own(tx: Context, cls: type, name: str) -> bool:
    """Whether torch's method of this name, written in Python, asks for attributes that a class of the program
    defines."""
    return function_reads_own(tx, cls, getattr(torch.Tensor, name, None))


def function_reads_own(tx: Context, cls: type, function: Any) -> bool:
    """Whether a function of torch, written in Python, asks for attributes that a class of the program defines."""
    if cls in PLAIN_CLASSES or not redefines(cls):
        return False
    plain = inspect.unwrap(function)
    return isinstance(plain, types.FunctionType) and any(
        is_own(tx, cls, read) for read in plain.__code__.co_names
    )


def check_special(tx: Context, value: Value, *names: str) -> None:
    """Python asks the class of a tensor first what an operator or a builtin function means."""
    cls = value.meta.cls if isinstance(value, TensorValue) else torch.Tensor
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return
    for name in names:
        if is_own(tx, cls, name) or reads_own(tx, cls, name):
            raise GraphBreak(OBJECT_OPERATION, f"{name} of {cls.__name__}, a class of tensors")


def own_attribute(tx: Context, owner: TensorValue, name: str) -> Value:
    cls = owner.meta.cls
    found = tx.attributes.in_class(cls, name)
    if not has_member(type(found), "__set__") and owner.real is not None:
        if name in fx_guards.instance_dict(owner.real):
            return _instance_attribute(tx, owner, name)
        if owner.source is not None:
            tx.guards.absent(InstanceDictSource(owner.source), name)
    if found is fx_guards.ABSENT:
        return _instance_attribute(tx, owner, name)
    if isinstance(found, (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
        return MethodValue(Const(found), owner)
    if type(found) is classmethod:  # a metaclass may have another one of the name
        return MethodValue(tx.known(found.__func__), Const(cls))
    if type(found) is staticmethod:
        return tx.known(found.__func__)
    if type(found) is property and found.fget is not None:
        return tx.calls.call_known(Const(found.fget), [owner], {})
    if isinstance(found, types.MemberDescriptorType):
        return _slot(tx, owner, name, found)
    if has_member(type(found), "__set__"):
        raise GraphBreak(DESCRIPTOR, f"the descriptor {name} of a tensor subclass")
    return Const(cls).get_attr(tx, name)


def _slot(tx: Context, owner: TensorValue, name: str, found: types.MemberDescriptorType) -> Value:
    if owner.real is None or owner.source is None:
        raise GraphBreak(DESCRIPTOR, f"the slot {name} of a tensor subclass")
    try:
        real = found.__get__(owner.real)
    except AttributeError:
        tx.guards.add(fx_guards.AttributeAbsent(owner.source, name))
        raise tx.raises(AttributeError, name) from None
    return tx.wrap(real, AttrSource(owner.source, name))


def has_itself(owner: TensorValue, name: str) -> bool:
    """Whether an existing tensor has an attribute of this name of its own, which goes before a method."""
    return owner.real is not None and name in (fx_guards.instance_dict(owner.real) or ())


def _instance_attribute(tx: Context, owner: TensorValue, name: str) -> Value:
    if owner.real is not None and owner.source is not None:
        space = tx.wrapping.value_of(fx_guards.instance_dict(owner.real))
        if space is not None and tx.effects.has_changed(space):
            raise GraphBreak(
                DESCRIPTOR, "an attribute of a tensor is read, whose dictionary has been changed"
            )
        if name in fx_guards.instance_dict(owner.real):
            return tx.wrap(
                fx_guards.instance_dict(owner.real)[name], ItemSource(InstanceDictSource(owner.source), name)
            )
        tx.guards.absent(InstanceDictSource(owner.source), name)
    fallback = tx.attributes.in_class(owner.meta.cls, "__getattr__")
    if isinstance(fallback, types.FunctionType):
        return tx.inliner.call_function(Const(fallback), [owner, Const(name)], {})
    raise tx.raises(AttributeError, f"{owner.meta.cls.__name__!r} object has no attribute {name!r}")


def _grad(tx: Context, owner: TensorValue) -> Value:
    if _warns_of_grad(tx, owner):
        raise GraphBreak(AUTOGRAD_STATE, "`grad` of a result is asked for, of which torch warns")
    if owner.real is not None and owner.source is not None and overrides(owner.meta.cls):
        source = TensorAttributeSource(owner.source, "grad")
        return tx.wrap(source.step(owner.real), source)
    if owner.real is None or owner.source is None:
        if not owner.meta.requires_grad or _is_leaf(tx, owner):
            return NONE
        raise GraphBreak(AUTOGRAD_STATE, "`grad` of an intermediate tensor is asked for")
    return tx.wrap(owner.real.grad, plain_attribute(tx, owner.source, "grad"))


def _warns_of_grad(tx: Context, owner: TensorValue) -> bool:
    """Whether each look at the gradient of this existing tensor warns, a guard's too."""
    real = owner.real
    if real is None or owner.source is None or isinstance(real, torch.nn.Parameter):
        return False
    with torch._C.DisableTorchFunctionSubclass():
        if _is_leaf(tx, owner):
            return False
        if real.retains_grad:
            tx.guards.equals(_fact(tx, owner, "retains_grad"), True)
        return not real.retains_grad


def set_attribute(tx: Context, owner: TensorValue, name: str, value: Value) -> None:
    """``tensor.name = value``, of which neither class nor mode is asked."""
    if name == "requires_grad" and isinstance(value, Const):
        tx.tensors.call_method(owner, "requires_grad_", [value], {})
        return
    if name == "data" and tx.force(value) is owner:  # ``module.to(dtype)`` that has nothing to do
        return
    if name == "data":
        set_data(tx, owner, value)
        return
    is_grad = name == "grad" and _is_leaf(tx, owner) and _may_be_grad(owner, tx.force(value))
    if not is_grad and has_member(owner.meta.cls, name):
        raise GraphBreak(AUTOGRAD_STATE, f"the attribute {name!r} of a tensor is set")
    if owner.attrs is None:
        owner.attrs = {}
    owner.attrs[name] = value
    tx.effects.tensor_attribute(owner, name)


def plain_attribute(tx: Context, source: Source, name: str) -> Source:
    """Where an attribute of a tensor is read of which the tensor's class makes nothing. Modes are not asked."""
    return (TensorAttributeSource if tx.tensors.modes.around else AttrSource)(source, name)


def _fact(tx: Context, owner: TensorValue, name: str) -> Source:
    """Where an attribute that torch gives an existing tensor is read, whatever the tensor's class makes of it."""
    assert owner.source is not None
    plain = owner.meta.cls in (torch.Tensor, torch.nn.Parameter)
    return plain_attribute(tx, owner.source, name) if plain else TensorAttributeSource(owner.source, name)


def _may_be_grad(owner: TensorValue, value: Value) -> bool:
    """Whether a leaf surely takes ``value`` as its gradient, so that this can be done after the graph."""
    if (owner.real is None or owner.source is None) and owner.meta.requires_grad:
        return False
    if isinstance(value, Const):
        return value.value is None
    if not isinstance(value, TensorValue):
        return False
    one, other = owner.meta.spec, value.meta.spec
    alike = (one.sizes, one.dtype, one.device) == (other.sizes, other.dtype, other.device)
    return alike and not value.meta.requires_grad and value.meta.cls is torch.Tensor
