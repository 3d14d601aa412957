"""What classes have under a name, with the guards that looking it up needs."""

from __future__ import annotations

import collections
import sys
import threading
import types
from typing import Any

import torch

import fx_guards
from dynamo_capture._eval_frame import ForwardedCall
from dynamo_capture.foundation.break_kinds import DESCRIPTOR
from dynamo_capture.foundation.class_members import has_member, is_immutable
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.foundation.type_names import full_name, message_name
from dynamo_capture.runtime.replacement_calls import instance_dict
from dynamo_capture.sources.sources import ClassMemberSource, known_object
from dynamo_capture.values import Const, ObjectValue, Value
from dynamo_capture.values.base import Context
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, Source

ABSENT: Any = fx_guards.ABSENT
C_METHODS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.ClassMethodDescriptorType,
    types.BuiltinFunctionType,
)
MODULE_GETATTR: Any = torch.nn.Module.__getattr__
MODULE_SETATTR: Any = torch.nn.Module.__setattr__
"""As torch defines them: a program may put something else there."""


NAMED_FIELD = type(vars(collections.namedtuple("_One", "field"))["field"])
"""What a named tuple's class has under a field's name."""


def field_index(field: Any) -> int:
    """Which item of a tuple a field of its class shows: what ``_fields`` says, a program may change."""
    _, (index, *_) = field.__reduce__()
    return int(index)


class Missing(Exception):
    """An attribute was not found by the generic lookup. ``in_slot``: its place in the object holds nothing."""

    def __init__(self, in_slot: bool = False) -> None:
        self.in_slot = in_slot

    def text(self, cls: type, name: str) -> str:
        """What Python says of an object of ``cls``."""
        owner = full_name(cls) if self.in_slot and sys.version_info >= (3, 13) else message_name(cls)
        return f"{owner!r} object has no attribute {name!r}"


class Lookup:
    """Class attributes of one trace: each is looked up, and guarded, once."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._lookups: dict[tuple[type, str], Any] = {}
        self._classes: dict[type, Source] = {}
        self.relied_on: set[Any] = set()
        """Functions of libraries that the graph calls, and names that they read, which are guarded."""
        self.compared: tuple[Value, str] | None = None
        """The object and the attribute that is being read to be compared with None, and for nothing else."""

    def in_class(self, cls: type, name: str) -> Any:
        """What the classes of the method resolution order have under ``name``, undescribed; a sentinel if nothing."""
        key = (cls, name)
        try:
            return self._lookups[key]
        except KeyError:
            pass
        found = fx_guards.class_lookup(cls, name)
        known = self._lookups[key] = found.function if type(found) is ForwardedCall else found
        self.guard_lookup(cls, name, found)
        return known

    def guard_lookup(self, cls: type, name: str, found: Any) -> None:
        """What the lookup in ``cls`` found has been relied on. Plain data is guarded where it is read."""
        if cls in self._tx.new_classes or all(map(is_immutable, cls.__mro__)):
            return
        plain = not (_has(type(found), "__get__") or is_identity(found))
        if not (plain or is_immutable(type(found))):  # a descriptor of the program: what kind of one
            for special in ("__get__", "__set__", "__delete__"):
                self.in_class(type(found), special)
        self._tx.guards.class_lookup(self.class_source(cls), name, found, only_type=plain)

    def class_source(self, cls: type) -> Source:
        """A class is read by reference: a name that leads to it may be given to another class."""
        found = self._classes.get(cls)
        if found is None:
            found = self._classes[cls] = known_object(cls)
        return found

    def guard_bases(self, cls: type) -> None:
        """What ``cls`` inherits from has been relied on."""
        if cls not in self._tx.new_classes and not all(map(is_immutable, cls.__mro__)):
            self._tx.guards.class_bases(self.class_source(cls), cls)

    def has_special(self, value: Value, name: str) -> bool:
        """Whether the value's class defines a special method; one that is None is there, and cannot be called."""
        if isinstance(value, ObjectValue):
            self.guard_type(value)
        return self.in_class(value.python_type(), name) is not ABSENT

    def withdraws(self, value: Value, name: str) -> bool:
        """Whether the value's class says by None that its instances lack what a base class or a protocol would give."""
        return self.in_class(value.python_type(), name) is None

    def overrides(self, value: ObjectValue, name: str) -> bool:
        """Whether the class has a special method of its own, not that of ``object``."""
        return self.has_special(value, name) and self.in_class(value.cls, name) is not getattr(
            object, name, None
        )

    def guard_type(self, value: ObjectValue) -> None:
        """An existing object's class has been relied on."""
        if not value.type_guarded:
            value.type_guarded = True
            if value.source is not None:
                self._tx.guards.type_is(value.source, value.cls)

    def class_value(self, found: Any, cls: type, name: str, place: Source | None) -> Value:
        """A class attribute that is no descriptor, read from ``place``; None: from the class."""
        if is_identity(found):
            return Const(found)
        if cls in self._tx.new_classes:
            if not is_known(found):
                raise GraphBreak(DESCRIPTOR, f"{name} of the class {cls.__name__}, which is made here")
            return Const(found)
        return self._tx.wrap(found, place if place is not None else self.member_source(cls, name, None))

    def member_source(self, cls: type, name: str, source: Source | None) -> Source:
        """Where a class, read from ``source``, or a base of it has a name: ``cls.name`` asks its metaclass."""
        meta = type(cls)
        is_asked = has_member(meta, name) or (meta is not type and has_member(meta, "__getattr__"))
        return (ClassMemberSource if is_asked else AttrSource)(source or self.class_source(cls), name)

    def in_module_class(self, module: types.ModuleType, name: str) -> Any:
        """A data descriptor in the class of a module, which goes before what the module itself holds; or ABSENT."""
        if type(module) is types.ModuleType:
            return ABSENT
        found = self.in_class(type(module), name)
        return found if found is not ABSENT and is_data_descriptor(found) else ABSENT


def is_identity(found: Any) -> bool:
    """Whether a class attribute is known by what object it is, not by a value."""
    return is_known(found) and not isinstance(found, (int, float, str, bytes, complex, tuple, type(None)))


def instance_dict_of(real: Any) -> dict[str, Any] | None:
    space = instance_dict(real)
    return space if isinstance(space, dict) else None


def has_guardable_dict(obj: ObjectValue) -> bool:
    """Whether an existing object has an instance dictionary that can be guarded."""
    return obj.real is not None and obj.source is not None and instance_dict_of(obj.real) is not None


def has_dict(cls: type) -> bool:
    """Whether instances have a dictionary of attributes."""
    return cls.__dictoffset__ != 0 or cls is threading.local


def dict_item(source: Source, name: str) -> ItemSource:
    return ItemSource(InstanceDictSource(source), name)


def goes_first(found: Any) -> bool:
    """Whether a class attribute is read before what the object itself has: a data descriptor with a getter."""
    kind = type(found)
    return _has(kind, "__get__") and is_data_descriptor(found)


def is_data_descriptor(found: Any) -> bool:
    """Whether a class attribute takes over the setting of the attribute: it has ``__set__`` or ``__delete__``."""
    kind = type(found)
    return _has(kind, "__set__") or _has(kind, "__delete__")


def refuse_property(tx: Context, found: Any, cls: type, special: str, *given: Any) -> UserRaise:
    """What a property without a getter, setter or deleter raises for an instance of ``cls``, in its own words."""
    blank = type(cls.__name__, (), {"__qualname__": cls.__qualname__})()
    tx.fold(lambda: getattr(property, special)(found, blank, *given))
    raise AssertionError("a property that does what it cannot")


def is_property(found: Any) -> bool:
    """Whether a class attribute is a property, or of a class made from it that reads and writes as it does."""
    kind = type(found)
    return kind is property or (
        isinstance(found, property)
        and all(
            getattr(kind, name) is getattr(property, name) for name in ("__get__", "__set__", "__delete__")
        )
    )


def _has(kind: type, special: str) -> bool:
    """As ``has_member``, without a search in Python for classes without a metaclass of the program."""
    return hasattr(kind, special) if type(kind) is type else has_member(kind, special)
