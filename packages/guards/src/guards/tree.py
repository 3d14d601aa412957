"""A guard set as a tree: sources that share a prefix share its nodes, so that each value is read once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from fx_interface.guard import Guard
from fx_interface.source import Source


@dataclass(slots=True)
class TreeNode:
    """One value that is read: the guards on it alone, and what is read from it."""

    source: Source
    guards: list[tuple[int, Guard]] = field(default_factory=list)
    children: list[TreeNode] = field(default_factory=list)
    slot: int = -1

    def walk(self) -> Iterator[TreeNode]:
        """This node and all below it, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()


class GuardSet:
    """Guards without repeats, in the order given, and their tree.

    ``relations`` are the guards over several values; each of those values has a slot, numbered by ``slots``.
    """

    def __init__(self, guards: Iterable[Guard]) -> None:
        self.guards: tuple[Guard, ...] = tuple(dict.fromkeys(guards))
        self.roots: list[TreeNode] = []
        self.relations: list[tuple[int, Guard]] = []
        self.slots: dict[Source, int] = {}
        self._nodes: dict[Source, TreeNode] = {}
        for index, guard in enumerate(self.guards):
            self._add(index, guard)

    def _add(self, index: int, guard: Guard) -> None:
        if not is_relation(guard):
            self.node(guard.source).guards.append((index, guard))
            return
        self.relations.append((index, guard))
        for source in sources_of(guard):
            self.add_slot(source)

    def add_slot(self, source: Source) -> int:
        """The slot in which the value of ``source`` is kept, made if there is none yet."""
        node = self.node(source)
        if node.slot < 0:
            node.slot = len(self.slots)
            self.slots[source] = node.slot
        return node.slot

    def node(self, source: Source) -> TreeNode:
        """The node that reads ``source``, made with all its prefixes if there is none yet."""
        found = self._nodes.get(source)
        if found is None:
            found = self._nodes[source] = TreeNode(source)
            base = source.base
            (self.roots if base is None else self.node(base).children).append(found)
        return found


def sources_of(guard: Guard) -> tuple[Source, ...]:
    """Every source that a guard is about; a third party's record may have no ``sources``."""
    sources: tuple[Source, ...] = getattr(guard, "sources", None) or (guard.source,)
    return sources


def is_relation(guard: Guard) -> bool:
    """Whether ``holds`` takes the tuple of several values."""
    return len(sources_of(guard)) > 1 or getattr(guard, "takes_tuple", False)
