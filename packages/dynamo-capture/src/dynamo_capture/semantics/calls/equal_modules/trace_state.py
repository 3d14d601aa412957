"""What a trace knows, as a list that two moments can be compared by: whoever adds a field to a service adds it here.

trace_state(tx)  ->  (3, True, (address, 2, ...), ...)
"""

from __future__ import annotations

import collections
from typing import Any

import torch

from dynamo_capture.frames.frame import Frame
from dynamo_capture.semantics.modes.modes import switches
from dynamo_capture.values import Const, DictValue, ListValue, Value
from dynamo_capture.values.base import Context
from fx_interface.source import Source

_PLAIN = frozenset({bool, int, float, str, type(None)})
_CONTAINERS = (list, dict, set, collections.deque)
_LISTED = 8
"""Of containers with at most so many members it counts which they are, of others how many."""
_OURS = ("dynamo_capture.", "fx_interface.symbols", "fx_interface.operators")
_OWN = __name__.rpartition(".")[0]
_GROWING = frozenset(
    {
        *(("Trace", name) for name in ("steps", "runs", "_locations")),
        *(("GraphOutput", name) for name in ("inputs", "_names", "calls", "draws", "saving", "_pure")),
        *(("Tensors", name) for name in ("inputs", "_static_memo")),
        *(("Wrapping", name) for name in ("by_identity", "constants")),
        *(("SizeHistory", name) for name in ("floats", "integers", "sizes", "strides", "forms")),
        ("GuardLog", "records"),
        ("_Names", "_parts"),
        ("Asking", "_before"),
        ("ShapeEnv", "location"),
        ("ZeroFacts", "_whole"),
    }
)
"""What reading existing objects, operations on tensors and caught exceptions add to, and nothing else asks about what
others have put there."""


class TraceState:
    """Reads the state of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._fields: list[tuple[Any, str]] = []
        seen: set[int] = set()
        waiting: list[Any] = [tx]
        while waiting:
            service = waiting.pop()
            if id(service) in seen:
                continue
            seen.add(id(service))
            for name in _names_of(service):
                if (type(service).__name__, name) in _GROWING:
                    held = getattr(service, name)
                    if isinstance(held, _CONTAINERS) or type(held) in _PLAIN:
                        continue
                    if _is_service(held):
                        waiting.append(held)
                    continue
                self._fields.append((service, name))
                held = getattr(service, name)
                if _is_service(held):
                    waiting.append(held)

    def read(self) -> tuple[Any, ...] | None:
        """What the trace knows now; None where what it has changed is more than constants in attributes."""
        changed = _changed(self._tx)
        if changed is None:
            return None
        return (
            tuple(switches().values()),
            torch.get_default_dtype(),
            changed,
            *[_mark(getattr(service, name)) for service, name in self._fields],
        )


def _names_of(service: Any) -> list[str]:
    names = list(getattr(service, "__dict__", ()))
    for cls in type(service).__mro__:
        slots = cls.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return [name for name in dict.fromkeys(names) if name != "__weakref__" and hasattr(service, name)]


def _is_service(held: Any) -> bool:
    kind = type(held)
    if kind.__module__.startswith(_OWN):
        return False
    if isinstance(held, (Value, Source, Frame)) or issubclass(kind, type):
        return False
    return kind.__module__.startswith(_OURS) and not issubclass(kind, (tuple, Exception))


def _mark(held: Any) -> Any:
    if type(held) in _PLAIN:
        return held
    if isinstance(held, _CONTAINERS):
        if len(held) > _LISTED:
            return (id(held), len(held))
        members = held.values() if isinstance(held, dict) else held
        return (id(held), *map(id, members))
    return id(held)


def _changed(tx: Context) -> tuple[Any, ...] | None:
    """Attributes of existing objects that the trace has set to constants, or to new dicts
    and lists without content; None where it has changed anything else."""
    found = []
    for key, entry in tx.effects.log.items():
        if entry[0] != "attr":
            return None
        value = entry[1].attrs.get(entry[2])
        if type(value) is not Const and not _is_empty(tx, value):
            return None
        found += [key, id(value)]
    return tuple(found)


def _is_empty(tx: Context, value: Value | None) -> bool:
    if isinstance(value, DictValue):
        return value.real is None and not value.all_entries(tx)
    return isinstance(value, ListValue) and value.real is None and not value.items
