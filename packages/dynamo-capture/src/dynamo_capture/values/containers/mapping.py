"""Dictionaries: those that existed are read key by key until something needs all of them."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import fx_guards
from dynamo_capture.foundation.errors import NotConstant
from dynamo_capture.foundation.known_objects import is_plain_key, items_in_order
from dynamo_capture.sources.sources import item_source
from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Lazy, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.keys import is_opaque, set_apart
from dynamo_capture.values.containers.sequences import TupleValue
from fx_interface.source import DictKeySource, Source

_MISSING: Any = object()


class DictValue(Value):
    """A dict of class ``cls``. ``entries`` maps a hashable key to ``[key, value]``; None: as ``real`` has it, save for
    what was ``stored`` since, whatever else there is, and after that under keys that are not known (``late``).
    ``attrs``: attributes of one that the trace has made, of a class whose instances have some.
    """

    __slots__ = (
        "attrs",
        "cls",
        "entries",
        "factory",
        "keys_guarded",
        "late",
        "reads",
        "real",
        "source",
        "stored",
    )
    is_mutable = True

    def __init__(
        self,
        entries: dict[Any, list[Value]] | None = None,
        cls: type = dict,
        source: Source | None = None,
        real: dict[Any, Any] | None = None,
    ) -> None:
        self.entries = {} if entries is None and real is None else entries
        self.cls = cls
        self.source = source
        self.real = real
        self.reads: dict[Any, Value] = {}
        self.stored: dict[Any, list[Value]] = {}
        self.late: list[list[Value]] = []
        self.factory: Value | None = None
        self.attrs: dict[str, Value] = {}
        self.keys_guarded = False

    def __repr__(self) -> str:
        return f"DictValue({self.entries if self.entries is not None else self.source})"

    def python_type(self) -> type:
        return self.cls

    def python_object(self, tx: Context) -> Any:
        if self.cls is not dict:
            raise NotConstant(self)
        entries = self.all_entries(tx).values()
        return {k.python_object(tx): tx.force(v).python_object(tx) for k, v in entries}

    def parts(self, tx: Context) -> list[Value]:
        return [tx.force(value) for _, value in self.all_entries(tx).values()]

    def mapped(self, tx: Context, change: Callable[[Value], Value]) -> Value:
        entries = self.all_entries(tx).items()
        return DictValue({key: [name, change(tx.force(value))] for key, (name, value) in entries}, self.cls)

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        entries = self.all_entries(tx).values()
        return {tx.constant(key): change(tx.force(value)) for key, value in entries}

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        entries = self.all_entries(tx).values()
        return tuple([(tx.constant(key), tx.force(value).frozen(tx, tensors)) for key, value in entries])

    def children(self, tx: Context) -> list[Value]:
        entries = [part for entry in self.all_entries(tx).values() for part in entry]
        factory = [] if self.factory is None else [self.factory]
        return [*entries, *factory, *self.attrs.values()]

    @property
    def is_changed(self) -> bool:
        """Whether the trace has made or changed the dict, or read all of it."""
        return self.entries is not None or bool(self.stored or self.late)

    def _settle(self, tx: Context) -> None:
        """Something is asked for, so that it matters under which keys was stored."""
        late, self.late = self.late, []
        for key, value in late:
            self.stored.setdefault(tx.hash_key(key), [key, value])[1] = value

    def find(self, tx: Context, key: Any, *, guard: bool = True) -> Value | None:
        """The value under a hashable key, or None. What was looked for is guarded."""
        if self.entries is not None:
            entry = self.entries.get(key)
            return None if entry is None else tx.force(entry[1])
        self._settle(tx)
        entry = self.stored.get(key)
        found = self.reads.get(key) if entry is None else tx.force(entry[1])
        if found is not None:
            return found
        assert self.real is not None
        assert self.source is not None
        real = dict.get(self.real, key, _MISSING) if not is_opaque(key) else _MISSING
        if real is _MISSING:
            if is_opaque(key):
                self.all_entries(tx)
                return self.find(tx, key)
            if guard:
                tx.guard_absent(self.source, key)
            return None
        made = (
            tx.wrap(real, item_source(self.source, key, type(self.real)))
            if is_plain_key(key)
            else self._by_scan(tx, key)
        )
        self.reads[key] = made
        return made

    def _by_scan(self, tx: Context, key: Any) -> Value:
        return tx.force(self.all_entries(tx)[key][1])

    def all_entries(self, tx: Context) -> dict[Any, list[Value]]:
        """Every entry, with a guard on the keys of an existing dict."""
        if self.entries is None:
            assert self.real is not None
            assert self.source is not None
            self._settle(tx)
            self.guard_keys(tx)
            keys: list[Any] = []
            entries: list[list[Value]] = []
            for index, (key, real) in enumerate(items_in_order(self.real)):
                plain = is_plain_key(key)
                read = self.reads.get(key) if plain else None
                name = Const(key) if plain else tx.wrap(key, DictKeySource(self.source, index))
                keys.append(key if plain else tx.hash_key(name))
                entries.append([name, read or Lazy(real, item_source(self.source, key, type(self.real)))])
            set_apart(keys)
            self.entries = dict(zip(keys, entries, strict=True))
            for key, (name, value) in self.stored.items():
                self.entries.setdefault(key, [name, value])[1] = value
        return self.entries

    def holds_tensor(self, tx: Context) -> bool:
        held = [*self.stored.values(), *self.late] if self.entries is None else self.entries.values()
        return any(tx.force(entry[1]).holds_tensor(tx) for entry in held)

    def copied(self, tx: Context) -> Value:
        return tx.calls.copy_dict(self)

    def guard_keys(self, tx: Context) -> None:
        """The keys of an existing dict stay as they are."""
        if not self.keys_guarded and self.source is not None and self.real is not None:
            self.keys_guarded = True
            tx.guard_keys(self.source, self.real)

    def length(self, tx: Context) -> int:
        if not self.is_changed:
            assert self.real is not None
            assert self.source is not None
            if not self.keys_guarded:
                tx.guard_length(self.source, self.real)
            return dict.__len__(self.real)
        return len(self.all_entries(tx))

    def truth(self, tx: Context) -> bool:
        return self.length(tx) > 0

    def contains(self, tx: Context, item: Value) -> bool:
        key = tx.hash_key(item)
        self._settle(tx)
        if self.entries is None and key in self.stored:
            return True
        if self.entries is None and self.real is not None and not is_opaque(key):
            present = dict.__contains__(self.real, key)
            if present and key not in self.reads:
                tx.guard_present(self.source, key)
            elif not present:
                tx.guard_absent(self.source, key)
            return present
        return key in self.all_entries(tx)

    def get_item(self, tx: Context, key: Value) -> Value:
        found = self.find(tx, tx.hash_key(key))
        if found is not None:
            return found
        if self.factory is not None and issubclass(self.cls, collections.defaultdict):
            made = self.factory.call(tx, [], {})
            self.set_item(tx, key, made)
            return made
        raise tx.raises(KeyError, key)

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        if self.entries is None and key.expr is not None:
            tx.effects.mutates(self)
            self.late.append([key, value])
            return
        self._settle(tx)
        hashed = tx.hash_key(key)
        unread = self.entries is None and is_plain_key(hashed)
        entries = self.stored if unread else self.all_entries(tx)
        tx.effects.mutates(self)
        entry = entries.get(hashed)
        if entry is None:
            entries[hashed] = [key, value]
        else:
            entry[1] = value

    def del_item(self, tx: Context, key: Value) -> None:
        entries = self.all_entries(tx)
        hashed = tx.hash_key(key)
        if hashed not in entries:
            raise tx.raises(KeyError, key)
        tx.effects.mutates(self)
        del entries[hashed]

    def iterate(self, tx: Context) -> IteratorValue:
        return DictIterator(tx, self, "keys")

    def unpack(self, tx: Context) -> list[Value]:
        return [entry[0] for entry in self.all_entries(tx).values()]

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name == "default_factory" and issubclass(self.cls, collections.defaultdict):
            return self.factory or Const(None)
        return self.attrs.get(name)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        is_made = self.source is None and self.real is None and self.cls.__dictoffset__ != 0
        if not is_made or tx.attributes.in_class(self.cls, name) is not fx_guards.ABSENT:
            return super().set_attr(tx, name, value)
        tx.effects.mutates(self)
        self.attrs[name] = value

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.calls.call_builtin_method(self, name, args, kwargs)


class DictIterator(IteratorValue):
    """Over a dict or a view of it. Values are read when it comes to them; a dict that has grown or shrunk by then
    raises what Python raises, because the entries themselves are iterated."""

    __slots__ = ("_keys", "_size", "backward", "has_ended", "kind", "owner", "position")

    def __init__(self, tx: Context, owner: DictValue, kind: str, backward: bool = False) -> None:
        self.owner = owner
        self.kind = kind
        self.backward = backward
        self.position = 0
        self.has_ended = False
        entries = owner.all_entries(tx)
        self._size = len(entries)
        self._keys = reversed(entries) if backward else iter(entries)

    def python_type(self) -> type:
        view = getattr(self.owner.cls(), self.kind)()
        return type(reversed(view) if self.backward else iter(view))

    def is_spoiled(self, tx: Context) -> bool:
        """Whether it will give no item any more, as entries have come or gone."""
        return not self.has_ended and len(self.owner.all_entries(tx)) != self._size

    def children(self, tx: Context) -> list[Value]:
        return [self.owner]

    def next(self, tx: Context) -> Value:
        try:
            key = next(self._keys)
        except StopIteration:
            self.has_ended = True
            raise IteratorStop from None
        except RuntimeError as error:
            ordered = issubclass(self.owner.cls, collections.OrderedDict)
            raise tx.raises(
                RuntimeError, "OrderedDict mutated during iteration" if ordered else str(error)
            ) from None
        self.position += 1
        name, value = self.owner.all_entries(tx)[key]
        if self.kind == "keys":
            return name
        return tx.force(value) if self.kind == "values" else TupleValue([name, tx.force(value)])
