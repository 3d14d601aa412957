"""What calls that happen after the graph may change: what handlers of log records, and recorders of warnings, keep.

A warning or a record is given after the graph has run, which nobody notices who only looks at a terminal or a file. A
program that keeps them in objects of its own, and reads those, has to find them there: the graph ends before it does.
"""

from __future__ import annotations

import functools
import gc
import logging
import pathlib
import sys
import types
import warnings
from collections.abc import Iterator
from typing import Any

from dynamo_capture.context.state import Wrapping
from dynamo_capture.foundation.break_kinds import OUTSIDE_WORLD
from dynamo_capture.foundation.errors import GraphBreak

_MOST_OBJECTS = 500
_INSTALLED = frozenset({"site-packages", "dist-packages"})
"""The folders that packages are installed into."""
_PASSED_OVER = (types.ModuleType, types.CodeType, str, bytes, int, float, type(None))


class Outside:
    """Objects of the program that a deferred call of this trace may change."""

    def __init__(self) -> None:
        self._kept: dict[int, Any] = {}

    def holds(self, real: Any) -> bool:
        """Whether a deferred call may change the object."""
        return bool(self._kept) and id(real) in self._kept

    def warns(self, wrapping: Wrapping[Any]) -> None:
        """A warning will be shown, or recorded."""
        show: Any = getattr(warnings, "_showwarnmsg_impl", None)
        for function in (show, warnings.showwarning):
            if not isinstance(function, types.FunctionType) or function.__module__ != "warnings":
                self._keep(wrapping, function)

    def logs(self, wrapping: Wrapping[Any], logger: logging.Logger) -> None:
        """A record will be handled."""
        current: logging.Logger | None = logger
        while current is not None:
            for handler in (*current.handlers, *current.filters):
                self._keep(wrapping, handler)
            current = current.parent if current.propagate else None

    def _keep(self, wrapping: Wrapping[Any], owner: Any) -> None:
        """Take note of what ``owner`` leads to."""
        pending: list[Any] = [owner]
        found: dict[int, Any] = {}
        while pending and len(found) < _MOST_OBJECTS:
            item = pending.pop(0)
            if id(item) in found or issubclass(type(item), _PASSED_OVER) or _is_of_library(item):
                continue
            found[id(item)] = item
            pending.extend(_parts(item))
        if pending:
            raise GraphBreak(OUTSIDE_WORLD, "what a warning or log record goes to leads to very many objects")
        kept = {key: item for key, item in found.items() if not isinstance(item, (type, types.FunctionType))}
        if any(wrapping.value_of(real) is not None for real in kept.values()):
            raise GraphBreak(OUTSIDE_WORLD, "what a warning or log record is kept in has been read")
        self._kept.update(kept)


def _parts(item: Any) -> Iterator[Any]:
    """What an object refers to; of the globals of a function, those that it names."""
    if isinstance(item, types.FunctionType):
        space = item.__globals__
        yield from (space[name] for name in _names(item.__code__) if name in space)
        yield from (part for part in gc.get_referents(item) if part is not space)
        return
    yield from gc.get_referents(item)
    if isinstance(item, types.BuiltinMethodType):
        yield item.__self__


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _is_of_library(item: Any) -> bool:
    """Whether a class or function belongs to the standard library or an installed package: what such a one keeps in
    objects of its module or its class is not looked for, what its instances hold is."""
    if type(item) is not types.FunctionType and not issubclass(type(item), type):
        return False
    root = str(item.__module__ or "").partition(".")[0]
    return root in sys.stdlib_module_names or _is_installed(root)


@functools.lru_cache(1000)
def _is_installed(root: str) -> bool:
    """Whether a package was installed, and is not where somebody works on it."""
    module = sys.modules.get(root)
    places = [getattr(module, "__file__", None) or "", *getattr(module, "__path__", ())]
    return any(not _INSTALLED.isdisjoint(pathlib.PurePath(place).parts) for place in places)
