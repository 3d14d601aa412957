"""Paths below a module, told from the module on: the same path is followed below another one.

layer.__dict__['_parameters']['weight']  ->  place 3: module, __dict__ of 0, ['_parameters'] of 1, ['weight'] of 2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import CellType, FunctionType, MethodType
from typing import Any

from dynamo_capture.sources.sources import ContentSource
from fx_interface.source import (
    AttrSource,
    DictKeySource,
    InstanceDictSource,
    ItemSource,
    Source,
    TypeSource,
)

_READ_WITHOUT_CODE = (InstanceDictSource, ItemSource, ContentSource, DictKeySource, TypeSource)
_OF_FUNCTIONS = frozenset(
    {"__closure__", "cell_contents", "__defaults__", "__kwdefaults__", "__func__", "__self__"}
)


_PYTHONS = (dict, list, tuple, FunctionType, MethodType, CellType)


def _is_read_by_python(source: Source, parent: Any) -> bool:
    """Whether reading it runs no code of a program, whatever ``parent`` is."""
    return type(source) in (InstanceDictSource, TypeSource) or any(type(parent) is one for one in _PYTHONS)


class NotFollowed(Exception):
    """A path that is not followed below another module: reading it may run code of the program."""


class Paths:
    """The paths below the module that is read from ``root``."""

    def __init__(self, root: Source) -> None:
        self._root = root
        self._steps: list[tuple[type[Any], int, tuple[Any, ...], Source]] = []
        self._places: dict[int, tuple[Source, int]] = {id(root): (root, 0)}
        self._equal: dict[tuple[Any, ...], int] = {}
        self.asked: set[int] = set()
        """Places of objects that are asked for an attribute, which their classes answer."""

    def place(self, source: Source) -> int:
        """The place of a path; -1 where it is not below the module."""
        known = self._places.get(id(source))
        if known is not None:
            return known[1]
        found = 0 if source == self._root else self._place(source)
        self._places[id(source)] = (source, found)  # held, so that its id stays its own
        return found

    def _place(self, source: Source) -> int:
        base = source.base
        parent = -1 if base is None else self.place(base)
        if parent < 0:
            return -1
        kind = type(source)
        if isinstance(source, AttrSource) and source.name not in _OF_FUNCTIONS:
            self.asked.add(parent)
        elif kind not in _READ_WITHOUT_CODE and kind is not AttrSource:
            raise NotFollowed(str(source))
        own = tuple([getattr(source, one.name) for one in fields(kind)[1:]])
        key = (kind, parent, *own, *map(type, own))
        found = self._equal.get(key)
        if found is None:
            self._steps.append((kind, parent, own, source))
            found = self._equal[key] = len(self._steps)
        return found

    def objects(self, module: Any, kinds: Mapping[int, type]) -> list[Any]:
        """What lies at each place below a module. Raises what the reads raise; NotFollowed where something is not of
        its class in ``kinds``."""
        found: list[Any] = []
        steps: list[Any] = [None, *self._steps]
        for place, step in enumerate(steps):
            if step is None:
                one = module
            else:
                _, parent, _, source = step
                if parent not in kinds and not _is_read_by_python(source, found[parent]):
                    raise NotFollowed(str(source))
                one = source.step(found[parent])
            if type(one) is not kinds.get(place, type(one)):
                raise NotFollowed(str(step))
            found.append(one)
        return found

    def below(self, root: Source) -> list[Source]:
        """Each place's path below another module."""
        made = [root]
        for kind, parent, own, _ in self._steps:
            made.append(kind(made[parent], *own))
        return made
