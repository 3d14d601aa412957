"""Methods of builtin containers, iterators and constants: one declaration each, by class and name."""

from __future__ import annotations

import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.operators import binary, python_of
from dynamo_capture.polyfills.registry import substitute_for
from dynamo_capture.values.base import Value
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import (
    DictValue,
    IteratorValue,
    SequenceValue,
    SetValue,
)

if TYPE_CHECKING:
    from dynamo_capture.tracer import Tracer

Method = Callable[..., Value]
METHODS: dict[tuple[type, str], Method] = {}
"""(class of value, name) -> function of (tracer, container, *args, **kwargs)."""


def method(cls: type, *names: str) -> Callable[[Method], Method]:
    """Declare the meaning of a method."""

    def register(function: Method) -> Method:
        for name in names:
            if (cls, name) in METHODS:
                raise ValueError(f"{cls.__name__}.{name} is declared twice")
            METHODS[cls, name] = function
        return function

    return register


def call_method(tracer: Tracer, container: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call ``container.name(*args, **kwargs)``."""
    for cls in type(container).__mro__:
        found = METHODS.get((cls, name))
        if found is not None:
            return found(tracer, container, *args, **kwargs)
    if container.constant:
        return _constant_method(tracer, container, name, args, kwargs)
    original = getattr(container.python_type(), name, None)
    substitute = substitute_for(original)
    if substitute is not None:
        return tracer.call_python(substitute, [container, *args], kwargs)
    if isinstance(original, types.FunctionType):
        return tracer.call_python(original, [container, *args], kwargs)
    raise GraphBreak("unknown-call", f"the method {name!r} of {container.describe()}")


def _constant_method(
    tracer: Tracer, container: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    values = [python_of(tracer, arg) for arg in args]
    named = {key: python_of(tracer, value) for key, value in kwargs.items()}
    try:
        return tracer.of_python(getattr(container.as_python(), name)(*values, **named))
    except Exception as error:
        raise Raised(tracer.exception(error)) from None


# ---- lists and tuples ----


@method(SequenceValue, "append")
def _append(tracer: Tracer, seq: SequenceValue, item: Value) -> Value:
    seq.touch(tracer)
    seq.items.append(item)
    return ConstantValue(None)


@method(SequenceValue, "extend")
def _extend(tracer: Tracer, seq: SequenceValue, items: Value) -> Value:
    added = list(items.iterate(tracer))
    seq.touch(tracer)
    seq.items.extend(added)
    return ConstantValue(None)


@method(SequenceValue, "insert")
def _insert(tracer: Tracer, seq: SequenceValue, index: Value, item: Value) -> Value:
    seq.touch(tracer)
    seq.items.insert(tracer.int_of(index), item)
    return ConstantValue(None)


@method(SequenceValue, "pop")
def _pop(tracer: Tracer, seq: SequenceValue, index: Value | None = None) -> Value:
    position = -1 if index is None else tracer.int_of(index)
    if not -len(seq.items) <= position < len(seq.items):
        message = "pop index out of range" if seq.items else "pop from empty list"
        raise tracer.raise_type(IndexError, message)
    seq.touch(tracer)
    return seq.items.pop(position)


@method(SequenceValue, "clear")
def _clear(tracer: Tracer, seq: SequenceValue) -> Value:
    seq.touch(tracer)
    seq.items.clear()
    return ConstantValue(None)


@method(SequenceValue, "reverse")
def _reverse(tracer: Tracer, seq: SequenceValue) -> Value:
    seq.touch(tracer)
    seq.items.reverse()
    return ConstantValue(None)


@method(SequenceValue, "copy")
def _copy(tracer: Tracer, seq: SequenceValue) -> Value:
    return SequenceValue(list(seq.items), seq.kind)


@method(SequenceValue, "numel")
def _numel(tracer: Tracer, seq: SequenceValue) -> Value:
    total: Value = ConstantValue(1)
    for item in seq.items:
        total = binary(tracer, "*", total, item)
    return total


@method(SequenceValue, "_replace")
def _replace(tracer: Tracer, seq: SequenceValue, **changes: Value) -> Value:
    fields = seq.kind._fields  # type: ignore[attr-defined]
    items = [changes.get(name, item) for name, item in zip(fields, seq.items, strict=True)]
    return SequenceValue(items, seq.kind)


@method(SequenceValue, "_asdict")
def _asdict(tracer: Tracer, seq: SequenceValue) -> Value:
    return DictValue(dict(zip(seq.kind._fields, seq.items, strict=True)))  # type: ignore[attr-defined]


# the special methods that ``super()`` and explicit calls reach


@method(SequenceValue, "__getitem__")
def _seq_getitem(tracer: Tracer, seq: SequenceValue, key: Value) -> Value:
    return seq.getitem(tracer, key)


@method(SequenceValue, "__len__")
def _seq_len(tracer: Tracer, seq: Value) -> Value:
    return seq.length(tracer)


@method(SequenceValue, "__iter__")
def _seq_iter(tracer: Tracer, seq: Value) -> Value:
    return IteratorValue(seq.iterate(tracer))


# ---- dicts ----


@method(DictValue, "get")
def _get(tracer: Tracer, mapping: DictValue, key: Value, default: Value | None = None) -> Value:
    python_key = tracer.key_of(key)
    if python_key in mapping.items:
        return mapping.items[python_key]
    return ConstantValue(None) if default is None else default


@method(DictValue, "keys", "__iter__")
def _keys(tracer: Tracer, mapping: DictValue) -> Value:
    return SequenceValue(list(mapping.iterate(tracer)), tuple)


@method(DictValue, "values")
def _values(tracer: Tracer, mapping: DictValue) -> Value:
    return SequenceValue(list(mapping.items.values()), tuple)


@method(DictValue, "items")
def _items(tracer: Tracer, mapping: DictValue) -> Value:
    pairs = [SequenceValue([tracer.of_key(k), v], tuple) for k, v in mapping.items.items()]
    return SequenceValue(list(pairs), tuple)


@method(DictValue, "pop")
def _dict_pop(tracer: Tracer, mapping: DictValue, key: Value, default: Value | None = None) -> Value:
    python_key = tracer.key_of(key)
    if python_key in mapping.items:
        mapping.touch(tracer)
        return mapping.items.pop(python_key)
    if default is None:
        raise Raised(tracer.exception(KeyError(python_key)))
    return default


@method(DictValue, "setdefault")
def _setdefault(tracer: Tracer, mapping: DictValue, key: Value, default: Value | None = None) -> Value:
    python_key = tracer.key_of(key)
    if python_key not in mapping.items:
        mapping.setitem(tracer, key, ConstantValue(None) if default is None else default)
    return mapping.items[python_key]


@method(DictValue, "update")
def _update(tracer: Tracer, mapping: DictValue, other: Value | None = None, **named: Value) -> Value:
    mapping.touch(tracer)
    for key, value in pairs_of(tracer, other):
        mapping.items[key] = value
    for name, value in named.items():
        mapping.items[name] = value
    return ConstantValue(None)


def pairs_of(tracer: Tracer, other: Value | None) -> Iterator[tuple[Any, Value]]:
    """Pairs of a mapping or of an iterable of pairs, keys as Python objects."""
    if other is None:
        return
    if isinstance(other, DictValue):
        yield from other.items.items()
        return
    storage = getattr(other, "storage", None)
    if isinstance(storage, DictValue):
        yield from storage.items.items()
        return
    if isinstance(other, SequenceValue | IteratorValue):
        for pair in other.iterate(tracer):
            key, value = list(pair.iterate(tracer))
            yield tracer.key_of(key), value
        return
    keys = other.getattr(tracer, "keys").call(tracer, [], {})
    for key in keys.iterate(tracer):
        yield tracer.key_of(key), other.getitem(tracer, key)


@method(DictValue, "copy")
def _dict_copy(tracer: Tracer, mapping: DictValue) -> Value:
    return DictValue(dict(mapping.items.items()), mapping.kind)


@method(DictValue, "clear")
def _dict_clear(tracer: Tracer, mapping: DictValue) -> Value:
    mapping.touch(tracer)
    mapping.items.clear()
    return ConstantValue(None)


@method(DictValue, "move_to_end")
def _move_to_end(tracer: Tracer, mapping: DictValue, key: Value, last: Value | None = None) -> Value:
    mapping.touch(tracer)
    ordered = OrderedDict(mapping.items.items())
    ordered.move_to_end(tracer.key_of(key), last is None or last.truth(tracer))
    mapping.items.clear()
    mapping.items.update(ordered)
    return ConstantValue(None)


@method(DictValue, "popitem")
def _popitem(tracer: Tracer, mapping: DictValue) -> Value:
    if not mapping.items:
        raise Raised(tracer.exception(KeyError("popitem(): dictionary is empty")))
    mapping.touch(tracer)
    key = list(mapping.items)[-1]
    return SequenceValue([tracer.of_key(key), mapping.items.pop(key)], tuple)


@method(DictValue, "__getitem__")
def _dict_getitem(tracer: Tracer, mapping: DictValue, key: Value) -> Value:
    return mapping.getitem(tracer, key)


@method(DictValue, "__setitem__")
def _dict_setitem(tracer: Tracer, mapping: DictValue, key: Value, value: Value) -> Value:
    mapping.setitem(tracer, key, value)
    return ConstantValue(None)


@method(DictValue, "__delitem__")
def _dict_delitem(tracer: Tracer, mapping: DictValue, key: Value) -> Value:
    mapping.delitem(tracer, key)
    return ConstantValue(None)


@method(DictValue, "__contains__")
def _dict_contains(tracer: Tracer, mapping: DictValue, key: Value) -> Value:
    return mapping.contains(tracer, key)


@method(DictValue, "__len__")
def _dict_len(tracer: Tracer, mapping: DictValue) -> Value:
    return mapping.length(tracer)


@method(DictValue, "__init__")
def _dict_init(tracer: Tracer, mapping: DictValue, other: Value | None = None, **named: Value) -> Value:
    return _update(tracer, mapping, other, **named)


# ---- sets ----


@method(SetValue, "__contains__")
def _set_contains(tracer: Tracer, group: SetValue, item: Value) -> Value:
    return group.contains(tracer, item)


@method(SetValue, "add")
def _add(tracer: Tracer, group: SetValue, item: Value) -> Value:
    group.touch(tracer)
    group.items[tracer.key_of(item)] = item
    return ConstantValue(None)


@method(SetValue, "discard")
def _discard(tracer: Tracer, group: SetValue, item: Value) -> Value:
    group.touch(tracer)
    group.items.pop(tracer.key_of(item), None)
    return ConstantValue(None)


@method(SetValue, "update")
def _set_update(tracer: Tracer, group: SetValue, *others: Value) -> Value:
    group.touch(tracer)
    for other in others:
        for item in other.iterate(tracer):
            group.items[tracer.key_of(item)] = item
    return ConstantValue(None)


def _as_set(tracer: Tracer, other: Value) -> SetValue:
    return SetValue({tracer.key_of(item): item for item in other.iterate(tracer)})


@method(SetValue, "union", "intersection", "difference")
def _combine(tracer: Tracer, group: SetValue, *others: Value) -> Value:
    raise GraphBreak("unknown-call", "a set method by its name; write it as an operator")


@method(SetValue, "issubset")
def _issubset(tracer: Tracer, group: SetValue, other: Value) -> Value:
    return ConstantValue(set(group.items) <= set(_as_set(tracer, other).items))


@method(SetValue, "copy")
def _set_copy(tracer: Tracer, group: SetValue) -> Value:
    return SetValue(dict(group.items), group.kind)


# ---- iterators ----


@method(IteratorValue, "__next__")
def _next(tracer: Tracer, iterator: IteratorValue) -> Value:
    for item in iterator.iterator:
        return item
    raise tracer.raise_type(StopIteration, "")


@method(IteratorValue, "__iter__")
def _iter(tracer: Tracer, iterator: IteratorValue) -> Value:
    return iterator


@method(IteratorValue, "close")
def _close(tracer: Tracer, iterator: IteratorValue) -> Value:
    iterator.iterator = iter(())
    return ConstantValue(None)


# ---- strings ----


@method(ConstantValue, "join")
def _join(tracer: Tracer, text: ConstantValue, parts: Value) -> Value:
    return tracer.fold(lambda s, items: s.join(items), [text, ConstantValue([p.as_python() for p in parts.iterate(tracer)])])
