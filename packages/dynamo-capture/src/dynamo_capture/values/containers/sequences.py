"""Lists, tuples (named ones and ``torch.Size`` too), ranges over symbolic bounds and slices."""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, OBJECT_OPERATION
from dynamo_capture.foundation.class_members import has_member, member
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.values.base import Context, IteratorValue, Lazy, Value
from dynamo_capture.values.constant import Const
from dynamo_capture.values.containers.slices import SliceValue
from dynamo_capture.values.sequence_iterator import DequeIterator, ListIterator, SequenceIterator
from fx_interface.source import ItemSource, Source


class SequenceValue(Value):
    """What lists and tuples share. ``items`` may hold ``Lazy`` values."""

    __slots__ = ("cls", "items", "source")

    def __init__(self, items: list[Value], cls: type, source: Source | None = None) -> None:
        self.items = items
        self.cls = cls
        self.source = source

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.items})"

    def python_type(self) -> type:
        return self.cls

    def frozen(self, tx: Context, tensors: list[Any]) -> Any:
        if self.cls is collections.deque:  # which torch does not take for a list
            raise self.no_argument()
        return (type(self), self.cls, tuple([tx.force(item).frozen(tx, tensors) for item in self.items]))

    @property
    def kinds(self) -> list[Value]:
        """Values of all classes that are among the items."""
        return self.items

    def children(self, tx: Context) -> list[Value]:
        return list(self.items)

    def length(self, tx: Context) -> int:
        return len(self.items)

    def truth(self, tx: Context) -> bool:
        return bool(self.items)

    def item(self, tx: Context, index: int) -> Value:
        """The item at a valid index."""
        return tx.force(self.items[index])

    def unpack(self, tx: Context) -> list[Value]:
        return [tx.force(item) for item in self.items]

    def get_item(self, tx: Context, key: Value) -> Value:
        if isinstance(key, SliceValue):
            return self.slice_of(tx, key.as_slice(tx))
        index = tx.index(key)
        if isinstance(index, slice):
            return self.slice_of(tx, index)
        try:
            found = self.items[index]
        except IndexError:
            raise tx.raises(IndexError, f"{self._name} index out of range") from None
        except TypeError as error:
            text = str(error).replace("list", self._name, 1)
            if self.cls is collections.deque:
                text = f"sequence index must be integer, not {message_name(type(index))!r}"
            raise tx.raises(TypeError, text) from None
        return tx.force(found)

    @property
    def _name(self) -> str:
        """Of the class in C, which refuses an index by its own name."""
        return "tuple" if issubclass(self.cls, tuple) else self.cls.__name__

    def slice_of(self, tx: Context, window: slice) -> Value:
        """``x[a:b:c]``."""
        raise NotImplementedError

    def repeated(self, tx: Context, times: int, *, in_place: bool) -> Value:
        """``x * times``; a list is changed ``in_place``."""
        raise NotImplementedError

    def holds_tensor(self, tx: Context) -> bool:
        return any(tx.force(item).holds_tensor(tx) for item in self.kinds)

    def contains(self, tx: Context, item: Value) -> bool:
        return any(tx.operators.equal_or_same(tx.force(part), item) for part in self.items)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.calls.call_builtin_method(self, name, args, kwargs)


_OF_NAMED_TUPLES = frozenset((
    "__annotations__", "__class_getitem__", "__dict__", "__doc__", "__getnewargs__", "__init_subclass__",
    "__match_args__", "__module__", "__new__", "__orig_bases__", "__parameters__", "__reduce__", "__reduce_ex__",
    "__replace__", "__repr__", "__slots__", "__static_attributes__", "__firstlineno__", "__type_params__",
    "__annotate__", "__annotate_func__", "__annotations_cache__", "__getstate__", "__setstate__", "__weakref__",
))  # fmt: skip
"""What named tuples have, and what only those ask for who store them."""
_IN_C = (types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType)
_DATA = (str, int, tuple, list, dict)
"""What no code runs for; ``copyreg`` notes ``__slotnames__`` in a class whose instances are copied."""


@once_per_class
def keeps_tuple_methods(cls: type) -> bool:
    """Whether instances of a subclass of tuple behave as tuples: named tuples, torch's result types. A special method
    or a property of its own may run where a tuple runs nothing: where it is measured, copied, indexed with, or dies."""
    known = (tuple, object)
    own = (base.__dict__ for base in cls.__mro__ if base not in known)
    return cls.__dictoffset__ == 0 and all(
        isinstance(found, _IN_C) or type(found) in _DATA
        for members in own
        for name, found in members.items()
        if name[:2] == name[-2:] == "__" and name not in _OF_NAMED_TUPLES
    )


class TupleValue(SequenceValue):
    """A tuple of class ``cls``: ``tuple``, a named tuple, ``torch.Size`` or a result type of torch. ``real``: the
    object, if it existed."""

    __slots__ = ("real",)
    is_read_again = True

    def __init__(
        self, items: list[Value], cls: type = tuple, source: Source | None = None, real: Any = None
    ) -> None:
        super().__init__(items, cls, source)
        self.real = real

    def identity(self) -> object:
        if not self.items and self.cls is tuple:
            return ()
        return self if self.real is None else self.real

    def as_constant(self) -> Any:
        values = [item.as_constant() for item in self.items]
        if self.cls is tuple:
            return tuple(values)
        if self.cls is torch.Size:
            return torch.Size(values)
        raise NotConstant(self)

    def slice_of(self, tx: Context, window: slice) -> Value:
        items = tx.fold(lambda: self.items[window])
        if self.cls is tuple and len(items) == len(self.items) and (window.step or 1) == 1:
            return self
        return TupleValue(items, torch.Size if self.cls is torch.Size else tuple)

    def own_key(self, tx: Context) -> Any:
        return tuple([tx.hash_key(tx.force(item)) for item in self.items])

    def copied(self, tx: Context) -> Value:
        """A tuple is its own copy; one of another class is made anew, by the class."""
        if self.cls is tuple:
            return self
        maker = member(self.cls, "__new__")
        if maker is not tuple.__new__ and not str(getattr(maker, "__module__", "")).startswith("namedtuple_"):
            raise GraphBreak(
                NOT_IN_PYTHON, f"copy.copy() of {self.describe()}, whose class has its own __new__"
            )
        return TupleValue(list(self.items), self.cls)

    def concatenated(self, tx: Context, other: Value, *, in_place: bool) -> Value | None:
        return self._of_items([*self.items, *other.items], other) if isinstance(other, TupleValue) else None

    def repeated(self, tx: Context, times: int, *, in_place: bool) -> Value:
        return self._of_items(tx.fold(lambda: self.items * times))

    def _of_items(self, items: list[Value], *others: TupleValue) -> TupleValue:
        """What an operator on tuples gives: ``torch.Size`` where one of them is one."""
        operands = (self, *others)
        if all(operand.cls is not torch.Size for operand in operands):
            for operand in operands:  # the others are empty
                if operand.cls is tuple and len(operand.items) == len(items):
                    return operand
            return TupleValue(items)
        if not all(issubclass(item.python_type(), int) for item in items):
            raise GraphBreak(OBJECT_OPERATION, "sizes are put together with what is no integer")
        return TupleValue(items, torch.Size)

    def iterate(self, tx: Context) -> IteratorValue:
        return SequenceIterator(self.items, type(iter(())), self)

    def parts(self, tx: Context) -> list[Value]:
        return self.unpack(tx)

    def mapped(self, tx: Context, change: Callable[[Value], Value]) -> Value:
        return TupleValue([change(item) for item in self.unpack(tx)], self.cls)

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        items = [change(item) for item in self.unpack(tx)]
        return tuple.__new__(self.cls, items) if has_member(self.cls, "_fields") else tuple(items)

    def python_object(self, tx: Context) -> Any:
        items = [item.python_object(tx) for item in self.unpack(tx)]
        if self.cls is tuple or has_member(self.cls, "_fields"):
            return tuple.__new__(self.cls, items)
        try:
            return self.cls(items)
        except TypeError:  # a class that makes no instances, as that of ``sys.version_info``
            raise NotConstant(self) from None


class ListValue(SequenceValue):
    """A list or deque; ``real`` is the object itself if it existed before the trace.

    Such a list may be ``unread``: a function that gives its items, with the guard on how many there are. It is called
    when something asks for ``items``; until then the trace has only ``appended`` to whatever the list holds, and has
    come to ``at_least`` so many items, if it ``reads_ahead``.
    """

    __slots__ = ("_items", "_unread", "appended", "at_least", "generation", "maxlen", "reads_ahead", "real")
    is_mutable = True

    def __init__(
        self,
        items: list[Value],
        cls: type = list,
        source: Source | None = None,
        real: Any = None,
        unread: Callable[[], list[Value]] | None = None,
    ) -> None:
        self._unread = unread
        self.appended: list[Value] = []
        self.at_least = 0
        self.reads_ahead = True
        self.generation = 0
        super().__init__(items, cls, source)
        self.real = real
        self.maxlen: int | None = real.maxlen if isinstance(real, collections.deque) else None

    def __repr__(self) -> str:
        return f"ListValue({self._items if self._unread is None else self.source})"

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        return Const(self.maxlen) if name == "maxlen" and self.cls is collections.deque else None

    def release(self) -> None:
        """Let go of the object, and of the function, which refers to the value."""
        self.real = self._unread = None
        self.items = []

    @property
    def is_unread(self) -> bool:
        """Whether nothing of what the list held before the trace has mattered."""
        return self._unread is not None

    @property
    def items(self) -> list[Value]:
        """All items; from now on it matters how many there were."""
        if self._unread is not None:
            read, self._unread = self._unread, None
            self._items = [*read(), *self.appended]
        return self._items

    @items.setter
    def items(self, items: list[Value]) -> None:
        self._items = items

    def read_ahead(self, index: int) -> Value | None:
        """The item at a place in what an unread list held before the trace; it matters that there is one."""
        if self._unread is None or not self.reads_ahead or self.appended or index >= len(self.real):
            return None
        self.at_least = max(self.at_least, index + 1)
        assert self.source is not None
        return Lazy(self.real[index], ItemSource(self.source, index))

    def append(self, tx: Context, items: list[Value]) -> None:
        """Put items at the end."""
        tx.effects.mutates(self)
        self.generation += len(items)
        if self._unread is not None:
            self.appended.extend(items)
            return
        self.items.extend(items)
        self.trim()

    def resizes(self, tx: Context) -> None:
        """Items are about to come or go, or to change places: ``generation`` counts it."""
        tx.effects.mutates(self)
        self.generation += 1

    def index_width(self) -> Any:  # a nested one may be a mask of several dimensions
        return None if any(isinstance(part, (SequenceValue, Lazy)) for part in self.items) else 1

    def copied(self, tx: Context) -> Value:
        return self.like(list(self.items))

    def like(self, items: list[Value]) -> ListValue:
        """A new list or deque with the same limit."""
        made = ListValue(items, self.cls)
        made.maxlen = self.maxlen
        made.trim()
        return made

    def concatenated(self, tx: Context, other: Value, *, in_place: bool) -> Value | None:
        if in_place:
            self.extend(tx, other)
            return self
        is_alike = isinstance(other, ListValue) and other.cls is self.cls
        return self.like([*self.items, *other.items]) if is_alike else None  # type: ignore[attr-defined]

    def repeated(self, tx: Context, times: int, *, in_place: bool) -> Value:
        items = tx.fold(lambda: self.items * times)
        if not in_place:
            return self.like(items)
        tx.effects.mutates(self)
        self.generation += times != 1
        self.items[:] = items
        return self

    def extend(self, tx: Context, source: Value) -> None:
        """Take in the items of any iterable."""
        is_list = self.cls is list
        if getattr(source, "base", None) is self:  # of the object that the list belongs to
            source = self
        if isinstance(source, SequenceValue):
            self.append(tx, source.items_for_list(tx) if is_list else source.unpack(tx))
            return
        for item in source.one_by_one(tx, hinted=is_list):
            self.append(tx, [item])

    def trim(self) -> None:
        """A deque that has got too long loses items at its left end."""
        if self.maxlen is not None:
            del self.items[: max(0, len(self.items) - self.maxlen)]

    def identity(self) -> object:
        return self

    def slice_of(self, tx: Context, window: slice) -> Value:
        self._check_index(tx, window)
        return ListValue(tx.fold(lambda: self.items[window]))

    def iterate(self, tx: Context) -> IteratorValue:
        return ListIterator(self, self) if self.cls is list else DequeIterator(self, self)

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        index = key.as_slice(tx) if isinstance(key, SliceValue) else tx.index(key)
        tx.effects.mutates(self)
        self._check_index(tx, index)
        items: Any = self.items
        tx.fold(lambda: items.__setitem__(index, value.unpack(tx) if isinstance(index, slice) else value))

    def del_item(self, tx: Context, key: Value) -> None:
        index = key.as_slice(tx) if isinstance(key, SliceValue) else tx.index(key)
        self.resizes(tx)
        self._check_index(tx, index)
        tx.fold(lambda: self.items.__delitem__(index))

    def _check_index(self, tx: Context, index: Any) -> None:
        """What a deque does not take."""
        if self.cls is not collections.deque:
            return
        if not isinstance(index, int):
            raise tx.raises(TypeError, f"sequence index must be integer, not {type(index).__name__!r}")
        if not -len(self.items) <= index < len(self.items):
            raise tx.raises(IndexError, "deque index out of range")

    def parts(self, tx: Context) -> list[Value] | None:
        return self.unpack(tx) if self.cls is list else None

    def mapped(self, tx: Context, change: Callable[[Value], Value]) -> Value:
        return ListValue([change(item) for item in self.unpack(tx)]) if self.cls is list else self

    def rebuilt(self, tx: Context, change: Callable[[Value], Any]) -> Any:
        return [change(item) for item in self.unpack(tx)]

    def python_object(self, tx: Context) -> Any:
        if self.cls is not list:
            raise NotConstant(self)
        return [item.python_object(tx) for item in self.unpack(tx)]
