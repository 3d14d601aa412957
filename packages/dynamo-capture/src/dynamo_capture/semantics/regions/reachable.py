"""Which objects that a region changed are known outside of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.values import Const, IteratorValue, Value
from dynamo_capture.values.base import Context


def first_outside(
    tx: Context, touched: Iterable[Any], passed: Iterable[Value], generators: Iterable[GeneratorValue]
) -> Any:
    """The first of the changed objects that existed before the trace, or that the frames of the trace (all of them
    outside of the region), the ``generators`` of before or the region's arguments lead to; None if there is none.

    An entry of ``touched`` that is None stands for an effect on something that is always outside. An iterator that
    moved on moved those that it draws from.
    """
    touched = [part for value in touched for part in _moved(value)]
    for value in touched:
        if value is None or getattr(value, "real", None) is not None:
            return value if value is not None else Const(None)
    if not touched:
        return None
    known = _reachable([*_roots(tx, generators), *passed])
    return next((value for value in touched if id(value) in known), None)


def first_reached(
    tx: Context, touched: Iterable[Any], tensors: Iterable[Value], roots: Iterable[Value]
) -> Any:
    """The first of the changed objects, and of the ``tensors`` that were written to, that existed before the trace, or
    that the ``roots`` lead to, or what was changed of existing objects and globals; None if there is none."""
    touched = [*(part for value in touched for part in _moved(value)), *tensors]
    if not touched:
        return None
    scopes = [frame.globals.known for frame in tx.frames]
    known = _reachable([*roots, *scopes, *tx.effects.log.values()])
    for value in touched:
        if value is None or getattr(value, "real", None) is not None or id(value) in known:
            return value if value is not None else Const(None)
    return None


def _moved(value: Any) -> list[Any]:
    found = [value]
    if isinstance(value, IteratorValue):
        for part in _parts(value):
            parts = part if isinstance(part, list) else [part]
            found += [one for inner in parts if isinstance(inner, IteratorValue) for one in _moved(inner)]
    return found


def _roots(tx: Context, generators: Iterable[GeneratorValue]) -> Iterator[Any]:
    frames = [*tx.frames, *(generator.frame for generator in generators)]
    for frame in frames:
        yield from frame.variables.values()
        yield from frame.stack
        yield from frame.exceptions
        yield frame.callee
        yield frame.made
        yield from frame.globals.known.values()
    yield from tx.effects.log.values()


def _reachable(roots: list[Any]) -> set[int]:
    seen: set[int] = set()
    kept = []
    pending = roots
    while pending:
        value = pending.pop()
        if isinstance(value, (list, tuple)):
            pending.extend(value)
        elif isinstance(value, dict):
            pending.extend(value.values())
        elif isinstance(value, Value) and not isinstance(value, Const) and id(value) not in seen:
            seen.add(id(value))
            kept.append(value)
            pending.extend(_parts(value))
    return seen


def _parts(value: Value) -> Iterator[Any]:
    for cls in type(value).__mro__:
        for name in getattr(cls, "__slots__", ()):
            if not name.startswith("__") and name != "node":  # which some tensors do not have
                yield getattr(value, name, None)
