"""Attribute access with Python's own lookup order, over known objects and over what the trace made or changed."""

from __future__ import annotations

import enum
import functools
import sys
import types
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.errors import GraphBreak, UserRaise
from dynamo_capture.sources import known_object
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    DictValue,
    FunctionValue,
    MethodValue,
    ObjectValue,
    SuperValue,
    TupleValue,
    Value,
    boolean,
)
from dynamo_capture.values.instance_dict import InstanceDictValue
from dynamo_capture.wrapping import is_known
from fx_interface.source import AttrSource, ImportedModuleSource, InstanceDictSource, ItemSource, Source

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

_ABSENT: Any = object()
_C_METHODS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)
_FUNCTION_FACTS = frozenset(
    {
        "__name__",
        "__qualname__",
        "__module__",
        "__doc__",
        "__code__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
        "__type_params__",
        "__closure__",
        "__globals__",
        "__builtins__",
    }
)
_LIBRARIES = frozenset({"torch", *sys.stdlib_module_names})
_MODULE_DICTS = ("_parameters", "_buffers", "_modules")


class Attributes:
    """Attribute reads, writes and deletions of one trace."""

    def __init__(self, tx: Trace) -> None:
        self._tx = tx
        self._lookups: dict[tuple[type, str], Any] = {}
        self._classes: dict[type, Source] = {}

    # Classes.

    def in_class(self, cls: type, name: str) -> Any:
        """What the classes of the method resolution order have under ``name``, undescribed; a sentinel if nothing."""
        key = (cls, name)
        try:
            return self._lookups[key]
        except KeyError:
            pass
        found = _ABSENT
        for base in cls.__mro__:
            if name in base.__dict__:
                found = base.__dict__[name]
                if not _is_library(base):
                    self._guard_lookup(cls, base, name, found)
                break
        self._lookups[key] = found
        return found

    def _guard_lookup(self, cls: type, base: type, name: str, found: Any) -> None:
        """What the lookup in ``cls`` found (in its base ``base``) has been relied on."""
        guards = self._tx.guards
        if isinstance(found, (types.FunctionType, property)):
            guards.is_object(AttrSource(self.class_source(cls), name), found)
        elif is_known(found) or isinstance(found, (staticmethod, classmethod)):
            guards.is_object(ItemSource(InstanceDictSource(self.class_source(base)), name), found)

    def class_source(self, cls: type) -> Source:
        """Where a class is read: from its module, or else by reference."""
        found = self._classes.get(cls)
        if found is None:
            module = sys.modules.get(cls.__module__)
            if module is not None and vars(module).get(cls.__qualname__) is cls:
                found = ItemSource(InstanceDictSource(ImportedModuleSource(cls.__module__)), cls.__qualname__)
            else:
                found = known_object(cls)
            self._classes[cls] = found
        return found

    def has_special(self, value: Value, name: str) -> bool:
        """Whether the value's class defines a special method."""
        if isinstance(value, ObjectValue):
            self.guard_type(value)
        found = self.in_class(value.python_type(), name)
        return found is not _ABSENT and found is not None

    def guard_type(self, value: ObjectValue) -> None:
        """An existing object's class has been relied on."""
        if not value.type_guarded:
            value.type_guarded = True
            if value.source is not None:
                self._tx.guards.type_is(value.source, value.cls)

    def _class_value(self, found: Any, cls: type, name: str, source: Source | None) -> Value:
        """A class attribute that is no descriptor."""
        if is_known(found) and not isinstance(found, (int, float, str, bytes, complex, tuple, type(None))):
            return Const(found)
        return self._tx.wrap(
            found, AttrSource(source if source is not None else self.class_source(cls), name)
        )

    # Objects of the program's classes.

    def of_object(self, obj: ObjectValue, name: str) -> Value:
        """``obj.name``."""
        written = obj.attrs.get(name, _ABSENT) if obj.attrs else _ABSENT
        if written is not _ABSENT and written is not None:
            return self._tx.force(written)
        read = obj.reads.get(name)
        if read is not None and written is _ABSENT:
            return read
        if not obj.type_guarded:
            self.guard_type(obj)
        custom = self.in_class(obj.cls, "__getattribute__")
        if isinstance(custom, types.FunctionType):
            return self._tx.inliner.call_function(Const(custom), [obj, Const(name)], {})
        return self.generic(obj, name, deleted=written is None)

    def generic(self, obj: ObjectValue, name: str, deleted: bool = False) -> Value:
        """``object.__getattribute__(obj, name)``, then ``__getattr__``."""
        try:
            return self._without_getattr(obj, name, deleted)
        except _Missing:
            pass
        fallback = self.in_class(obj.cls, "__getattr__")
        if fallback is _ABSENT:
            raise self._tx.raises(AttributeError, f"{obj.cls.__name__!r} object has no attribute {name!r}")
        if fallback is torch.nn.Module.__getattr__:
            found = self._of_module(obj, name)
            if found is not None:
                return found
        return self._tx.inliner.call_function(Const(fallback), [obj, Const(name)], {})

    def without_getattr(self, obj: ObjectValue, name: str) -> Value:
        """``object.__getattribute__(obj, name)``."""
        try:
            return self._without_getattr(obj, name, name in obj.attrs and obj.attrs[name] is None)
        except _Missing:
            raise self._tx.raises(
                AttributeError, f"{obj.cls.__name__!r} object has no attribute {name!r}"
            ) from None

    def _without_getattr(self, obj: ObjectValue, name: str, deleted: bool) -> Value:
        written = obj.attrs.get(name)
        if written is not None:
            return self._tx.force(written)
        cls = obj.cls
        if name == "__class__":
            return Const(cls)
        if name == "__dict__":
            return InstanceDictValue(obj)
        found = self.in_class(cls, name)
        kind = type(found)
        if (
            found is not _ABSENT
            and hasattr(kind, "__get__")
            and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))
        ):
            return self._data_descriptor(obj, name, found)
        if not deleted and obj.real is not None:
            space = _instance_dict(obj.real)
            if space is not None and name in space:
                made = (
                    self._tx.wrap(space[name], _dict_item(obj.source, name))
                    if obj.source is not None
                    else self._tx.known(space[name])
                )
                obj.reads[name] = made
                return made
        if found is _ABSENT:
            if _has_guardable_dict(obj) and not issubclass(cls, torch.nn.Module):
                assert obj.source is not None
                self._tx.guards.absent(InstanceDictSource(obj.source), name)
            raise _Missing
        if _has_guardable_dict(obj):
            assert obj.source is not None
            self._tx.guards.absent(InstanceDictSource(obj.source), name)
        made = self._bind(found, obj, cls, name)
        if type(made) is MethodValue:
            obj.reads[name] = made
        return made

    def _data_descriptor(self, obj: ObjectValue, name: str, found: Any) -> Value:
        tx = self._tx
        if type(found) is property:
            if found.fget is None:
                raise tx.raises(
                    AttributeError, f"property {name!r} of {obj.cls.__name__!r} object has no getter"
                )
            return tx.calls.call_known(Const(found.fget), [obj], {})
        if isinstance(found, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            if name in (
                "args",
                "__cause__",
                "__context__",
                "__traceback__",
                "__suppress_context__",
            ) and issubclass(obj.cls, BaseException):
                return self._of_exception(obj, name)
            if obj.real is None:
                raise _Missing
            if obj.attrs.get(name, _ABSENT) is None:
                raise _Missing
            try:
                real = found.__get__(obj.real)
            except AttributeError:
                if obj.source is not None:
                    import guards

                    tx.guards.add(guards.AttributeAbsent(obj.source, name))
                raise _Missing from None
            made = tx.wrap(real, AttrSource(obj.source, name)) if obj.source is not None else tx.known(real)
            obj.reads[name] = made
            return made
        getter = self.in_class(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), obj, Const(obj.cls)], {})
        raise GraphBreak("CAP214", f"the descriptor {type(found).__name__} of {obj.cls.__name__}.{name}")

    def _of_exception(self, obj: ObjectValue, name: str) -> Value:
        if name in obj.attrs:
            return obj.attrs[name] or NONE
        if obj.real is not None and obj.source is not None:
            return self._tx.wrap(getattr(obj.real, name), AttrSource(obj.source, name))
        return (
            TupleValue([]) if name == "args" else boolean(False) if name == "__suppress_context__" else NONE
        )

    def _bind(self, found: Any, receiver: Value, cls: type, name: str) -> Value:
        """A class attribute read through an instance."""
        tx = self._tx
        kind = type(found)
        if kind is types.FunctionType:
            return MethodValue(Const(found), receiver)
        if kind is staticmethod:
            return tx.known(found.__func__)
        if kind is classmethod:
            return MethodValue(tx.known(found.__func__), Const(cls))
        if kind is functools.cached_property and isinstance(receiver, ObjectValue):
            made = tx.calls.call_known(Const(found.func), [receiver], {})
            receiver.attrs[name] = made
            tx.effects.attribute(receiver, name)
            return made
        if kind is functools.partialmethod:
            getter = type(found).__get__
            return tx.inliner.call_function(Const(getter), [tx.known(found), receiver, Const(cls)], {})
        if kind is functools._lru_cache_wrapper:
            return MethodValue(Const(found), receiver)
        if isinstance(found, _C_METHODS):
            if kind is types.BuiltinFunctionType:
                return Const(found)
            if kind is types.ClassMethodDescriptorType:
                return MethodValue(Const(found), Const(cls))
            return BuiltinMethod(receiver, name)
        getter = self.in_class(kind, "__get__")
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), receiver, Const(cls)], {})
        if getter is not _ABSENT and not isinstance(found, type):
            raise GraphBreak("CAP214", f"the descriptor {kind.__name__} of {cls.__name__}.{name}")
        source = receiver.source if isinstance(receiver, ObjectValue) and receiver.real is not None else None
        return self._class_value(found, cls, name, source)

    def _of_module(self, module: ObjectValue, name: str) -> Value | None:
        """``nn.Module.__getattr__``: parameters, buffers, sub-modules."""
        for kind in _MODULE_DICTS:
            if self._lacks(module, kind, name):
                continue
            try:
                members = self._member_table(module, kind)
            except _Missing:
                continue
            if isinstance(members, DictValue):
                found = members.find(self._tx, name, guard=False)
                if found is not None:
                    if members.entries is None and module.real is not None:
                        module.reads[name] = found
                    return found
        if module.real is not None and module.source is not None:
            for kind in ("", *_MODULE_DICTS):
                space = InstanceDictSource(module.source)
                self._tx.guards.absent(ItemSource(space, kind) if kind else space, name)
        return None

    def _lacks(self, module: ObjectValue, kind: str, name: str) -> bool:
        """Whether an untouched table of an existing module has no such member; a name is in one table at most."""
        if module.real is None or kind in module.attrs or "__dict__" in module.attrs:
            return False
        table = module.reads.get(kind)
        if isinstance(table, DictValue) and table.entries is not None:
            return False
        real = vars(module.real).get(kind)
        return isinstance(real, dict) and name not in real

    def _member_table(self, module: ObjectValue, kind: str) -> Value:
        """One of a module's tables; that an existing module's are plain dicts goes without saying."""
        real = vars(module.real).get(kind) if module.real is not None else None
        if type(real) is not dict or module.source is None or kind in module.attrs or kind in module.reads:
            return self._without_getattr(module, kind, False)
        source = _dict_item(module.source, kind)
        made = self._tx.wrapping.seen(real, source)
        if made is None:
            made = self._tx.wrapping.remember(real, DictValue(None, dict, source, real))
        module.reads[kind] = made
        return made

    # Writing.

    def set_object(self, obj: ObjectValue, name: str, value: Value) -> None:
        """``obj.name = value``."""
        self.guard_type(obj)
        setter = self.in_class(obj.cls, "__setattr__")
        if setter is torch.nn.Module.__setattr__ and self._set_module(obj, name, value):
            return
        if isinstance(setter, types.FunctionType):
            self._tx.inliner.call_function(Const(setter), [obj, Const(name), value], {})
            return
        self.set_generic(obj, name, value)

    def set_generic(self, obj: ObjectValue, name: str, value: Value) -> None:
        """``object.__setattr__(obj, name, value)``."""
        found = self.in_class(obj.cls, name)
        if type(found) is property:
            if found.fset is None:
                raise self._tx.raises(
                    AttributeError, f"property {name!r} of {obj.cls.__name__!r} object has no setter"
                )
            self._tx.calls.call_known(Const(found.fset), [obj, value], {})
            return
        if found is not _ABSENT and not isinstance(
            found, (types.MemberDescriptorType, types.GetSetDescriptorType)
        ):
            setter = self.in_class(type(found), "__set__")
            if isinstance(setter, types.FunctionType):
                self._tx.inliner.call_function(Const(setter), [self._tx.known(found), obj, value], {})
                return
        if name == "__class__":
            raise GraphBreak("CAP215", "an object's class is changed")
        obj.attrs[name] = value
        obj.reads.pop(name, None)
        self._tx.effects.attribute(obj, name)

    def _set_module(self, module: ObjectValue, name: str, value: Value) -> bool:
        """``nn.Module.__setattr__`` where it does no more than store; False where it must be followed."""
        kind = value.python_type()
        if issubclass(kind, (torch.nn.Parameter, torch.nn.Module)):
            return False
        for space in _MODULE_DICTS:
            try:
                members = self._without_getattr(module, space, False)
            except _Missing:
                continue
            if isinstance(members, DictValue) and members.find(self._tx, name, guard=False) is not None:
                if space == "_buffers" and (issubclass(kind, torch.Tensor) or value is NONE):
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
        if isinstance(deleter, types.FunctionType):
            self._tx.inliner.call_function(Const(deleter), [obj, Const(name)], {})
            return
        self._without_getattr_or_raise(obj, name)
        obj.attrs[name] = None
        obj.reads.pop(name, None)
        if obj.real is None:
            del obj.attrs[name]
        self._tx.effects.attribute(obj, name)

    def _without_getattr_or_raise(self, obj: ObjectValue, name: str) -> None:
        written = obj.attrs.get(name, _ABSENT)
        space = _instance_dict(obj.real) if obj.real is not None else None
        if (written is _ABSENT and (space is None or name not in space)) or written is None:
            raise self._tx.raises(AttributeError, name)

    def set_known(self, owner: Const, name: str, value: Value) -> None:
        """An attribute of a known function, class or module is set."""
        if isinstance(owner.value, types.ModuleType):
            self._tx.inliner.scope(vars(owner.value)).write(name, value)
            return
        raise GraphBreak("CAP215", f"the attribute {name!r} of {owner.describe()} is set")

    # Known objects.

    def of_known(self, owner: Const, name: str) -> Value:
        """An attribute of a constant, function, class or module."""
        real = owner.value
        if isinstance(real, types.ModuleType):
            return self._of_python_module(real, name)
        if isinstance(real, type):
            return self.of_class(owner, name)
        if isinstance(real, types.FunctionType):
            return self._of_function(owner, name)
        return self._of_constant(owner, name)

    def _of_python_module(self, module: types.ModuleType, name: str) -> Value:
        found = vars(module).get(name, _ABSENT)
        if found is _ABSENT:
            found = self._tx.fold(lambda: getattr(module, name))
            return self._tx.known(found)
        root = module.__name__.partition(".")[0]
        if root in _LIBRARIES and is_known(found) and not isinstance(found, (bool, int, float, str)):
            return Const(found)
        if isinstance(found, types.ModuleType) and sys.modules.get(found.__name__) is found:
            return Const(found, ImportedModuleSource(found.__name__))
        return self._tx.inliner.scope(vars(module)).read(name)

    def of_class(self, owner: Const, name: str) -> Value:
        """``cls.name``."""
        tx, cls = self._tx, owner.value
        meta = type(cls)
        if isinstance(cls, enum.EnumMeta) or name in (
            "__mro__",
            "__name__",
            "__qualname__",
            "__bases__",
            "__base__",
            "__dict__",
        ):
            return tx.known(tx.fold(lambda: getattr(cls, name)))
        found = self.in_class(cls, name)
        if found is _ABSENT or name in ("__class__", "__doc__", "__module__"):
            in_meta = self.in_class(meta, name)
            if isinstance(in_meta, types.FunctionType):
                return MethodValue(Const(in_meta), owner)
            if in_meta is _ABSENT and isinstance(self.in_class(meta, "__getattr__"), types.FunctionType):
                return tx.inliner.call_function(
                    Const(self.in_class(meta, "__getattr__")), [owner, Const(name)], {}
                )
            if isinstance(in_meta, property):
                return tx.calls.call_known(Const(in_meta.fget), [owner], {})
            real = tx.fold(lambda: getattr(cls, name))
            if isinstance(real, (types.BuiltinMethodType, types.MethodWrapperType)):
                return BuiltinMethod(owner, name)
            return tx.known(real)
        kind = type(found)
        if kind is types.FunctionType:
            return Const(found, AttrSource(owner.source, name) if owner.source is not None else None)
        if kind is staticmethod:
            return tx.known(found.__func__)
        if kind is classmethod:
            return MethodValue(tx.known(found.__func__), owner)
        if isinstance(found, (*_C_METHODS, property, type)):
            return tx.known(tx.fold(lambda: getattr(cls, name)))
        getter = self.in_class(kind, "__get__")
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), NONE, owner], {})
        if getter is not _ABSENT:
            return tx.known(tx.fold(lambda: getattr(cls, name)))
        return self._class_value(found, cls, name, owner.source)

    def _of_function(self, owner: Const, name: str) -> Value:
        tx, function = self._tx, owner.value
        source = owner.source if owner.source is not None else known_object(function)
        if name == "__dict__":
            return tx.wrap(vars(function), InstanceDictSource(source))
        if name == "__get__" or name == "__call__":
            return BuiltinMethod(owner, name)
        if name in _FUNCTION_FACTS:
            real = getattr(function, name)
            return Const(real) if is_known(real) else tx.wrap(real, AttrSource(source, name))
        if name in vars(function):
            return tx.wrap(vars(function)[name], ItemSource(InstanceDictSource(source), name))
        if hasattr(function, name):
            return tx.known(getattr(function, name))
        tx.guards.absent(InstanceDictSource(source), name)
        raise tx.raises(AttributeError, f"'function' object has no attribute {name!r}")

    def _of_constant(self, owner: Const, name: str) -> Value:
        tx, real = self._tx, owner.value
        cls = type(real)
        if name == "__class__":
            return Const(cls)
        found = self.in_class(cls, name)
        if isinstance(found, types.FunctionType) and not isinstance(real, torch._ops.OpOverloadPacket):
            return MethodValue(Const(found), owner)
        if (
            type(found) is property
            and found.fget is not None
            and not cls.__module__.startswith(("inspect", "torch"))
        ):
            return tx.calls.call_known(Const(found.fget), [owner], {})
        value = tx.fold(lambda: getattr(real, name))
        if isinstance(value, (types.BuiltinMethodType, types.MethodWrapperType)) and value.__self__ is real:
            return BuiltinMethod(owner, name)
        if is_known(value):
            return Const(value)
        source = owner.source if owner.source is not None else known_object(real)
        return tx.wrap(value, AttrSource(source, name))

    # What the trace made.

    def of_builtin_object(self, owner: Value, name: str) -> Value:
        """An attribute of a list, tuple, dict or set value."""
        cls = owner.python_type()
        if name == "__class__":
            return Const(cls)
        found = self.in_class(cls, name)
        fields = getattr(cls, "_fields", None)
        if fields is not None and name in fields and isinstance(owner, TupleValue):
            return self._tx.force(owner.items[fields.index(name)])
        if isinstance(owner, TupleValue) and isinstance(found, types.MemberDescriptorType):
            return self._of_struct_sequence(owner, name)
        if type(found) is property:
            return self._tx.calls.call_known(Const(found.fget), [owner], {})
        if name == "default_factory" and isinstance(owner, DictValue):
            return owner.factory or NONE
        if name == "maxlen" and hasattr(owner, "maxlen"):
            return self._tx.known(owner.maxlen)
        if found is _ABSENT:
            raise self._tx.raises(AttributeError, f"{cls.__name__!r} object has no attribute {name!r}")
        if isinstance(found, types.FunctionType):
            return MethodValue(Const(found), owner)
        if isinstance(found, classmethod):
            return MethodValue(Const(found.__func__), Const(cls))
        if isinstance(found, _C_METHODS):
            return BuiltinMethod(owner, name)
        if name == "__doc__" or is_known(found):
            return self._tx.known(found)
        raise owner.unsupported(f"reading the attribute {name!r}")

    def _of_struct_sequence(self, owner: TupleValue, name: str) -> Value:
        order = [n for n, d in vars(owner.cls).items() if isinstance(d, types.MemberDescriptorType)]
        return self._tx.force(owner.items[order.index(name)])

    def of_super(self, owner: SuperValue, name: str) -> Value:
        """``super().name``."""
        tx, receiver = self._tx, owner.receiver
        is_class = isinstance(receiver, Const) and isinstance(receiver.value, type)
        cls = receiver.value if is_class else receiver.python_type()  # type: ignore[attr-defined]
        mro = cls.__mro__
        for base in mro[mro.index(owner.cls) + 1 :]:
            if name not in base.__dict__:
                continue
            found = base.__dict__[name]
            if not _is_library(base):
                self._guard_lookup(base, base, name, found)
            if type(found) is property and not is_class:
                return tx.calls.call_known(Const(found.fget), [receiver], {})
            if isinstance(found, classmethod):
                return MethodValue(tx.known(found.__func__), Const(cls))
            if isinstance(found, staticmethod):
                return tx.known(found.__func__)
            if isinstance(found, types.FunctionType):
                return Const(found) if is_class else MethodValue(Const(found), receiver)
            if isinstance(found, types.BuiltinFunctionType):
                return Const(found)
            if isinstance(found, _C_METHODS):
                return Const(getattr(base, name)) if is_class else MethodValue(Const(found), receiver)
            return tx.wrap(found, AttrSource(known_object(base), name))
        raise tx.raises(AttributeError, f"'super' object has no attribute {name!r}")

    def of_new_function(self, function: FunctionValue, name: str) -> Value:
        """An attribute of a function that the trace made."""
        if name in function.attrs:
            return function.attrs[name]
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
                return DictValue({key: [Const(key), value] for key, value in function.attrs.items()})
            case "__get__":
                return BuiltinMethod(function, name)
            case "__annotations__":
                return DictValue({})
            case "__closure__":
                return TupleValue(list(function.closure)) if function.closure else NONE
            case "__kwdefaults__":
                if not function.kwdefaults:
                    return NONE
                return DictValue({key: [Const(key), value] for key, value in function.kwdefaults.items()})
        raise self._tx.raises(AttributeError, f"'function' object has no attribute {name!r}")

    def has(self, value: Value, name: str) -> bool:
        """``hasattr(value, name)``."""
        try:
            value.get_attr(self._tx, name)
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), AttributeError):
                return False
            raise
        return True


def _is_library(cls: type) -> bool:
    """Whether a class belongs to Python or torch, whose own code does not change."""
    return cls.__module__.partition(".")[0] in _LIBRARIES


class _Missing(Exception):
    """An attribute was not found by the generic lookup."""


def _instance_dict(real: Any) -> dict[str, Any] | None:
    space = getattr(real, "__dict__", None)
    return space if isinstance(space, dict) else None


def _has_guardable_dict(obj: ObjectValue) -> bool:
    """Whether an existing object has an instance dictionary that can be guarded."""
    return obj.real is not None and obj.source is not None and _instance_dict(obj.real) is not None


def _dict_item(source: Source, name: str) -> ItemSource:
    return ItemSource(InstanceDictSource(source), name)
