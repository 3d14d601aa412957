"""The guards of one trace: facts are added when a value's identity, type or content influences what is captured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import fx_guards
from dynamo_capture.foundation.known_objects import is_plain_key, items_in_order, may_change_class
from fx_interface.errors import UserLocation
from fx_interface.source import DictKeySource, Source


class GuardLog:
    """Collects guard records; the native tree makes equal ones one."""

    def __init__(self, where: Callable[[], UserLocation | None]) -> None:
        self.records: list[fx_guards.GuardRecord] = []
        self.told: set[Source] = set()
        """Values of which all that matters has been said, by whoever would say it again and again."""
        self._where = where

    def add(self, record: fx_guards.GuardRecord) -> None:
        """Add a record as it is."""
        self.records.append(record)

    def type_is(self, source: Source, expected: type) -> None:
        """``type(x) is expected``."""
        self.records.append(fx_guards.TypeIs(source, expected, where=self._where()))

    def unreferenced(self, source: Source, *, plain_only: bool = False) -> None:
        """No weak reference to the object but guards'."""
        self.records.append(fx_guards.Unreferenced(source, plain_only, where=self._where()))

    def is_object(self, source: Source, expected: Any) -> None:
        """``x is expected``, and still of its class, where a program may change that."""
        self.records.append(fx_guards.IsObject(source, expected, where=self._where()))
        if may_change_class(expected):
            self.type_is(source, type(expected))

    def equals(self, source: Source, expected: Any) -> None:
        """Same type and equal value."""
        self.records.append(fx_guards.EqualsConstant(source, expected, where=self._where()))

    def length(self, source: Source, real: Any) -> None:
        """``len(x)`` stays as it is."""
        self.records.append(fx_guards.Length(source, len(real), where=self._where()))

    def present(self, source: Source, key: Any) -> None:
        """A dict has this key."""
        self.records.append(fx_guards.KeyPresent(source, key, where=self._where()))

    def absent(self, source: Source, key: Any) -> None:
        """A dict lacks this key."""
        self.records.append(fx_guards.KeyAbsent(source, key, where=self._where()))

    def keys(self, source: Source, real: dict[Any, Any]) -> None:
        """A dict's keys stay as they are, in order; keys that are no constants stay the same objects."""
        keys = tuple(key for key, _ in items_in_order(real))
        if all(map(is_plain_key, keys)):
            self.records.append(fx_guards.DictKeys(source, keys, where=self._where()))
            return
        self.length(source, keys)
        for index, key in enumerate(keys):
            if is_plain_key(key):
                self.equals(DictKeySource(source, index), key)

    def class_lookup(self, source: Source, name: str, found: Any, *, only_type: bool) -> None:
        """A class has this under ``name``; ``guards.ABSENT``: nothing."""
        self.records.append(fx_guards.ClassLookup(source, name, found, only_type, where=self._where()))

    def class_bases(self, source: Source, cls: type) -> None:
        """A class inherits from what it inherits from now."""
        self.records.append(fx_guards.ClassBases(source, cls.__mro__, where=self._where()))

    def function_state(self, source: Source, function: FunctionType) -> None:
        """A function has its code, and its constant defaults."""
        self.records.append(fx_guards.function_state(source, function, where=self._where()))

    def distinct(self, sources: Sequence[Source]) -> None:
        """No two of these paths lead to one object."""
        unique = list(dict.fromkeys(sources))
        if len(unique) > 1:
            self.records.append(fx_guards.DistinctObjects(unique[0], tuple(unique[1:]), where=self._where()))

    def same(self, first: Source, second: Source) -> None:
        """Two paths lead to one object."""
        if first != second:
            self.records.append(fx_guards.SameObject(second, first, where=self._where()))
