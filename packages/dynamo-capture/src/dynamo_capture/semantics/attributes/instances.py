"""Reading attributes of objects of the program's classes, in Python's own order."""

from __future__ import annotations

import functools
import types
from typing import Any

import torch

import fx_guards
from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation.break_kinds import AUTOGRAD_FUNCTION, DESCRIPTOR
from dynamo_capture.foundation.class_members import CLASS_OF_OBJECTS, runs_program
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.runtime.replacement_calls import C_SLOTS
from dynamo_capture.semantics.attributes.lookup import (
    ABSENT,
    C_METHODS,
    MODULE_GETATTR,
    NAMED_FIELD,
    Lookup,
    Missing,
    field_index,
    goes_first,
    has_dict,
    has_guardable_dict,
    instance_dict_of,
    is_property,
    refuse_property,
)
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    Lazy,
    MethodValue,
    ObjectValue,
    PartialValue,
    TupleValue,
    Value,
    boolean,
)
from dynamo_capture.values.objects import exception_fields
from dynamo_capture.values.objects.instance_dict import InstanceDictValue
from fx_interface.source import AttrSource, ItemSource

_INSTANCE_METHOD = type(vars(torch._C.Graph)["nodes"])


_NODE = torch._C._FunctionBase
"""The class in C of custom functions, whose attributes are there from the start."""
_UNPACKING = frozenset({"saved_tensors", "saved_variables"})
"""Attributes of nodes of autograd's graph that run the program's hooks on saved tensors each time they are read."""


def _unpacks(found: Any, name: str) -> bool:
    """Whether reading a slot of a node of autograd's graph unpacks what is saved there."""
    if found.__objclass__ is _NODE:
        return name in _UNPACKING
    return name.startswith(("_saved", "_raw_saved")) and issubclass(
        found.__objclass__, torch.autograd.graph.Node
    )


class InstanceAttributes(Lookup):
    """``obj.name``: what was written, properties and descriptors, ``__dict__``, the class, ``__getattr__``."""

    def of_object(self, obj: ObjectValue, name: str) -> Value:
        """``obj.name``."""
        if not obj.type_guarded:
            self.guard_type(obj)
        custom = self.in_class(obj.cls, "__getattribute__")
        if isinstance(custom, types.FunctionType):
            try:
                return self._tx.inliner.call_function(Const(custom), [obj, Const(name)], {})
            except UserRaise as raised:
                return self._by_getattr(obj, name, raised)
        written = obj.attrs.get(name, ABSENT) if obj.attrs else ABSENT
        if written is not ABSENT and written is not None and not self.is_computed(obj.cls, name):
            return self._tx.force(written)
        read = obj.read(name)
        if read is not None and written is ABSENT:
            if type(read) is MethodValue and read.source is None:  # each access makes another one
                return MethodValue(read.function, read.receiver)
            return read
        return self.generic(obj, name, deleted=written is None)

    def _watches(self, cls: type) -> bool:
        """Whether each read of an attribute, by a guard too, would run code of the program."""
        return isinstance(self.in_class(cls, "__getattribute__"), types.FunctionType)

    def keeps_dict(self, cls: type) -> bool:
        """Whether no code of the program runs where a method reads ``self.__dict__``."""
        return not self._watches(cls) and isinstance(self.in_class(cls, "__dict__"), C_SLOTS)

    def is_computed(self, cls: type, name: str) -> bool:
        """Whether the class has a data descriptor with a getter under the name, and not the slot that is written."""
        found = self.in_class(cls, name)
        return found is not ABSENT and goes_first(found) and not isinstance(found, C_SLOTS)

    def _by_getattr(self, obj: ObjectValue, name: str, raised: UserRaise) -> Value:
        """An AttributeError of a getter makes Python ask ``__getattr__``."""
        fallback = self.in_class(obj.cls, "__getattr__")
        if not issubclass(raised.value.python_type(), AttributeError) or not isinstance(
            fallback, types.FunctionType
        ):
            try:
                raise raised
            finally:
                del raised  # its traceback leads to this frame
        return self._tx.inliner.call_function(Const(fallback), [obj, Const(name)], {})

    def generic(self, obj: ObjectValue, name: str, deleted: bool = False) -> Value:
        """``object.__getattribute__(obj, name)``, then ``__getattr__``."""
        try:
            return self.plain_lookup(obj, name, deleted)
        except Missing as missing:
            text = missing.text(obj.cls, name)
        except UserRaise as raised:
            return self._by_getattr(obj, name, raised)
        fallback = self.in_class(obj.cls, "__getattr__")
        if fallback is ABSENT:
            raise self._tx.raises(AttributeError, text)
        if fallback is MODULE_GETATTR and self.keeps_dict(obj.cls):
            found = self.of_module(obj, name)
            if found is not None:
                return found
        return Const(fallback).call(self._tx, [obj, Const(name)], {})

    def without_getattr(self, obj: ObjectValue, name: str) -> Value:
        """``object.__getattribute__(obj, name)``."""
        try:
            return self.plain_lookup(obj, name, name in obj.attrs and obj.attrs[name] is None)
        except Missing as missing:
            raise self._tx.raises(AttributeError, missing.text(obj.cls, name)) from None

    def plain_lookup(self, obj: ObjectValue, name: str, deleted: bool) -> Value:
        cls = obj.cls
        written = obj.attrs.get(name)
        if written is not None and not self.is_computed(cls, name):
            return self._tx.force(written)
        found = self.in_class(cls, name)
        if name == "__class__" and found is CLASS_OF_OBJECTS:
            return Const(cls)
        if name == "__dict__" and (found is ABSENT or isinstance(found, C_SLOTS)):
            if not has_dict(cls):
                raise Missing
            return InstanceDictValue(obj)
        if found is not ABSENT and goes_first(found):
            return self._data_descriptor(obj, name, found)
        if not deleted and obj.real is not None:
            space = instance_dict_of(obj.real)
            if space is not None and name in space:
                place = obj.space
                if place is not None and self.compared == (obj, name) and type(space[name]) is torch.Tensor:
                    self._tx.guards.type_is(ItemSource(place, name), torch.Tensor)
                    return Lazy(space[name], ItemSource(place, name))  # of whatever form
                made = (
                    self._tx.wrap(space[name], ItemSource(place, name))
                    if place is not None
                    else self._tx.known(space[name])
                )
                obj.reads[name] = made
                return made
        if not deleted and has_guardable_dict(obj):
            place = obj.space
            assert place is not None
            self._tx.guards.absent(place, name)
        if found is ABSENT:
            raise Missing
        made = self._bind(found, obj, cls, name)
        if type(made) is MethodValue:
            obj.reads[name] = made
        return made

    def of_class_of(self, obj: ObjectValue, name: str) -> Value:
        """What the class has under a name, bound to the object, as Python looks up special methods: past what the
        object has itself, ``__getattribute__`` and ``__getattr__``."""
        found = self.in_class(obj.cls, name)
        if goes_first(found):
            return self._data_descriptor(obj, name, found)
        if self.in_class(type(found), "__get__") is ABSENT:
            return self.class_value(found, obj.cls, name, None)
        return self._bind(found, obj, obj.cls, name)

    def _data_descriptor(self, obj: ObjectValue, name: str, found: Any) -> Value:
        tx = self._tx
        if is_property(found):
            if found.fget is None:
                raise refuse_property(tx, found, obj.cls, "__get__")
            return tx.calls.call_known(Const(found.fget), [obj], {})
        if isinstance(found, C_SLOTS):
            in_slot = isinstance(found, types.MemberDescriptorType)
            if issubclass(obj.cls, BaseException) and (name in exception_fields.OF_ALL or obj.real is None):
                return self.of_exception(obj, name)
            if isinstance(obj.base, PartialValue) and found is vars(functools.partial).get(name):
                return obj.base.get_attr(tx, name)
            if obj.real is None:
                if found.__objclass__ is _NODE:
                    raise GraphBreak(
                        DESCRIPTOR, f"{name} of an instance of {obj.cls.__name__} that is made here"
                    )
                raise Missing(in_slot)
            if obj.attrs.get(name, ABSENT) is None:
                raise Missing(in_slot)
            if _unpacks(found, name):
                raise GraphBreak(AUTOGRAD_FUNCTION, f"{name!r} of a node of autograd's graph is read")
            if self._watches(obj.cls):
                raise GraphBreak(
                    DESCRIPTOR, f"the slot {name} of {obj.cls.__name__}, whose reads are watched"
                )
            try:
                real = found.__get__(obj.real)
            except AttributeError:
                if obj.source is not None:
                    tx.guards.add(fx_guards.AttributeAbsent(obj.source, name))
                raise Missing(in_slot) from None
            except Exception as error:  # what the object holds decides, in C++: Python reads it
                text = f"{name} of {obj.cls.__name__}, whose getter raises {type(error).__name__}"
                raise GraphBreak(DESCRIPTOR, text) from None
            made = tx.wrap(real, AttrSource(obj.source, name)) if obj.source is not None else tx.known(real)
            obj.reads[name] = made
            return made
        if isinstance(found, NAMED_FIELD) and isinstance(obj.base, TupleValue):
            return obj.base.item(tx, field_index(found))
        getter = self.in_class(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), obj, Const(obj.cls)], {})
        raise GraphBreak(DESCRIPTOR, f"the descriptor {type(found).__name__} of {obj.cls.__name__}.{name}")

    def of_exception(self, obj: ObjectValue, name: str) -> Value:
        """What every exception has in a place of its own."""
        if name in obj.attrs:
            return obj.attrs[name] or NONE
        if obj.real is not None and obj.source is not None:
            if runs_program(obj.cls):
                raise GraphBreak(DESCRIPTOR, f"what {obj.source} is asked, code of the program answers")
            return self._tx.wrap(getattr(obj.real, name), AttrSource(obj.source, name))
        if name in exception_fields.OF_ALL:
            return (
                TupleValue([])
                if name == "args"
                else boolean(False)
                if name == "__suppress_context__"
                else NONE
            )
        return NONE  # a slot that ``__init__`` did not fill

    def _bind(self, found: Any, receiver: Value, cls: type, name: str) -> Value:
        """A class attribute read through an instance."""
        tx = self._tx
        kind = type(found)
        if kind is types.FunctionType or kind is RegionFunction:
            return MethodValue(Const(found), receiver)
        if kind is staticmethod:
            return tx.known(found.__func__)
        if kind is classmethod:
            return MethodValue(tx.known(found.__func__), Const(cls))
        if kind is functools.cached_property and isinstance(receiver, ObjectValue):
            if found.attrname != name or cls.__dictoffset__ == 0:
                raise GraphBreak(
                    DESCRIPTOR, f"{cls.__name__}.{name} keeps what it computes elsewhere, or nowhere"
                )
            made = tx.calls.call_known(Const(found.func), [receiver], {})
            receiver.attrs[name] = made
            tx.effects.attribute(receiver, name)
            return made
        if kind is functools.partialmethod:
            getter = type(found).__get__
            return tx.inliner.call_function(Const(getter), [tx.known(found), receiver, Const(cls)], {})
        if kind is functools._lru_cache_wrapper:
            return MethodValue(Const(found), receiver)
        if isinstance(found, C_METHODS):
            if kind is types.BuiltinFunctionType:
                return Const(found)
            if kind is types.ClassMethodDescriptorType:
                return Const(cls).get_attr(tx, name)
            return BuiltinMethod(
                receiver, name, function=found if isinstance(receiver, ObjectValue) else None
            )
        if kind is _INSTANCE_METHOD:  # of a class that C++ declares through pybind11
            return MethodValue(Const(found.__get__(None, cls)), receiver)
        getter = self.in_class(kind, "__get__")
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), receiver, Const(cls)], {})
        if getter is not ABSENT and not isinstance(found, type):
            raise GraphBreak(DESCRIPTOR, f"the descriptor {kind.__name__} of {cls.__name__}.{name}")
        is_read = (
            isinstance(receiver, ObjectValue)
            and receiver.real is not None
            and name not in receiver.attrs  # deleted: the object still has its own when guards are checked
            and not self._watches(cls)
        )
        source = receiver.source if is_read else None
        return self.class_value(found, cls, name, None if source is None else AttrSource(source, name))

    def of_module(self, module: ObjectValue, name: str) -> Value | None:
        """``nn.Module.__getattr__`` without following it; None where it finds nothing."""
        raise NotImplementedError
