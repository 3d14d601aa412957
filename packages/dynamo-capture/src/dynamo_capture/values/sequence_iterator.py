"""Iterators over items that are known one by one, and over containers that may change meanwhile."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, Value


class SequenceIterator(IteratorValue):
    """Over items that nothing changes meanwhile. ``kind``: the iterator's class; ``owner``: what it is over."""

    __slots__ = ("has_ended", "items", "kind", "owner", "position")

    def __init__(
        self,
        items: list[Value],
        kind: type = type(iter([])),  # noqa: B008  # a class
        owner: Value | None = None,
    ) -> None:
        self.items = items
        self.kind = kind
        self.owner = owner
        self.position = 0
        self.has_ended = False

    def python_type(self) -> type:
        return self.kind

    def children(self, tx: Context) -> list[Value]:
        left = self.items[self.position :]
        return left if self.owner is None or self.has_ended else [self.owner, *left]

    def next(self, tx: Context) -> Value:
        position = self.position
        if self.has_ended or position >= len(self.items):
            self.has_ended = True
            raise IteratorStop
        self.position = position + 1
        return tx.force(self.items[position])


class ListIterator(IteratorValue):
    """Over a list that may still grow while it is iterated; how long it is matters at its end. ``owner``: the
    ``ListValue``; ``holder``: it, or the object of a class made from ``list`` whose content it is."""

    __slots__ = ("has_ended", "holder", "owner", "position")
    python_class = type(iter([None]))

    def __init__(self, owner: Any, holder: Value) -> None:
        self.owner = owner
        self.holder = holder
        self.position = 0
        self.has_ended = False

    def children(self, tx: Context) -> list[Value]:
        return [self.holder]

    def next(self, tx: Context) -> Value:
        position = self.position
        found = self.owner.read_ahead(position)
        if found is None:
            if self.has_ended or position >= len(self.owner.items):
                self.has_ended = True
                raise IteratorStop
            found = self.owner.items[position]
        self.position = position + 1
        return tx.force(found)


class ReversedListIterator(IteratorValue):
    """Over a list, from the place where its end was on, whatever the list has become. ``owner``, ``holder``: as above;
    ``upcoming``: the index of the next item, -1 at the end."""

    __slots__ = ("holder", "owner", "upcoming")
    python_class = type(reversed([None]))

    def __init__(self, owner: Any, holder: Value) -> None:
        self.owner = owner
        self.holder = holder
        self.upcoming = len(owner.items) - 1

    def children(self, tx: Context) -> list[Value]:
        return [self.holder]

    def next(self, tx: Context) -> Value:
        if not 0 <= self.upcoming < len(self.owner.items):
            self.upcoming = -1
            raise IteratorStop
        found = self.owner.items[self.upcoming]
        self.upcoming -= 1
        return tx.force(found)


class WatchingIterator(SequenceIterator):
    """Over a container that must not change meanwhile. ``state``: what would tell of a change; ``words``: how the
    iterator refuses to go on, which it does at its end too (``refuses_at_end``), or once only (``refuses_once``)."""

    __slots__ = ("_before", "_state", "refuses_at_end", "refuses_once", "words")

    def __init__(
        self,
        items: list[Value],
        kind: type,
        owner: Value,
        state: Callable[[], int],
        words: str,
        refuses_at_end: bool = False,
        refuses_once: bool = False,
    ) -> None:
        super().__init__(items, kind, owner)
        self._state = state
        self._before = state()
        self.words = words
        self.refuses_at_end = refuses_at_end
        self.refuses_once = refuses_once

    @property
    def is_spoiled(self) -> bool:
        """Whether it will give no item any more, as its container was changed."""
        return self._before != self._state() and (self.refuses_at_end or not self.has_ended)

    def next(self, tx: Context) -> Value:
        if self.is_spoiled:
            self._before = -1
            self.has_ended = self.refuses_once
            raise tx.raises(RuntimeError, self.words)
        return super().next(tx)


class DequeIterator(WatchingIterator):
    """Over a deque, forward or backward; an item that is replaced meanwhile is seen."""

    __slots__ = ("_backward", "_listed")

    def __init__(self, listed: Any, holder: Value, backward: bool = False) -> None:
        self._listed = listed
        self._backward = backward
        kind: type = type(reversed(collections.deque()) if backward else iter(collections.deque()))
        words = "deque mutated during iteration"
        super().__init__([], kind, holder, lambda: listed.generation, words, not backward, backward)

    @property
    def items(self) -> list[Value]:
        """All items, in their order."""
        items: list[Value] = self._listed.items
        return items[::-1] if self._backward else items

    @items.setter
    def items(self, items: list[Value]) -> None:
        assert not items
