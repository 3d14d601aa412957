"""``obj.__dict__``: a view of an object's attributes, or a new function's, that shares its state."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import DEFINITION_CHANGED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.runtime.replacement_calls import C_SLOTS, instance_dict
from dynamo_capture.values.base import Context, Lazy, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.mapping import DictValue
from dynamo_capture.values.objects.instances import ObjectValue
from fx_interface.source import ItemSource


def _space(real: Any) -> dict[str, Any]:
    """An object's attributes, past what its class says about ``__dict__``."""
    found = instance_dict(real)
    return found if isinstance(found, dict) else {}


def check_place(owner: ObjectValue, name: str) -> None:
    """End the graph where an attribute that was deleted is set again: it moves behind the others."""
    is_deleted = name in owner.attrs and owner.attrs[name] is None
    if is_deleted and owner.real is not None and name in _space(owner.real):
        raise GraphBreak(DEFINITION_CHANGED, f"{name!r} of {owner.describe()} is deleted and set again")


@once_per_class
def _has_slots(cls: type) -> bool:
    """Whether instances keep attributes beside their dictionary."""
    own = (item for base in cls.__mro__ if base is not object for item in vars(base).items())
    return any(isinstance(found, C_SLOTS) and name not in ("__dict__", "__weakref__") for name, found in own)


class InstanceDictValue(DictValue):
    """Reads come from the object; writes go to it."""

    __slots__ = ("owner",)

    def __init__(self, owner: ObjectValue) -> None:
        super().__init__({}, dict)
        self.owner = owner
        self.source = owner.space

    def identity(self) -> object:
        return self.owner

    def _is_elsewhere(self, tx: Context, key: Any) -> bool:
        """Whether the object has a slot of this name, so that its attribute is no item of the dictionary."""
        cls = self.owner.cls
        if not isinstance(key, str) or not _has_slots(cls):
            return False
        return isinstance(tx.attributes.in_class(cls, key), C_SLOTS)

    def _written(self, tx: Context, key: Value) -> str:
        name = tx.hash_key(key)
        if not isinstance(name, str) or self._is_elsewhere(tx, name):
            raise GraphBreak(
                DEFINITION_CHANGED, f"{name!r} is written to the dictionary of {self.owner.describe()}"
            )
        return name

    def all_entries(self, tx: Context) -> dict[Any, list[Value]]:
        owner = self.owner
        entries: dict[Any, list[Value]] = {}
        if owner.real is not None:
            if self.source is not None and not self.keys_guarded:
                self.keys_guarded = True
                tx.guard_keys(self.source, _space(owner.real))
            for name, real in _space(owner.real).items():
                source = None if self.source is None else ItemSource(self.source, name)
                read = None if self._is_elsewhere(tx, name) else owner.reads.get(name)
                entries[name] = [Const(name), read or Lazy(real, source)]
        for name, value in owner.attrs.items():
            if self._is_elsewhere(tx, name):
                continue
            if value is None:
                entries.pop(name, None)
            elif name in entries:
                entries[name][1] = value
            else:
                entries[name] = [Const(name), value]
        return entries

    def find(self, tx: Context, key: Any, *, guard: bool = True) -> Value | None:
        owner = self.owner
        is_elsewhere = self._is_elsewhere(tx, key)
        if not is_elsewhere and key in owner.attrs:
            written = owner.attrs[key]
            return None if written is None else tx.force(written)
        if owner.real is not None and key in _space(owner.real):
            is_attribute = (
                not is_elsewhere and isinstance(key, str) and not tx.attributes.is_computed(owner.cls, key)
            )
            if is_attribute and key in owner.reads:
                return owner.reads[key]
            real = _space(owner.real)[key]
            made = tx.known(real) if self.source is None else tx.wrap(real, ItemSource(self.source, key))
            if is_attribute:
                owner.reads[key] = made
            return made
        if guard and owner.real is not None:
            tx.guard_absent(self.source, key)
        return None

    def length(self, tx: Context) -> int:
        return len(self.all_entries(tx))

    def contains(self, tx: Context, item: Value) -> bool:
        key = tx.hash_key(item)
        found = self.find(tx, key)
        return found is not None

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        name = self._written(tx, key)
        check_place(self.owner, name)
        self.owner.attrs[name] = value
        self.owner.reads.pop(name, None)
        tx.effects.attribute(self.owner, name)

    def del_item(self, tx: Context, key: Value) -> None:
        name = self._written(tx, key)
        if self.find(tx, name) is None:
            raise tx.raises(KeyError, key)
        self.owner.attrs[name] = None
        self.owner.reads.pop(name, None)
        if self.owner.real is None:
            del self.owner.attrs[name]
        tx.effects.attribute(self.owner, name)

    def children(self, tx: Context) -> list[Value]:
        return [self.owner]

    @property
    def is_existing(self) -> bool:
        return False


class FunctionDictValue(DictValue):
    """The ``__dict__`` of a function, or ``functools.partial``, that the trace made: those of its attributes
    (``attrs``) that are not in ``slots``, and what is stored under such a name, which is no attribute: its key there is
    a tuple of the name (``functools.wraps`` of a cached function)."""

    __slots__ = ("function", "slots")

    def __init__(self, function: Any, slots: frozenset[str]) -> None:
        super().__init__({}, dict)
        self.function = function
        self.slots = slots

    def identity(self) -> object:
        return self.function.attrs

    def all_entries(self, tx: Context) -> dict[Any, list[Value]]:
        held = [(key, value) for key, value in self.function.attrs.items() if key not in self.slots]
        named = [(key[0] if isinstance(key, tuple) else key, value) for key, value in held]
        return {name: [Const(name), value] for name, value in named}

    def find(self, tx: Context, key: Any, *, guard: bool = True) -> Value | None:
        entry = self.all_entries(tx).get(key)
        return None if entry is None else tx.force(entry[1])

    def length(self, tx: Context) -> int:
        return len(self.all_entries(tx))

    def contains(self, tx: Context, item: Value) -> bool:
        return self.find(tx, tx.hash_key(item)) is not None

    def _key(self, tx: Context, key: Value) -> str | tuple[str]:
        name = tx.hash_key(key)
        if not isinstance(name, str):
            raise GraphBreak(
                DEFINITION_CHANGED, f"{name!r} is written to the dictionary of {self.function.describe()}"
            )
        return (name,) if name in self.slots else name

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        self.function.attrs[self._key(tx, key)] = value

    def del_item(self, tx: Context, key: Value) -> None:
        if self.function.attrs.pop(self._key(tx, key), None) is None:
            raise tx.raises(KeyError, key)

    def children(self, tx: Context) -> list[Value]:
        return [self.function]
