"""A function under ``functools.lru_cache`` that the program makes inside: what it has given is kept in the trace.

@functools.lru_cache(maxsize=None)
def steps(n):                       # runs once for each n, in each call of the compiled function
    return n if n < 2 else steps(n - 1) + steps(n - 2)
"""

from __future__ import annotations

import functools
from typing import Any

from dynamo_capture.foundation.errors import CapturedAnew
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import NONE, Const
from dynamo_capture.values.containers.sequences import TupleValue
from dynamo_capture.values.functions import BuiltinMethod
from dynamo_capture.values.objects.instance_dict import FunctionDictValue

_METHODS = frozenset({"cache_info", "cache_clear"})
_INFO: Any = functools._CacheInfo
_ALONE = (int, str)
"""Classes of a single argument that is a key by itself, and so is none beside an equal float."""


class NewCache(Value):
    """``maxsize`` entries at most, None: any number; those that were asked for last come last. ``attrs`` are attributes
    of the object."""

    __slots__ = ("_entries", "_hits", "_misses", "attrs", "function", "maxsize", "typed")
    python_class = functools._lru_cache_wrapper

    def __init__(self, function: Value, maxsize: int | None, typed: bool) -> None:
        self.function = function
        self.maxsize = maxsize
        self.typed = typed
        self.attrs: dict[str, Value] = {}
        self._entries: dict[Any, Value] = {}
        self._hits = self._misses = 0

    def children(self, tx: Context) -> list[Value]:
        """Where it is handed out, it must not have been asked: the real one has no entries. Else the frame is captured
        anew, and the graph ends where the cache is made."""
        if self._hits or self._misses:
            code = tx.frames[0].code
            tx.policy.functions.without_caches[id(code)] = code
            raise CapturedAnew
        return [self.function, *self.attrs.values()]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        tx.effects.advances(self)
        key = self._key(tx, args, kwargs)
        found = self._entries.pop(key, None)
        if found is not None:
            self._entries[key] = found
            self._hits += 1
            return found
        self._misses += 1
        made = self.function.call(tx, args, kwargs)
        if key not in self._entries and self.maxsize != 0:
            if self.maxsize is not None and len(self._entries) >= self.maxsize:
                del self._entries[next(iter(self._entries))]
            self._entries[key] = made
        return made

    def _key(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Any:
        named = [part for name, value in kwargs.items() for part in (name, tx.hash_key(value))]
        kinds = [value.python_type() for value in (*args, *kwargs.values())] if self.typed else []
        is_alone = len(args) == 1 and not kwargs and args[0].python_type() in _ALONE
        return (is_alone, *map(tx.hash_key, args)), tuple(named), tuple(kinds)

    def get_attr(self, tx: Context, name: str) -> Value:
        return BuiltinMethod(self, name) if name in _METHODS else super().get_attr(tx, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name not in _METHODS or args or kwargs:
            return super().call_method(tx, name, args, kwargs)
        tx.effects.advances(self)
        if name == "cache_info":
            counts = (self._hits, self._misses, self.maxsize, len(self._entries))
            return TupleValue([Const(count) for count in counts], _INFO)
        self._entries.clear()
        self._hits = self._misses = 0
        return NONE

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        return FunctionDictValue(self, frozenset()) if name == "__dict__" else self.attrs.get(name)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        self.attrs[name] = value

    def is_callable(self, tx: Context) -> bool:
        return True
