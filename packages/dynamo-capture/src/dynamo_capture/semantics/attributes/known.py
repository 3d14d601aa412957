"""Attributes of what the trace knows by identity: modules, classes, functions, constants."""

from __future__ import annotations

import enum
import sys
import types
from typing import Any

import torch

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation.break_kinds import DESCRIPTOR, NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import (
    CLASS_OF_OBJECTS,
    has_member,
    is_immutable,
    is_of_library,
    module_of,
    runs_program,
)
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.foundation.library_functions import LIBRARIES, is_function_of_library
from dynamo_capture.runtime.replacement_calls import C_SLOTS
from dynamo_capture.semantics.attributes.lookup import (
    ABSENT,
    C_METHODS,
    Lookup,
    goes_first,
    is_property,
)
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import NONE, BuiltinMethod, Const, DictValue, MethodValue, Value
from fx_interface.source import AttrSource, ImportedModuleSource, InstanceDictSource, ItemSource, Source

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


_OF_TORCH = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops._OpNamespace, RegionFunction)
"""Torch's and our own: what they keep are facts."""
_NAMES_OF_CLASSES = frozenset({"__class__", "__doc__", "__module__"})
_CLASS_FACTS = frozenset({"__mro__", "__name__", "__qualname__", "__bases__", "__base__", "__dict__"})


def _name_of(module: types.ModuleType) -> str:
    """The name that a module holds; empty for one whose ``__init__`` has not run. Asking for it as an attribute could
    run the ``__getattr__`` of its class."""
    name = vars(module).get("__name__")
    return name if isinstance(name, str) else ""


class KnownAttributes(Lookup):
    """``module.name``, ``cls.name``, ``function.name``, ``constant.name``."""

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
        tx = self._tx
        setting = self.in_module_class(module, name)
        if type(setting) is property and setting.fget is not None:
            return tx.calls.call_known(Const(setting.fget), [Const(module)], {})
        getter = self.in_class(type(setting), "__get__") if setting is not ABSENT else ABSENT
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(
                Const(getter), [tx.known(setting), Const(module), Const(type(module))], {}
            )
        found = vars(module).get(name, ABSENT)
        scope = tx.inliner.scope(vars(module))
        if name in scope.written:
            if scope.written[name] is None:
                raise tx.raises(AttributeError, f"module {_name_of(module)!r} has no attribute {name!r}")
            return scope.read(name)
        if found is ABSENT:
            return self._missing_in_module(module, name)
        root = _name_of(module).partition(".")[0]
        if root in LIBRARIES and is_known(found) and not isinstance(found, (bool, int, float, str)):
            if sys.modules.get(module.__name__) is module:
                space = InstanceDictSource(ImportedModuleSource(module.__name__))
                self._tx.guards.is_object(ItemSource(space, name), found)
            return Const(found)
        if isinstance(found, types.ModuleType) and sys.modules.get(_name_of(found)) is found:
            return Const(found, ImportedModuleSource(_name_of(found)))
        return self._tx.inliner.scope(vars(module)).read(name)

    def _missing_in_module(self, module: types.ModuleType, name: str) -> Value:
        """What the module's class has, or the module's own ``__getattr__`` gives (PEP 562)."""
        tx, scope = self._tx, self._tx.inliner.scope(vars(module))
        is_own = _name_of(module).partition(".")[0] not in LIBRARIES
        if name == "__annotations__":
            raise _makes_annotations(module)
        if name[:2] != "__" and not hasattr(type(module), name) and (is_own or not hasattr(module, name)):
            if is_own and isinstance(vars(module).get("__getattr__"), types.FunctionType):
                return self._given_by_module(module, name)
            scope.guard_absent(name)
            if is_own and "__getattr__" not in vars(module):
                scope.guard_absent("__getattr__")
            if is_own and vars(module).get("__getattr__", ABSENT) is not ABSENT:
                raise GraphBreak(DESCRIPTOR, f"a callable object answers for {_name_of(module)}.{name}")
        return tx.known(tx.fold(lambda: getattr(module, name)))

    def _given_by_module(self, module: types.ModuleType, name: str) -> Value:
        """What a ``__getattr__`` written in Python gives. One that imports a part of the module (``numpy.random``)
        leaves the part there, where later calls find it."""
        tx, scope = self._tx, self._tx.inliner.scope(vars(module))
        try:
            found = scope.read("__getattr__").call(tx, [Const(name)], {})
        except Exception:
            scope.guard_absent(name)
            raise
        left = vars(module).get(name, ABSENT)
        if isinstance(left, types.ModuleType) and isinstance(found, Const) and found.value is left:
            return self._of_python_module(module, name)
        scope.guard_absent(name)
        return found

    def of_class(self, owner: Const, name: str) -> Value:
        """``cls.name``."""
        tx, cls = self._tx, owner.value
        meta = type(cls)
        if name == "__annotations__" and name not in cls.__dict__ and not is_immutable(cls):
            raise _makes_annotations(cls)
        if name in _CLASS_FACTS or (
            isinstance(cls, enum.EnumMeta) and not self._is_answered_by_program(cls, name)
        ):
            if name in ("__mro__", "__bases__", "__base__"):
                self.guard_bases(cls)
            elif name in ("__name__", "__qualname__"):
                self._guard_name(self.class_source(cls), cls, name)
            elif name == "__dict__" and not is_immutable(cls):
                return tx.wrap(cls.__dict__, AttrSource(self.class_source(cls), "__dict__"))
            else:
                self.in_class(cls, name)
            found = tx.fold(lambda: getattr(cls, name))
            return Const(found) if type(found) is types.MappingProxyType else tx.known(found)
        if runs_program(meta):
            raise GraphBreak(DESCRIPTOR, "the metaclass answers for a class's attributes in Python")
        plain = self._of_class_plainly(owner, name)
        if plain is not None:
            return plain
        fallback = self.in_class(meta, "__getattr__")
        if isinstance(fallback, types.FunctionType):
            return tx.inliner.call_function(Const(fallback), [owner, Const(name)], {})
        return tx.known(tx.fold(lambda: getattr(cls, name)))

    def _is_answered_by_program(self, cls: type, name: str) -> bool:
        """Whether a descriptor of the program, or its metaclass, gives what an enumeration has under a name."""
        in_meta, found = self.in_class(type(cls), name), self.in_class(cls, name)
        if is_property(in_meta):
            return not is_function_of_library(in_meta.fget)
        if in_meta is ABSENT and found is ABSENT:
            fallback = self.in_class(type(cls), "__getattr__")
            return hasattr(fallback, "__module__") and not is_function_of_library(fallback)
        asked = (in_meta, found) if found is not ABSENT else (in_meta,)
        return any(not is_of_library(type(one)) and has_member(type(one), "__get__") for one in asked)

    def _of_class_plainly(self, owner: Const, name: str) -> Value | None:
        """``type.__getattribute__(cls, name)``; None where nothing is found."""
        cls = owner.value
        meta = type(cls)
        in_meta = self.in_class(meta, name)
        if in_meta is not ABSENT and goes_first(in_meta):
            return self._of_metaclass(owner, in_meta, name)
        found = self.in_class(cls, name)
        if found is not ABSENT:
            return self._of_class_itself(owner, found, name)
        return None if in_meta is ABSENT else self._of_metaclass(owner, in_meta, name)

    def of_known_plainly(self, owner: Const, name: str, function: Any) -> Value:
        """``function(owner, name)``, a ``__getattribute__`` in C, which asks no other and no ``__getattr__``."""
        real = owner.value
        kind = type(real)
        if isinstance(real, type):
            found = self._of_class_plainly(owner, name) if function is type.__getattribute__ else None
        elif isinstance(real, types.ModuleType) or self.in_class(kind, "__getattr__") is not ABSENT:
            found = None
        else:
            found = self._of_constant_plainly(owner, name)
        if found is None:
            raise GraphBreak(NOT_IN_PYTHON, f"a call of {function.__qualname__} on {owner.describe()}")
        return found

    def _of_metaclass(self, owner: Const, found: Any, name: str) -> Value:
        """What the metaclass has under a name, read through the class."""
        tx, cls = self._tx, owner.value
        meta = type(cls)
        if isinstance(found, types.FunctionType):
            return MethodValue(Const(found), owner)
        if is_property(found) and found.fget is not None:
            return tx.calls.call_known(Const(found.fget), [owner], {})
        getter = self.in_class(type(found), "__get__")
        if getter is ABSENT:
            return self.class_value(found, meta, name, None)
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), owner, Const(meta)], {})
        if isinstance(found, C_SLOTS) and name not in _NAMES_OF_CLASSES and not is_immutable(cls):
            source = AttrSource(self.class_source(cls), name)
            return tx.wrap(tx.fold(lambda: getattr(cls, name)), source)
        real = tx.fold(lambda: getattr(cls, name))
        if name in ("__doc__", "__module__"):
            self._guard_name(self.class_source(cls), cls, name)
        if isinstance(real, (types.BuiltinMethodType, types.MethodWrapperType)):
            return BuiltinMethod(owner, name)
        return tx.known(real)

    def _of_class_itself(self, owner: Const, found: Any, name: str) -> Value:
        """What a class of the method resolution order has under a name, read through the class."""
        tx, cls = self._tx, owner.value
        kind = type(found)
        if kind is types.FunctionType:
            return Const(found, AttrSource(owner.source, name) if owner.source is not None else None)
        if kind is staticmethod:
            return tx.known(found.__func__)
        if kind is classmethod:
            return MethodValue(tx.known(found.__func__), owner)
        if isinstance(found, (*C_METHODS, property, type)):
            return tx.known(tx.fold(lambda: getattr(cls, name)))
        getter = self.in_class(kind, "__get__")
        if isinstance(getter, types.FunctionType):
            return tx.inliner.call_function(Const(getter), [tx.known(found), NONE, owner], {})
        if getter is not ABSENT:
            return tx.known(tx.fold(lambda: getattr(cls, name)))
        place = None if owner.source is None else self.member_source(cls, name, owner.source)
        return self.class_value(found, cls, name, place)

    def _of_function(self, owner: Const, name: str) -> Value:
        tx, function = self._tx, owner.value
        source = owner.source if owner.source is not None else known_object(function)
        space = tx.wrapping.value_of(vars(function))
        if name == "__dict__":
            return tx.wrap(vars(function), InstanceDictSource(source))
        if isinstance(space, DictValue) and not has_member(types.FunctionType, name):
            written = space.find(tx, name)
            if written is None:
                raise tx.raises(AttributeError, f"'function' object has no attribute {name!r}")
            return written
        if name == "__get__" or name == "__call__":
            return BuiltinMethod(owner, name)
        if name in _FUNCTION_FACTS:
            real = getattr(function, name)
            is_own = not is_function_of_library(function)
            return tx.wrap(real, AttrSource(source, name)) if is_own or not is_known(real) else Const(real)
        if name in vars(function):
            return tx.wrap(vars(function)[name], ItemSource(InstanceDictSource(source), name))
        if hasattr(function, name):
            return tx.known(getattr(function, name))
        tx.guards.absent(InstanceDictSource(source), name)
        raise tx.raises(AttributeError, f"'function' object has no attribute {name!r}")

    def _guard_name(self, source: Source, owner: Any, name: str) -> None:
        """A name (or text) of a class or function has been read; those of libraries stay."""
        if not is_function_of_library(owner):
            self._tx.guards.equals(AttrSource(source, name), getattr(owner, name))

    def _check_own(self, owner: Any) -> None:
        """The graph ends where the trace has changed the dictionary of an object that it knows as it was."""
        space = self._tx.wrapping.value_of(vars(owner))
        if space is not None and self._tx.effects.has_changed(space):
            raise GraphBreak(
                DESCRIPTOR, f"an attribute of {owner!r} is read, whose dictionary has been changed"
            )

    def _guard_own(self, owner: Any, name: str) -> None:
        """An attribute of an object that is known, but has attributes of its own, has been read."""
        found = vars(owner).get(name, ABSENT)
        source = InstanceDictSource(known_object(owner))
        if is_known(found):
            self._tx.guards.equals(ItemSource(source, name), found)
        elif found is ABSENT:
            self._tx.guards.absent(source, name)

    def _of_constant(self, owner: Const, name: str) -> Value:
        cls = type(owner.value)
        if _is_of_library(cls):
            return self._of_constant_plainly(owner, name)
        if runs_program(cls):
            raise GraphBreak(DESCRIPTOR, "the class of a constant answers for its attributes in Python")
        try:
            return self._of_constant_plainly(owner, name)
        except UserRaise as raised:
            fallback = self.in_class(cls, "__getattr__")
            found_nothing = issubclass(raised.value.python_type(), AttributeError)
            if not found_nothing or not isinstance(fallback, types.FunctionType):
                raise
        return self._tx.inliner.call_function(Const(fallback), [owner, Const(name)], {})

    def _of_constant_plainly(self, owner: Const, name: str) -> Value:
        tx, real = self._tx, owner.value
        cls = type(real)
        found = self.in_class(cls, name)
        if name == "__class__" and found is CLASS_OF_OBJECTS:
            return Const(cls)
        if isinstance(found, types.FunctionType) and not isinstance(real, torch._ops.OpOverloadPacket):
            return MethodValue(Const(found), owner)
        if (
            is_property(found)
            and found.fget is not None
            and not module_of(cls).startswith(("inspect", "torch"))
        ):
            return tx.calls.call_known(Const(found.fget), [owner], {})
        getter = self.in_class(type(found), "__get__") if found is not ABSENT else ABSENT
        if isinstance(getter, types.FunctionType) and not _is_own_fact(found):
            return tx.inliner.call_function(Const(getter), [tx.known(found), owner, Const(cls)], {})
        if cls.__dictoffset__:
            tx.attribute_dicts.check_constant(owner)
        if cls.__dictoffset__ and not isinstance(real, _OF_TORCH):
            self._check_own(real)
            self._guard_own(real, {"value": "_value_", "name": "_name_"}.get(name, name))
        read: Any = getattr if _is_of_library(cls) else object.__getattribute__
        value = tx.fold(lambda: read(real, name))
        if isinstance(value, (types.BuiltinMethodType, types.MethodWrapperType)) and value.__self__ is real:
            return BuiltinMethod(owner, name)
        if is_known(value) or type(value) is types.MappingProxyType:
            return Const(value)
        source = owner.source if owner.source is not None else known_object(real)
        return tx.wrap(value, AttrSource(source, name))


def _is_of_library(cls: type) -> bool:
    """Whether reading attributes of its instances runs no code of the program but what the lookup finds."""
    return is_immutable(cls) or is_of_library(cls)


def _is_own_fact(found: Any) -> bool:
    """Whether a descriptor of enumerations reads what they keep themselves, as ``name`` and ``value`` do."""
    return getattr(getattr(found, "fget", None), "__module__", None) == enum.__name__


def _makes_annotations(owner: Any) -> GraphBreak:
    """Whoever asks a class or a module for annotations that it lacks gives it an empty dictionary of them."""
    return GraphBreak(DESCRIPTOR, f"{owner.__name__} has no __annotations__, which asking for them makes")
