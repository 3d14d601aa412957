"""A guard set as a tree: sources that share a prefix share its nodes, so that each value is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from operator import attrgetter
from typing import Any

from fx_guards.kinds.base import GuardRecord
from fx_interface.guard import Guard
from fx_interface.python_runtime.quick_dataclasses import dataclass
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

    ``relations`` are the guards over several values; each of those values has a slot, which its node names.
    """

    def __init__(self, guards: Iterable[Guard]) -> None:
        self.roots: list[TreeNode] = []
        self.relations: list[tuple[int, Guard]] = []
        self.slot_count = 0
        self._nodes: dict[tuple[Any, ...], TreeNode] = {}
        self._known: dict[int, tuple[Source, TreeNode]] = {}
        self._seen_relations: set[Guard] = set()
        self._singles: dict[type, bool] = {}
        self._own_fields: dict[type, _Fields] = {}
        kept: list[Guard] = []
        for guard in guards:
            if self._add(len(kept), guard):
                kept.append(guard)
        self.guards: tuple[Guard, ...] = tuple(kept)

    def _add(self, index: int, guard: Guard) -> bool:
        """Put a guard where it belongs; False for one that is there already."""
        cls = type(guard)
        single = self._singles.get(cls)
        if single is None:
            single = self._singles[cls] = _is_single(cls)
        if not single and is_relation(guard):
            return self._add_relation(index, guard)
        place = self.node(guard.source).guards
        for _, earlier in place:
            if earlier == guard:
                return False
        place.append((index, guard))
        return True

    def _add_relation(self, index: int, guard: Guard) -> bool:
        if guard in self._seen_relations:
            return False
        self._seen_relations.add(guard)
        self.relations.append((index, guard))
        for source in sources_of(guard):
            self.add_slot(source)
        return True

    def add_slot(self, source: Source) -> int:
        """The slot in which the value of ``source`` is kept, made if there is none yet."""
        node = self.node(source)
        if node.slot < 0:
            node.slot = self.slot_count
            self.slot_count += 1
        return node.slot

    def node(self, source: Source) -> TreeNode:
        """The node that reads ``source``, made with all its prefixes if there is none yet."""
        known = self._known.get(id(source))
        if known is not None:
            return known[1]
        base = source.base
        parent = None if base is None else self.node(base)
        cls = type(source)
        own = self._own_fields.get(cls)
        if own is None:
            own = self._own_fields[cls] = _own_fields(cls)
        key = (cls, id(parent), *own(source))
        found = self._nodes.get(key)
        if found is None:
            found = self._nodes[key] = TreeNode(source)
            (self.roots if parent is None else parent.children).append(found)
        self._known[id(source)] = (source, found)  # held, so that its id stays its own
        return found


_Fields = Callable[[Any], tuple[Any, ...]]


def _own_fields(cls: type) -> _Fields:
    """How to read what tells a source of a class from its siblings: its own fields, with their types (1 is not True).

    A class without slots is told by the whole.
    """
    fields = cls.__dict__.get("__slots__")
    if fields is None:
        return lambda source: (source,)
    if not fields:
        return lambda source: ()
    return _one(fields[0]) if len(fields) == 1 else _several(tuple(fields))


def _one(name: str) -> _Fields:
    get = attrgetter(name)

    def read(source: Source) -> tuple[Any, ...]:
        own = get(source)
        return own, type(own)

    return read


def _several(names: tuple[str, ...]) -> _Fields:
    get = attrgetter(*names)

    def read(source: Source) -> tuple[Any, ...]:
        own = get(source)
        return *own, *map(type, own)

    return read


def _is_single(cls: type) -> bool:
    """Whether all guards of a class are sure to be about one value, as those of our kinds are that say nothing else."""
    return issubclass(cls, GuardRecord) and cls.sources is GuardRecord.sources and not cls.takes_tuple


def sources_of(guard: Guard) -> tuple[Source, ...]:
    """Every source that a guard is about; a third party's record may have no ``sources``."""
    sources: tuple[Source, ...] = getattr(guard, "sources", None) or (guard.source,)
    return sources


def is_relation(guard: Guard) -> bool:
    """Whether ``holds`` takes the tuple of several values."""
    return len(sources_of(guard)) > 1 or getattr(guard, "takes_tuple", False)
