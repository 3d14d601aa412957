"""Setting and deleting attributes: effects of the trace."""

from __future__ import annotations

import sys
import types
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED, DESCRIPTOR
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.runtime.replacement_calls import C_SLOTS
from dynamo_capture.semantics.attributes.lookup import (
    ABSENT,
    C_METHODS,
    MODULE_SETATTR,
    Missing,
    has_dict,
    instance_dict_of,
    is_data_descriptor,
    is_property,
    refuse_property,
)
from dynamo_capture.semantics.attributes.modules import MODULE_DICTS, ModuleAttributes
from dynamo_capture.values import Const, DictValue, ObjectValue, Value, is_none
from dynamo_capture.values.objects import exception_fields
from dynamo_capture.values.objects.instance_dict import check_place
from dynamo_capture.values.tensors.wrapper import has_mark


def _without_dict(cls: type, name: str, found: Any) -> str:
    """What Python says where an object without a dictionary has no slot to write to."""
    if found is not ABSENT:
        return f"{message_name(cls)!r} object attribute {name!r} is read-only"
    text = f"{message_name(cls)!r} object has no attribute {name!r}"
    return text if sys.version_info < (3, 13) else f"{text} and no __dict__ for setting new attributes"


def _is_another_method(found: Any, name: str) -> bool:
    """Whether a class has a method in C of another name there: ``__setattr__ = dict.__setitem__``."""
    return isinstance(found, C_METHODS) and found.__name__ != name


class WrittenAttributes(ModuleAttributes):
    """``obj.name = value`` and ``del obj.name``, through properties, descriptors and ``__setattr__``."""

    def set_object(self, obj: ObjectValue, name: str, value: Value) -> None:
        """``obj.name = value``."""
        self.guard_type(obj)
        setter = self.in_class(obj.cls, "__setattr__")
        is_module = setter is MODULE_SETATTR and self.keeps_dict(obj.cls)
        if is_module and self._set_module(obj, name, value):
            return
        if isinstance(setter, types.FunctionType) or _is_another_method(setter, "__setattr__"):
            Const(setter).call(self._tx, [obj, Const(name), value], {})
            return
        self.set_generic(obj, name, value)

    def set_generic(self, obj: ObjectValue, name: str, value: Value) -> None:
        """``object.__setattr__(obj, name, value)``."""
        found = self.in_class(obj.cls, name)
        if is_property(found):
            if found.fset is None:
                raise refuse_property(self._tx, found, obj.cls, "__set__", None)
            self._tx.calls.call_known(Const(found.fset), [obj, value], {})
            return
        if found is not ABSENT and self._changed_by_descriptor(obj, found, "__set__", [value]):
            return
        if name == "__class__":
            raise GraphBreak(DEFINITION_CHANGED, "an object's class is changed")
        if name == "__dict__" and isinstance(found, C_SLOTS):
            raise GraphBreak(DEFINITION_CHANGED, "an object's dictionary of attributes is replaced")
        if not has_dict(obj.cls) and not isinstance(found, C_SLOTS):
            raise self._tx.raises(AttributeError, _without_dict(obj.cls, name, found))
        if not isinstance(found, C_SLOTS):
            check_place(obj, name)
        elif issubclass(obj.cls, BaseException) and name in exception_fields.OF_ALL:
            value = exception_fields.assigned(self._tx, obj, name, value)
        obj.attrs[name] = value
        obj.reads.pop(name, None)
        self._tx.effects.attribute(obj, name)

    def _changed_by_descriptor(self, obj: Value, found: Any, special: str, given: list[Value]) -> bool:
        """Have a descriptor of the class set or delete; one that can only do the other refuses. False: none is there"""
        if isinstance(found, C_SLOTS) or not is_data_descriptor(found):
            return False
        tx, method = self._tx, self.in_class(type(found), special)
        if method is ABSENT:
            raise tx.raises(AttributeError, special)
        if not isinstance(method, types.FunctionType):
            raise GraphBreak(DESCRIPTOR, f"{special} of the descriptor {type(found).__name__}")
        tx.inliner.call_function(Const(method), [tx.known(found), obj, *given], {})
        return True

    def _set_module(self, module: ObjectValue, name: str, value: Value) -> bool:
        """``nn.Module.__setattr__`` where it does no more than store; False where it must be followed."""
        kind = value.python_type()
        if issubclass(kind, (torch.nn.Parameter, torch.nn.Module)) or has_mark(value):
            return False
        for space in MODULE_DICTS:
            try:
                members = self.plain_lookup(module, space, False)
            except Missing:
                continue
            if isinstance(members, DictValue) and members.find(self._tx, name, guard=False) is not None:
                if space == "_buffers" and (issubclass(kind, torch.Tensor) or is_none(value)):
                    module.reads.pop(name, None)
                    members.set_item(self._tx, Const(name), value)
                    return True
                return False
        self.set_generic(module, name, value)
        return True

    def delete_object(self, obj: ObjectValue, name: str) -> None:
        """``del obj.name``."""
        self.guard_type(obj)
        deleter = self.in_class(obj.cls, "__delattr__")
        if isinstance(deleter, types.FunctionType) or _is_another_method(deleter, "__delattr__"):
            Const(deleter).call(self._tx, [obj, Const(name)], {})
            return
        self.delete_generic(obj, name)

    def delete_generic(self, obj: ObjectValue, name: str) -> None:
        """``object.__delattr__(obj, name)``."""
        tx = self._tx
        found = self.in_class(obj.cls, name)
        if is_property(found):
            if found.fdel is None:
                raise refuse_property(tx, found, obj.cls, "__delete__")
            tx.calls.call_known(Const(found.fdel), [obj], {})
            return
        if found is not ABSENT and self._changed_by_descriptor(obj, found, "__delete__", []):
            return
        slot = isinstance(found, C_SLOTS)
        if slot and name == "__dict__":
            raise GraphBreak(DEFINITION_CHANGED, "an object's dictionary of attributes is deleted")
        if not self._exists(obj, name, found if slot else None):
            text = f"{message_name(obj.cls)!r} object has no attribute {name!r}"
            if not has_dict(obj.cls):
                text = _without_dict(obj.cls, name, found)
            raise tx.raises(AttributeError, name if slot else text)
        obj.attrs[name] = None
        obj.reads.pop(name, None)
        if obj.real is None:
            del obj.attrs[name]
        tx.effects.attribute(obj, name)

    def _exists(self, obj: ObjectValue, name: str, slot: Any) -> bool:
        """Whether the object itself has the attribute, in its dictionary or in a slot; guarded."""
        written = obj.attrs.get(name, ABSENT)
        if written is not ABSENT:
            return written is not None
        if slot is not None:
            try:
                self.plain_lookup(obj, name, False)
            except Missing:
                return False
            return True
        space = instance_dict_of(obj.real) if obj.real is not None else None
        if space is None:
            return False
        place = obj.space
        if place is not None:
            guard = self._tx.guards.present if name in space else self._tx.guards.absent
            guard(place, name)
        return name in space

    def set_known(self, owner: Const, name: str, value: Value) -> None:
        """An attribute of a known function, class or module is set."""
        module = owner.value
        if isinstance(module, types.FunctionType) and not has_member(types.FunctionType, name):
            owner.get_attr(self._tx, "__dict__").set_item(self._tx, Const(name), value)
            return
        if isinstance(module, types.ModuleType):
            tx, setting = self._tx, self.in_module_class(module, name)
            if type(setting) is property and setting.fset is not None:
                tx.calls.call_known(Const(setting.fset), [owner, value], {})
                return
            setter = self.in_class(type(setting), "__set__") if setting is not ABSENT else ABSENT
            if isinstance(setter, types.FunctionType):
                tx.inliner.call_function(Const(setter), [tx.known(setting), owner, value], {})
                return
            special = self.in_class(type(module), "__setattr__")
            is_own = setting is ABSENT and not is_data_descriptor(self.in_class(types.ModuleType, name))
            if not is_own or isinstance(special, types.FunctionType):
                raise GraphBreak(DEFINITION_CHANGED, f"the attribute {name!r} of {owner.describe()} is set")
            tx.inliner.scope(vars(module)).write(name, value)
            return
        raise GraphBreak(DEFINITION_CHANGED, f"the attribute {name!r} of {owner.describe()} is set")
