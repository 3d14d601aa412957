"""The iterator over items that are known one by one."""

from __future__ import annotations

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
        if position >= len(self.items):
            self.has_ended = True
            raise IteratorStop
        self.position = position + 1
        return tx.force(self.items[position])
