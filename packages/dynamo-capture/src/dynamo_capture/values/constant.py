"""Objects that are known: immutable constants, and functions, classes and modules guarded by identity."""

from __future__ import annotations

import enum
import operator
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import is_heap_type, is_of_library, member, name_of
from dynamo_capture.foundation.errors import NotConstant, UserRaise
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.values.base import Context, IteratorStop, IteratorValue, T, Value
from dynamo_capture.values.operator_methods import own_method
from dynamo_capture.values.sequence_iterator import SequenceIterator
from fx_interface.source import Source

_DTYPES: dict[type, torch.dtype] = {
    bool: torch.bool,
    int: torch.int64,
    float: torch.float64,
    complex: torch.complex128,
}
"""Python's classes of numbers as torch takes them for dtypes; a graph's code has no name for a class."""


def _sign(value: Any) -> Any:
    """Tells 0.0 from -0.0 and 1 inside tuples from True."""
    if type(value) is float:
        return value.hex()
    if type(value) is tuple:
        return tuple([(type(item), _sign(item)) for item in value])
    return None


def _is_shown_by_library(value: Any) -> bool:
    """Whether no code of the program runs where an object is printed."""
    kind = type(value)
    if kind is tuple or kind is frozenset:
        return all(map(_is_shown_by_library, value))
    if not is_heap_type(kind) or is_of_library(kind):
        return kind is not types.MappingProxyType
    own = member(kind, "__repr__")
    return isinstance(own, types.FunctionType) and issubclass(kind, enum.Enum) and own is enum.Enum.__repr__


class Const(Value):
    """A known object; guards that it is this one were made when it was read."""

    __slots__ = ("source", "value")

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.value = value
        self.source = source

    def __repr__(self) -> str:
        return f"Const({self.value!r})"

    def python_type(self) -> type:
        return type(self.value)

    def stands_for(self, known: object) -> bool:
        return self.python_type() is type(known) and self.identity() is known

    def in_this_call(self) -> Any:
        """The object that it is in this call, for whoever does not depend on it where it is left open."""
        return self.value

    def known_as(self, *kinds: type[T]) -> T | None:
        return self.value if self.python_type() in kinds else None

    def known_class(self) -> type | None:
        return self.value if issubclass(self.python_type(), type) else None

    def number(self) -> Any:
        known = self.value
        if not isinstance(known, (int, float)):
            return None
        return int(known) if isinstance(known, bool) else known

    def fake(self, tx: Context, fakes: dict[int, Any]) -> Any:
        return numpy_types.plain(self.value)

    def argument(self, tx: Context) -> Any:
        known = numpy_types.plain(self.value)
        return _DTYPES.get(known, known) if isinstance(known, type) else known

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        known = numpy_types.plain(self.value)
        if known is None:
            return None
        if type(known) is slice:
            return (slice, tuple([(type(b), b) for b in (known.start, known.stop, known.step)]))
        if isinstance(known, numpy_types.SCALARS) or type(known).__hash__ is None:
            raise self.no_argument()
        return (type(known), known if known == known else repr(known), _sign(known))

    @property
    def is_existing(self) -> bool:
        return False

    def as_constant(self) -> Any:
        return self.value

    def identity(self) -> object:
        return self.value

    def is_callable(self, tx: Context) -> bool:
        return callable(self.value)

    def index_width(self) -> Any:
        known = self.value
        if known is ...:
            return ...
        if known is None or isinstance(known, bool):
            return 0
        return 1 if isinstance(known, (int, slice)) else None

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.attributes.of_known(self, name)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        tx.attributes.set_known(self, name, value)

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.calls.call_known(self, args, kwargs)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__iter__" and not args and not kwargs and type(self.value) in _ITERABLE:
            return self.iterate(tx)
        return tx.calls.call_method_of_known(self, name, args, kwargs)

    def get_item(self, tx: Context, key: Value) -> Value:
        answer = self._followed(tx, "__getitem__", [key])
        return tx.calls.item_of_known(self, key) if answer is None else answer

    def _followed(self, tx: Context, special: str, args: list[Value]) -> Value | None:
        """What a special method that is written in Python gives, as those of flags and of metaclasses are."""
        found = tx.attributes.in_class(type(self.value), special)
        if isinstance(found, types.FunctionType):
            return tx.inliner.call_function(Const(found), [self, *args], {})
        if isinstance(found, _FOLDED) or found is fx_guards.ABSENT or is_of_library(type(self.value)):
            return None
        raise self.unsupported(f"calling {special}, which is no function,")

    def contains(self, tx: Context, item: Value) -> bool:
        answer = self._followed(tx, "__contains__", [item])
        if answer is not None:
            return tx.truth(answer)
        try:
            if item.varies:
                raise NotConstant(item)
            wanted = item.as_constant()
        except NotConstant:
            if isinstance(self.value, frozenset):
                tx.hash_key(item)
            if isinstance(self.value, (tuple, frozenset, range)):
                return any(tx.operators.equal_or_same(tx.known(part), item) for part in self.value)
            raise self.unsupported("testing membership of an unknown value") from None
        parts = (wanted, *self.value) if type(self.value) in (tuple, frozenset) else (wanted,)
        if any(own_method(tx, part, "__eq__") is not None for part in parts):
            return any(tx.operators.equal_or_same(tx.known(part), item) for part in self.value)
        return bool(tx.fold(lambda: wanted in self.value))

    def length(self, tx: Context) -> int:
        answer = self._followed(tx, "__len__", [])
        if answer is not None:
            return int(tx.index(answer))
        return tx.fold(lambda: len(self.value))

    def truth(self, tx: Context) -> bool:
        if self.value is NotImplemented:  # Python warns, or will raise
            raise self.unsupported("testing the truth")
        if type(self.value) is not bool:
            for special in ("__bool__", "__len__"):
                answer = self._followed(tx, special, [])
                if answer is not None:
                    return tx.truth(answer)
                if hasattr(type(self.value), special):
                    break
        return bool(tx.fold(lambda: bool(self.value)))

    def iterate(self, tx: Context) -> IteratorValue:
        if isinstance(self.value, range):
            return RangeIterator(self.value)
        answer = self._followed(tx, "__iter__", [])
        if answer is not None:
            return answer.iterate(tx)
        if isinstance(self.value, _ITERABLE) or (
            isinstance(self.value, type) and hasattr(type(self.value), "__iter__")
        ):
            items: Any = self.value
            owner = None if isinstance(items, type) else self
            return SequenceIterator([tx.known(item) for item in items], type(iter(items)), owner)
        if isinstance(self.value, (int, float, type(None), bool)):
            raise tx.raises(TypeError, f"{message_name(type(self.value))!r} object is not iterable")
        return super().iterate(tx)

    def items_for_list(self, tx: Context) -> list[Value]:
        iterator = self.iterate(tx)
        self._ask_for_length(tx)
        return iterator.drain(tx)

    def one_by_one(self, tx: Context, hinted: bool = False) -> Iterator[Value]:
        iterator = self.iterate(tx)
        if hinted:
            self._ask_for_length(tx)
        return iterator.one_by_one(tx)

    def _ask_for_length(self, tx: Context) -> None:
        """As Python does before it makes a list, of a class whose metaclass is the program's."""
        cls = type(self.value)
        if not is_heap_type(cls) or is_of_library(cls):
            return
        for name in ("__len__", "__length_hint__"):
            try:
                answer = self._followed(tx, name, [])
            except UserRaise as raised:
                if not issubclass(raised.value.python_type(), TypeError):
                    raise
                continue
            if isinstance(answer, Const) and type(answer.value) is int and answer.value >= 0:
                return
            if answer is not None and not answer.stands_for(NotImplemented):
                raise self.unsupported("asking for the number of items")

    def describe(self) -> str:
        value = self.value
        if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
            module = getattr(value, "__module__", None)
            name = value.__qualname__
            if name.startswith("pybind11_"):  # of a function in C++: its class is pybind11's own
                name = value.__name__ or "a getter in C++"
            return f"{module}.{name}" if module else name
        if not _is_shown_by_library(value):
            return f"a {name_of(type(value))}"
        try:
            text = repr(value)
        except Exception:  # of what is not whole yet
            return f"a {name_of(type(value))}"
        return text if len(text) < 80 else text[:77] + "..."


_ITERABLE = (range, tuple, str, bytes, frozenset, types.MappingProxyType)
_FOLDED = (types.WrapperDescriptorType, types.MethodDescriptorType, types.ClassMethodDescriptorType)
"""Special methods in C."""
_TOLD_APART = (torch.device, range, slice)
"""Immutable objects that are guarded by equality and are not kept once for all, as small numbers and texts mostly are:
which one it is, ``is`` tells."""


class SourcedConst(Const):
    """A constant read from a source. It is guarded when its value is first used, not when it is only passed around."""

    __slots__ = ("_guard", "_real")

    def __init__(self, real: Any, source: Source, guard: Callable[[Source, Any], None]) -> None:
        self._real = real
        self.source = source
        self._guard: Callable[[Source, Any], None] | None = guard

    @property
    def value(self) -> Any:
        """The value; from now on the trace depends on it."""
        if self._guard is not None:
            assert self.source is not None
            self._guard(self.source, self._real)
            self._guard = None
        return self._real

    @property
    def is_unread(self) -> bool:
        """Whether nothing depends on the value so far."""
        return self._guard is not None

    def rely(self) -> None:
        """The trace depends on the value, and has a guard for that."""
        self._guard = None

    @property
    def is_handed_on(self) -> bool:
        """Whether the object itself is read again where it goes: its value does not count, or the program can tell it
        from an equal one."""
        return self._guard is not None or type(self._real) in _TOLD_APART

    @property
    def is_read_again(self) -> bool:  # type: ignore[override]
        """Whether ``is`` tells it from an equal one."""
        return type(self._real) in _TOLD_APART

    @property
    def passed_on(self) -> Any:
        """The value, for whoever does not depend on it."""
        return self._real

    def python_type(self) -> type:
        return type(self.value)


class RangeIterator(IteratorValue):
    """Over a known range, which may be too long to be listed."""

    __slots__ = ("position", "range")
    python_class = type(iter(range(0)))

    def __init__(self, items: range) -> None:
        self.range = items
        self.position = 0

    def children(self, tx: Context) -> list[Value]:
        return []

    @property
    def rest(self) -> range:
        """What is left."""
        return self.range[self.position :]

    def next(self, tx: Context) -> Value:
        try:
            found = self.range[self.position]
        except IndexError:
            raise IteratorStop from None
        self.position += 1
        return Const(found)


NONE = Const(None)
TRUE = Const(True)
FALSE = Const(False)
CALLED_BY_ITSELF = Const(operator.call)
"""On the stack in the place of a method, before what was loaded for a call: as the method of all that is called."""
CALLED_WITH_SELF = Const(operator.call)
"""The same before a method in C that was found in the class of its owner: Python has the two beside each other."""


def is_none(value: Value) -> bool:
    """Whether a value is None; there are several values for it."""
    return value.stands_for(None)


def boolean(value: bool) -> Const:
    """``True`` or ``False`` as a value."""
    return TRUE if value else FALSE
