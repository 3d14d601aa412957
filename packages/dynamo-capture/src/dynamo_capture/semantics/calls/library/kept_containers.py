"""Whether an object leads to another one, by what Python's garbage collector knows of references."""

from __future__ import annotations

import gc
import types
from collections.abc import Iterable, Iterator
from typing import Any

_CONTAINERS = (list, dict, set, bytearray)
_NOT_FOLLOWED = (
    type,
    types.ModuleType,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.CodeType,
    str,
    int,
)


def containers_in(values: Iterable[Any]) -> Iterator[Any]:
    """The lists, dicts and sets among values and in them, those in tuples too."""
    for value in values:
        if type(value) in _CONTAINERS:
            yield value
        if type(value) is dict:
            yield from containers_in(value.values())
        elif type(value) in (list, tuple, set, frozenset):
            yield from containers_in(value)


def leads_to(root: Any, targets: Iterable[Any]) -> bool:
    """Whether ``root`` is one of the targets, or refers to one, at any distance."""
    wanted = {id(target) for target in targets}
    seen: dict[int, Any] = {}
    waiting = [root] if wanted else []
    while waiting:
        value = waiting.pop()
        if id(value) in wanted:
            return True
        if id(value) not in seen and not isinstance(value, _NOT_FOLLOWED):
            seen[id(value)] = value
            waiting += gc.get_referents(value)
    return False
