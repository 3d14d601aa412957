"""Sets and frozensets whose members, and whose order of iteration, the trace knows.

A set is iterated in the order of its hash table, which depends on how it came about. Beside the members, a value
therefore keeps a real set of their keys, to which everything happens that happens to the set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from dynamo_capture.foundation.break_kinds import CONTAINER_CLASS
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.guard_kinds.sets import SetOrder
from dynamo_capture.runtime.calls import changed_sets
from dynamo_capture.values.base import Context, IteratorValue, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.keys import HashedKey
from dynamo_capture.values.sequence_iterator import WatchingIterator
from fx_interface.source import Source


class Making(NamedTuple):
    """A call that makes a set of existing ones: its operands are such sets, other calls, and members."""

    function: Callable[..., Any]
    operands: tuple[Making | Value, ...]

    def values(self) -> list[Value]:
        """The values that it takes."""
        found: list[Value] = []
        for operand in self.operands:
            found += operand.values() if isinstance(operand, Making) else [operand]
        return found


class SetValue(Value):
    """``items``: hashable key -> member. ``order``: the keys as a real set; that of an existing set may be the set
    itself until it is changed. ``made_by``: how Python makes it of existing sets, which have the hashes of their
    members; None where that is not known, or not so."""

    __slots__ = ("_order_guarded", "cls", "items", "made_by", "order", "real", "source")
    is_mutable = True

    def __init__(
        self,
        items: dict[Any, Value],
        cls: type = set,
        source: Source | None = None,
        real: Any = None,
        order: Any = None,
    ) -> None:
        self.items = items
        self.cls = cls
        self.source = source
        self.real = real
        self.order = set(items) if order is None else order
        self._order_guarded = False
        self.made_by: Making | None = None

    def python_type(self) -> type:
        return self.cls

    def python_object(self, tx: Context) -> Any:
        if self.all_constant:
            return self.cls(self.table(tx))
        return self.cls(item.python_object(tx) for item in self.items.values())

    def children(self, tx: Context) -> list[Value]:
        making = self.making(tx)
        return list(self.items.values()) if making is None else making.values()

    def making(self, tx: Context) -> Making | None:
        """How it is made without asking its members for their hashes, if one of them has code of the program for that
        and the existing sets are as they were."""
        if self.made_by is None or not any(type(key) is HashedKey for key in self.items):
            return None
        is_as_it_was = not any(tx.effects.has_changed(one) for one in self.made_by.values())
        return self.made_by if is_as_it_was else None

    def of_existing(self) -> Making | SetValue | None:
        """Itself where it existed before the trace, or how it is made."""
        return self.made_by if self.real is None else self

    def follow(self, function: Callable[..., Any], before: Making | None, *operands: Value) -> None:
        """Note a change after it has been made: ``function`` makes it of what it was."""
        self.made_by = None if before is None else Making(function, (before, *operands))

    def as_constant(self) -> Any:
        if self.cls is not frozenset:
            raise NotConstant(self)
        return frozenset(item.as_constant() for item in self.items.values())

    def length(self, tx: Context) -> int:
        return len(self.items)

    def truth(self, tx: Context) -> bool:
        return bool(self.items)

    def contains(self, tx: Context, item: Value) -> bool:
        return tx.hash_key(item) in self.items

    def iterate(self, tx: Context) -> IteratorValue:
        return WatchingIterator(
            self.unpack(tx),
            type(iter(set())),
            self,
            lambda: len(self.items),
            "Set changed size during iteration",
        )

    def unpack(self, tx: Context) -> list[Value]:
        if self.table(tx) is None:
            raise GraphBreak(CONTAINER_CLASS, "the order of a set that was changed is asked for")
        if self.order is self.real:
            return list(self.items.values())
        return [self.items[key] for key in self.order]

    def table(self, tx: Context) -> Any:
        """``order``, with a guard where it is an existing set's; None if it is not known."""
        if self.real is not None and self.order is self.real and not self._order_guarded:
            assert self.source is not None
            self._order_guarded = True
            if len(self.items) > 1:
                tx.guards.add(SetOrder(self.source, tuple(self.real), where=tx.where()))
        return self.order

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.calls.call_builtin_method(self, name, args, kwargs)

    # Changes.

    def _changes(self, tx: Context) -> None:
        tx.effects.mutates(self)
        self.made_by = None
        self.table(tx)
        if self.order is not None and self.order is self.real:
            copied = set(self.order)
            self.order = copied if list(copied) == list(self.order) else None

    def add(self, tx: Context, value: Value) -> None:
        """``s.add(value)``."""
        before = self.made_by
        self._changes(tx)
        key = tx.hash_key(value)
        self.items.setdefault(key, value)
        if self.order is not None:
            self.order.add(key)
        self.follow(changed_sets.with_member, before, value)

    def discard(self, tx: Context, key: Any) -> None:
        """``s.discard(...)`` of the member with this key."""
        self._changes(tx)
        self.items.pop(key, None)
        if self.order is not None:
            self.order.discard(key)

    def pop(self, tx: Context) -> Value:
        """``s.pop()``: which member comes out depends on the table."""
        if not self.items:
            raise tx.raises(KeyError, "pop from an empty set")
        if (self.real is not None or self.order is None) and len(self.items) > 1:
            raise GraphBreak(CONTAINER_CLASS, "a member of an existing set is popped")
        self._changes(tx)
        if self.order is None:
            return self.items.pop(next(iter(self.items)))
        return self.items.pop(self.order.pop())

    def clear(self, tx: Context) -> None:
        """``s.clear()``."""
        self._changes(tx)
        self.items.clear()
        self.order = set()

    def own_key(self, tx: Context) -> Any:
        return frozenset(self.items) if self.cls is frozenset else None

    def copied(self, tx: Context) -> Value:
        return self if self.cls is frozenset else tx.calls.as_set(self, self.cls)

    def combined(self, tx: Context, operation: Callable[[Any, Any], Any], other: SetValue) -> SetValue:
        """``self | other`` and so on: a new set of this one's class."""
        mine, theirs = self.table(tx), other.table(tx)
        if mine is None or theirs is None:
            mine, theirs = self.items.keys(), other.items.keys()
        order = operation(mine, theirs)
        known = {**other.items, **self.items}
        made = SetValue({key: known[key] for key in order}, self.cls, order=set(order))
        left, right = self.of_existing(), other.of_existing()
        if left is not None and right is not None:
            made.made_by = Making(operation, (left, right))
        return made

    def update_with(self, tx: Context, operation: Callable[[Any, Any], Any], other: SetValue) -> None:
        """``self |= other`` and so on."""
        theirs, before, right = other.table(tx), self.made_by, other.of_existing()
        self._changes(tx)
        known = {**other.items, **self.items}
        if self.order is None or theirs is None:
            self.order = None
            keys = list(operation(set(self.items), set(other.items)))
        else:
            self.order = operation(self.order, theirs)
            keys = list(self.order)
        present = set(keys)
        kept = [key for key in self.items if key in present]
        self.items = {key: known[key] for key in dict.fromkeys([*kept, *keys])}
        if before is not None and right is not None:
            self.made_by = Making(operation, (before, right))

    @property
    def all_constant(self) -> bool:
        """Whether the members are constants, so that ``order`` is a set of them."""
        return self.order is not None and all(isinstance(item, Const) for item in self.items.values())
