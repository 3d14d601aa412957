"""Attributes of containers, of ``super`` objects and of functions that the trace made."""

from __future__ import annotations

import types
from typing import Any

import fx_guards
from dynamo_capture.foundation.break_kinds import DESCRIPTOR
from dynamo_capture.foundation.class_members import CLASS_OF_OBJECTS, has_member, is_immutable
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.runtime.replacement_calls import C_SLOTS
from dynamo_capture.semantics.attributes.lookup import (
    ABSENT,
    C_METHODS,
    NAMED_FIELD,
    Lookup,
    dict_item,
    field_index,
    instance_dict_of,
    is_property,
)
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    DictValue,
    FunctionValue,
    MethodValue,
    ObjectValue,
    SuperValue,
    TensorValue,
    TupleValue,
    Value,
    is_none,
)
from dynamo_capture.values.objects.instance_dict import FunctionDictValue
from fx_interface.source import AttrSource, InstanceDictSource


class MadeAttributes(Lookup):
    """Attributes of values that are no objects of the program's own classes."""

    def of_builtin_object(self, owner: Value, name: str) -> Value:
        """An attribute of an object of a class that is not the program's: a container, a method, an iterator."""
        cls = owner.python_type()
        found = self.in_class(cls, name)
        if name == "__class__" and found is CLASS_OF_OBJECTS:
            return Const(cls)
        if isinstance(owner, TupleValue) and isinstance(found, NAMED_FIELD):
            return self._tx.force(owner.items[field_index(found)])
        if isinstance(owner, TupleValue) and isinstance(found, types.MemberDescriptorType):
            return self._of_struct_sequence(owner, name)
        if is_property(found):
            return self._tx.calls.call_known(Const(found.fget), [owner], {})
        own = owner.own_attribute(self._tx, name)
        if own is None and cls.__dictoffset__ != 0:
            own = self._of_existing(owner, name)
        if own is not None:
            return own
        if found is ABSENT:
            raise self._tx.raises(AttributeError, f"{message_name(cls)!r} object has no attribute {name!r}")
        if isinstance(found, types.FunctionType):
            return MethodValue(Const(found), owner)
        if isinstance(found, classmethod):
            return MethodValue(Const(found.__func__), Const(cls))
        if isinstance(found, staticmethod):
            return self._tx.known(found.__func__)
        if isinstance(found, types.BuiltinFunctionType):
            return Const(found)
        if isinstance(found, types.ClassMethodDescriptorType):
            return Const(cls).get_attr(self._tx, name)
        if isinstance(found, C_METHODS):
            return BuiltinMethod(owner, name)
        if not has_member(type(found), "__get__"):  # plain data of the class
            if cls not in self._tx.new_classes and not all(map(is_immutable, cls.__mro__)):
                return self._tx.wrap(found, self.member_source(cls, name, None))
            if name == "__doc__" or is_known(found):
                return self._tx.known(found)
        raise owner.unsupported(f"reading the attribute {name!r}")

    def _of_existing(self, owner: Value, name: str) -> Value | None:
        """What an object that existed before the trace has in its ``__dict__``; guarded."""
        real, source = getattr(owner, "real", None), owner.source
        space = instance_dict_of(real) if real is not None and source is not None else None
        if space is None or source is None:
            return None
        known = self._tx.wrapping.value_of(space)
        if isinstance(known, DictValue) and self._tx.effects.has_changed(known):
            return known.find(self._tx, name)
        if name in space:
            return self._tx.wrap(space[name], dict_item(source, name))
        self._tx.guards.absent(InstanceDictSource(source), name)
        return None

    def _of_struct_sequence(self, owner: TupleValue, name: str) -> Value:
        order = [n for n, d in vars(owner.cls).items() if isinstance(d, types.MemberDescriptorType)]
        return self._tx.force(owner.items[order.index(name)])

    def of_super(self, owner: SuperValue, name: str) -> Value:
        """``super().name``."""
        if name == "__class__":
            return Const(super)
        tx, receiver = self._tx, owner.receiver
        known = receiver.value if isinstance(receiver, Const) else None
        is_class = isinstance(known, type) and issubclass(known, owner.cls)
        cls = known if isinstance(known, type) and is_class else receiver.python_type()
        mro = cls.__mro__
        self.guard_bases(cls)
        for base in mro[mro.index(owner.cls) + 1 :]:
            self.guard_lookup(base, name, fx_guards.class_lookup(base, name))
            if name not in base.__dict__:
                continue
            found = base.__dict__[name]
            if is_property(found) and not is_class:
                return tx.calls.call_known(Const(found.fget), [receiver], {})
            if isinstance(found, classmethod):
                return MethodValue(tx.known(found.__func__), Const(cls))
            if isinstance(found, staticmethod):
                return tx.known(found.__func__)
            if isinstance(found, types.FunctionType):
                return Const(found) if is_class else MethodValue(Const(found), receiver)
            if isinstance(found, types.BuiltinFunctionType):
                return Const(found)
            if isinstance(found, C_METHODS):
                return Const(getattr(base, name)) if is_class else MethodValue(Const(found), receiver)
            return self._through_super(found, owner, name, base, None if is_class else receiver)
        raise tx.raises(AttributeError, f"'super' object has no attribute {name!r}")

    def _through_super(
        self, found: Any, owner: SuperValue, name: str, base: type, receiver: Value | None
    ) -> Value:
        """What ``base`` has under a name, read through ``super()`` of an object (``receiver``) or of a class."""
        tx = self._tx
        getter = self.in_class(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            cls = owner.receiver if receiver is None else Const(receiver.python_type())
            return tx.inliner.call_function(Const(getter), [tx.known(found), receiver or NONE, cls], {})
        if receiver is not None and isinstance(found, C_SLOTS):
            if isinstance(receiver, TensorValue):
                return tx.tensors.torchs_attribute(receiver, name)
            if isinstance(receiver, ObjectValue) and self.in_class(receiver.cls, name) is found:
                return self.without_getattr(receiver, name)
            if isinstance(receiver, ObjectValue) and issubclass(receiver.cls, BaseException):
                return self.of_exception(receiver, name)
        if receiver is not None and getter is not ABSENT and not isinstance(found, type):
            raise GraphBreak(DESCRIPTOR, f"the descriptor {type(found).__name__} of {base.__name__}.{name}")
        return tx.wrap(found, AttrSource(known_object(base), name))

    def without_getattr(self, obj: ObjectValue, name: str) -> Value:
        """``object.__getattribute__(obj, name)``."""
        raise NotImplementedError

    def of_exception(self, obj: ObjectValue, name: str) -> Value:
        """What every exception has in a place of its own."""
        raise NotImplementedError

    def of_new_function(self, function: FunctionValue, name: str) -> Value | None:
        """What a function that the trace made has itself; None: no more than any function."""
        if name in function.attrs:
            return function.attrs[name]
        if function.real is not None and function.source is not None and name in _NOT_IN_CODE:
            return self._tx.wrap(getattr(function.real, name), AttrSource(function.source, name))
        match name:
            case "__name__":
                return Const(function.name)
            case "__qualname__":
                return Const(function.qualname)
            case "__module__":
                return function.globals.read("__name__")
            case "__code__":
                return Const(function.code)
            case "__doc__":
                return Const(
                    function.code.co_consts[0]
                    if function.code.co_consts and isinstance(function.code.co_consts[0], str)
                    else None
                )
            case "__defaults__":
                return TupleValue(function.defaults) if function.defaults else NONE
            case "__dict__":
                return FunctionDictValue(function, _SLOTS_OF_FUNCTIONS)
            case "__type_params__" if (
                name in _SLOTS_OF_FUNCTIONS
            ):  # since CPython 3.12; what has some is refused
                return TupleValue([])
            case "__annotations__":
                return function.attrs.setdefault("__annotations__", DictValue({}))
            case "__closure__":
                return TupleValue(list(function.closure)) if function.closure else NONE
            case "__kwdefaults__":
                if function.kwdefaults_dict is None:
                    if not function.given_kwdefaults:
                        return NONE
                    if function.source is not None:
                        raise GraphBreak(
                            DESCRIPTOR, f"{function.describe()}.__kwdefaults__ is a dict of before"
                        )
                    entries = {key: [Const(key), part] for key, part in function.given_kwdefaults.items()}
                    function.kwdefaults_dict = DictValue(entries)
                made: Value = function.kwdefaults_dict
                return made
        return None

    def set_of_new_function(self, function: FunctionValue, name: str, value: Value) -> None:
        """``function.name = value`` of a function that the trace made."""
        tx = self._tx
        refused = function.unsupported(f"setting the attribute {name!r}")
        if function.source is not None or name in _NOT_WRITTEN:
            raise refused
        match name:
            case "__code__":
                code = value.value if isinstance(value, Const) else None
                if not isinstance(code, types.CodeType) or len(code.co_freevars) != len(function.closure):
                    raise refused
                for kept in ("__name__", "__qualname__", "__doc__"):
                    function.attrs.setdefault(kept, function.get_attr(tx, kept))
                function.code = code
            case "__defaults__":
                if not is_none(value) and value.python_type() is not tuple:
                    raise refused
                function.defaults = [] if is_none(value) else value.unpack(tx)
            case "__kwdefaults__":
                function.given_kwdefaults, function.kwdefaults_dict = {}, None
                if isinstance(value, DictValue):
                    value.all_entries(tx)
                    function.kwdefaults_dict = value
                elif not is_none(value):
                    raise refused
            case "__type_params__" if name in _SLOTS_OF_FUNCTIONS and value.python_type() is not tuple:
                raise refused
            case _:
                function.attrs[name] = value


_NOT_IN_CODE = frozenset(
    {"__annotations__", "__doc__", "__module__", "__name__", "__qualname__", "__type_params__"}
)
"""What a function has of its own, beside its code and defaults."""
_NOT_WRITTEN = frozenset({"__builtins__", "__class__", "__closure__", "__dict__", "__globals__"})
"""What cannot be set of a function, or not while it is traced."""
_SLOTS_OF_FUNCTIONS = frozenset(
    {
        "__module__",
        *(
            name
            for name, found in vars(types.FunctionType).items()
            if isinstance(found, (types.GetSetDescriptorType, types.MemberDescriptorType))
        ),
    }
)
"""What functions keep beside their ``__dict__``: names, text, annotations, defaults."""
