"""What classes have under a name, with the guards that looking it up needs."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from dynamo_capture.sources import known_object
from dynamo_capture.values import Const, ObjectValue, Value
from dynamo_capture.wrapping import is_known
from fx_interface.source import AttrSource, ImportedModuleSource, InstanceDictSource, ItemSource, Source

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

ABSENT: Any = object()
C_METHODS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)
LIBRARIES = frozenset({"torch", *sys.stdlib_module_names})


class Missing(Exception):
    """An attribute was not found by the generic lookup."""


class Lookup:
    """Class attributes of one trace: each is looked up, and guarded, once."""

    def __init__(self, tx: Trace) -> None:
        self._tx = tx
        self._lookups: dict[tuple[type, str], Any] = {}
        self._classes: dict[type, Source] = {}

    def in_class(self, cls: type, name: str) -> Any:
        """What the classes of the method resolution order have under ``name``, undescribed; a sentinel if nothing."""
        key = (cls, name)
        try:
            return self._lookups[key]
        except KeyError:
            pass
        found = ABSENT
        for base in cls.__mro__:
            if name in base.__dict__:
                found = base.__dict__[name]
                if not is_library(base):
                    self.guard_lookup(cls, base, name, found)
                break
        self._lookups[key] = found
        return found

    def guard_lookup(self, cls: type, base: type, name: str, found: Any) -> None:
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
        return found is not ABSENT and found is not None

    def guard_type(self, value: ObjectValue) -> None:
        """An existing object's class has been relied on."""
        if not value.type_guarded:
            value.type_guarded = True
            if value.source is not None:
                self._tx.guards.type_is(value.source, value.cls)

    def class_value(self, found: Any, cls: type, name: str, source: Source | None) -> Value:
        """A class attribute that is no descriptor."""
        if is_known(found) and not isinstance(found, (int, float, str, bytes, complex, tuple, type(None))):
            return Const(found)
        return self._tx.wrap(
            found, AttrSource(source if source is not None else self.class_source(cls), name)
        )


def is_library(cls: type) -> bool:
    """Whether a class belongs to Python or torch, whose own code does not change."""
    return cls.__module__.partition(".")[0] in LIBRARIES


def instance_dict_of(real: Any) -> dict[str, Any] | None:
    space = getattr(real, "__dict__", None)
    return space if isinstance(space, dict) else None


def has_guardable_dict(obj: ObjectValue) -> bool:
    """Whether an existing object has an instance dictionary that can be guarded."""
    return obj.real is not None and obj.source is not None and instance_dict_of(obj.real) is not None


def dict_item(source: Source, name: str) -> ItemSource:
    return ItemSource(InstanceDictSource(source), name)
