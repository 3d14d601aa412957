"""Replacement code: call the compiled graph, rebuild what the program made, replay its side effects, return or go on."""

from __future__ import annotations

import collections
import functools
import sys
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from fx_interface.source import (
    AttrSource,
    BuiltinSource,
    ClosureSource,
    GlobalSource,
    ImportedModuleSource,
    InstanceDictSource,
    ItemSource,
    LocalSource,
    SizeSource,
    Source,
    StrideSource,
    TypeSource,
)

from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.graph_breaks import GraphBreak
from dynamo_capture.hook import disabled
from dynamo_capture.tracer import CallEffect, GlobalEffect, Tracer
from dynamo_capture.values.base import MISSING, Value
from dynamo_capture.values.containers import (
    DictValue,
    IteratorValue,
    ListIterator,
    SequenceValue,
    SetValue,
    SliceValue,
)
from dynamo_capture.values.functions import BoundMethod, CellValue, ClosureValue, PartialValue
from dynamo_capture.values.objects import ExceptionValue, NewObject, ObjectValue
from dynamo_capture.values.pinned import PinnedSource
from dynamo_capture.values.tensors import SymIntValue, TensorValue

_MISSING_AT_RUN_TIME: Any = MISSING
_HEAP_TYPE = 1 << 9


def new_object(cls: type, attributes: dict[str, Any], items: Any) -> Any:
    """An instance as the traced program made it, without running its constructor again."""
    if isinstance(items, dict):
        made = cls.__new__(cls)
        base = collections.OrderedDict if isinstance(made, collections.OrderedDict) else dict
        for key, value in items.items():
            base.__setitem__(made, key, value)
    elif isinstance(items, list):
        made = cls.__new__(cls)
        list.extend(made, items)
    elif isinstance(items, set):
        made = cls.__new__(cls)
        set.update(made, items)
    else:
        made = object.__new__(cls)
    for name, value in attributes.items():
        object.__setattr__(made, name, value)
    return made


def new_exception(cls: type[BaseException], args: tuple[Any, ...], attributes: dict[str, Any]) -> BaseException:
    """An exception as the traced program made it; only constructors written in C run again."""
    made = cls.__new__(cls, *args)
    native = next(base for base in cls.__mro__ if not base.__flags__ & _HEAP_TYPE)
    native.__init__(made, *args)  # type: ignore[misc]
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def store_attributes(obj: Any, changes: dict[str, Any]) -> None:
    """Write the attributes that the traced program set."""
    for name, value in changes.items():
        if value is _MISSING_AT_RUN_TIME:
            object.__delattr__(obj, name)
        else:
            object.__setattr__(obj, name, value)


def new_function(
    code: types.CodeType,
    namespace: dict[str, Any],
    defaults: tuple[Any, ...] | None,
    cells: tuple[Any, ...],
    kwdefaults: dict[str, Any],
    attributes: dict[str, Any],
) -> types.FunctionType:
    """A function as the traced program made it."""
    made = types.FunctionType(code, namespace, code.co_name, defaults, cells)
    made.__kwdefaults__ = kwdefaults or None
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


def list_iterator(items: list[Any], position: int) -> Any:
    """An iterator of a list that has come to ``position``; -1: to the end."""
    iterator = iter(items)
    if position < 0:
        return iter(())
    iterator.__setstate__(position)  # type: ignore[attr-defined]
    return iterator


def replace_dict(mapping: dict[Any, Any], items: dict[Any, Any]) -> None:
    """Give a dict new contents in a new order."""
    mapping.clear()
    mapping.update(items)


def replace_list(sequence: list[Any], items: list[Any]) -> None:
    """Give a list new contents."""
    sequence[:] = items


def replace_set(group: set[Any], items: set[Any]) -> None:
    """Give a set new contents."""
    group.clear()
    group.update(items)


def store_cell(cell: Any, value: Any) -> None:
    """Assign a closure variable."""
    cell.cell_contents = value


class Emission:
    """Writes the code of one replacement. Values that are used twice are kept in temporaries."""

    def __init__(self, tracer: Tracer, emitter: Emitter) -> None:
        self.tracer = tracer
        self.emitter = emitter
        self.outputs: list[Value] = []
        self._positions: dict[int, int] = {}
        self._uses: collections.Counter[int] = collections.Counter()
        self._kept: dict[int, str] = {}
        self._existing: dict[int, Value] = {}
        self._building: set[int] = set()
        self._temporaries = 0
        self.cells: frozenset[str] = frozenset()
        self.frame_cells: dict[int, str] = {}
        """Cells that the running frame owns, by the identity of their values."""

    # ---- what the graph must return ----

    def plan(self, roots: Iterable[Value]) -> None:
        """Find the tensors and sizes that the roots need from the graph."""
        seen: set[int] = set()
        pending = list(roots)[::-1]
        while pending:
            value = pending.pop()
            self._uses[id(value)] += 1
            if id(value) in seen:
                continue
            seen.add(id(value))
            if value.source is not None and not value.constant and not isinstance(value, CellValue):
                self._existing[id(value)] = value
            if isinstance(value, (TensorValue, SymIntValue)):
                if value.source is None or not self.is_input(value):
                    self._positions[id(value)] = len(self.outputs)
                    self.outputs.append(value)
                continue
            if isinstance(value, IteratorValue):
                pending.extend(self._left(value))
                continue
            if value.source is None or getattr(value, "mutated", False):
                pending.extend(reversed(list(value.children())))
            overlay = getattr(value, "overlay", None)
            if overlay:
                pending.extend(v for v in overlay.values() if v is not MISSING)
            if isinstance(value, CellValue) and value.content is not None:
                pending.append(value.content)
            if isinstance(value, ClosureValue):
                pending.extend([*value.defaults, *value.kwdefaults.values(), *value.cells, *value.attributes.values()])
            if isinstance(value, BoundMethod) and value.source is None:
                pending.extend([value.function, value.receiver])

    def _left(self, value: IteratorValue) -> list[Value]:
        """What an iterator still holds. A graph break if the program's code had to run to know."""
        if isinstance(value.iterator, ListIterator):
            return [value.iterator.sequence]
        before = self.tracer.advances
        rest = []
        for item in value.iterator:
            if self.tracer.advances != before:
                raise GraphBreak("generator", "a generator is alive when the graph ends")
            rest.append(item)
        if self.tracer.advances != before:
            raise GraphBreak("generator", "a generator is alive when the graph ends")
        value.iterator = iter(rest)
        return rest

    def read_existing(self) -> None:
        """Read what existed before into temporaries, before side effects change where it was read."""
        for key, value in self._existing.items():
            if key in self._positions or key in self._kept:
                continue
            assert value.source is not None
            self.load_source(value.source)
            self._kept[key] = name = self.temporary()
            self.emitter.store_fast(name)

    def is_input(self, value: Any) -> bool:
        """Whether the value is an input of the graph, unchanged as an object."""
        return bool(value.node.op == "placeholder")

    # ---- leaves ----

    def value(self, value: Value) -> None:
        """Leave ``value`` on the stack; the same object every time."""
        kept = self._kept.get(id(value))
        if kept is not None:
            self.emitter.load_fast(kept)
            return
        if id(value) in self._building:
            raise GraphBreak("value", f"{value.describe()}, which holds itself")
        self._building.add(id(value))
        value.emit(self)
        self._building.discard(id(value))
        if self._uses[id(value)] > 1 and not value.constant and value.source is None:
            self._kept[id(value)] = name = self.temporary()
            self.emitter.copy()
            self.emitter.store_fast(name)

    def temporary(self) -> str:
        """The name of a new local."""
        self._temporaries += 1
        return f".t{self._temporaries}"

    def load_const(self, value: Any) -> None:
        """Any object, as a constant of the code."""
        self.emitter.load_const(value)

    def load_graph_output(self, value: Any) -> None:
        """A tensor or size that the graph returned, or an input itself."""
        position = self._positions.get(id(value))
        if position is None:
            if value.source is None:
                raise GraphBreak("value", f"{value.describe()} is not returned by the graph")
            self.load_source(value.source)
            return
        self.emitter.load_fast(".outputs")
        self.emitter.load_const(position)
        self.emitter.binary_subscr()

    def load_source(self, source: Source) -> None:
        """Read a source again."""
        e = self.emitter
        match source:
            case PinnedSource(obj):
                e.load_const(obj)
            case LocalSource(name):
                if name in self.cells:
                    e.load_deref(name)
                else:
                    e.load_fast(name)
            case GlobalSource(name):
                e.load_global(name)
            case ClosureSource(name):
                e.load_deref(name)
            case BuiltinSource(name):
                e.load_global(name)
            case ImportedModuleSource(name):
                e.load_const(sys.modules[name])
            case AttrSource(parent, name):
                self.load_source(parent)
                e.load_attr(name)
            case InstanceDictSource(parent):
                self.load_source(parent)
                e.load_attr("__dict__")
            case ItemSource(parent, key):
                self.load_source(parent)
                e.load_const(key)
                e.binary_subscr()
            case TypeSource(parent):
                self._call(type, lambda: self.load_source(parent))
            case SizeSource(parent, dim) | StrideSource(parent, dim):
                self.load_source(parent)
                e.load_method("size" if isinstance(source, SizeSource) else "stride")
                e.load_const(dim)
                e.call(1)
            case _:
                raise GraphBreak("value", f"reading {source.expression}")

    # ---- composites ----

    def _call(self, function: Any, *arguments: Any) -> None:
        e = self.emitter
        e.begin_call()
        e.load_const(function)
        e.end_callable()
        for argument in arguments:
            argument()
        e.call(len(arguments))

    def call_now(self, function: Any, *constants: Any) -> None:
        """Call a function on constants and drop its result."""
        self._call(function, *[lambda value=value: self.load_const(value) for value in constants])
        self.emitter.pop_top()

    def _call_with_names(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
        e = self.emitter
        e.begin_call()
        e.load_const(function)
        e.end_callable()
        for value in (*args, *kwargs.values()):
            self.value(value)
        e.call(len(args) + len(kwargs), tuple(kwargs))

    def build_sequence(self, value: SequenceValue) -> None:
        """A list, tuple, Size or namedtuple."""
        e = self.emitter
        if value.kind in (list, tuple):
            for item in value.items:
                self.value(item)
            (e.build_list if value.kind is list else e.build_tuple)(len(value.items))
            return

        def items() -> None:
            for item in value.items:
                self.value(item)
            e.build_tuple(len(value.items))

        if issubclass(value.kind, torch.Size) or hasattr(value.kind, "n_sequence_fields"):
            self._call(value.kind, items)
        else:  # a subclass of tuple, whose own __new__ has been traced already
            self._call(tuple.__new__, lambda: e.load_const(value.kind), items)

    def _items(self, items: dict[Any, Value]) -> None:
        for key, item in items.items():
            self.value(self.tracer.of_key(key))
            self.value(item)
        self.emitter.build_map(len(items))

    def build_dict(self, value: DictValue) -> None:
        """A dict or OrderedDict."""
        if value.kind is dict:
            self._items(value.items)
        else:
            self._call(value.kind, lambda: self._items(value.items))

    def build_set(self, value: SetValue) -> None:
        """A set or frozenset."""

        def items() -> None:
            for item in value.items.values():
                self.value(item)
            self.emitter.build_set(len(value.items))

        if value.kind is set:
            items()
        else:
            self._call(value.kind, items)

    def build_slice(self, value: SliceValue) -> None:
        """A slice."""
        for bound in value.bounds:
            self.value(bound)
        self.emitter.build_slice(3)

    def build_iterator(self, iterator: Iterator[Value]) -> Iterator[Value]:
        """An iterator over what is left; gives back what stands for it from now on."""
        if isinstance(iterator, ListIterator):
            at = iterator.position
            self._call(list_iterator, lambda: self.value(iterator.sequence), lambda: self.load_const(at))
            return iterator
        rest = list(iterator)
        for item in rest:
            self.value(item)
        self.emitter.build_tuple(len(rest))
        self.emitter.get_iter()
        return iter(rest)

    def build_object(self, value: NewObject) -> None:
        """An object that the program made."""
        e = self.emitter

        def attributes() -> None:
            for name, item in value.attributes.items():
                e.load_const(name)
                self.value(item)
            e.build_map(len(value.attributes))

        def arguments() -> None:
            assert isinstance(value, ExceptionValue)
            for arg in value.args:
                self.value(arg)
            e.build_tuple(len(value.args))

        if isinstance(value, ExceptionValue):
            self._call(new_exception, lambda: e.load_const(value.cls), arguments, attributes)
            return

        def storage() -> None:
            if value.storage is None:
                e.load_const(None)
            else:
                self.value(value.storage)

        self._call(new_object, lambda: e.load_const(value.cls), attributes, storage)

    def build_method(self, value: BoundMethod) -> None:
        """A bound method."""
        if value.source is not None:
            self.load_source(value.source)
            return
        self._call(types.MethodType, lambda: self.value(value.function), lambda: self.value(value.receiver))

    def build_partial(self, value: PartialValue) -> None:
        """A ``functools.partial``."""
        if value.source is not None:
            self.load_source(value.source)
            return
        self._call_with_names(functools.partial, [value.function, *value.args], value.kwargs)

    def build_closure(self, value: ClosureValue) -> None:
        """A function that the program made."""
        e = self.emitter

        def cells() -> None:
            for cell in value.cells:
                self._cell(cell)
            e.build_tuple(len(value.cells))

        def defaults() -> None:
            if value.defaults:
                for item in value.defaults:
                    self.value(item)
                e.build_tuple(len(value.defaults))
            else:
                e.load_const(None)

        def named(items: dict[str, Value]) -> None:
            for name, item in items.items():
                e.load_const(name)
                self.value(item)
            e.build_map(len(items))

        self._call(
            new_function,
            lambda: e.load_const(value.code),
            lambda: e.load_const(value.globals_value[0]),
            defaults,
            cells,
            lambda: named(value.kwdefaults),
            lambda: named(value.attributes),
        )

    def _cell(self, cell: CellValue) -> None:
        own = self.frame_cells.get(id(cell))
        if own is not None:
            self.emitter.load_closure(own)
            return
        if isinstance(cell.source, ClosureSource):
            self.emitter.load_closure(cell.source.name)
            return
        if cell.source is not None:
            self.load_source(cell.source)
            return
        kept = self._kept.get(id(cell))
        if kept is not None:
            self.emitter.load_fast(kept)
            return
        if cell.content is None:
            self._call(types.CellType)
        else:
            content = cell.content
            self._call(types.CellType, lambda: self.value(content))
        self._kept[id(cell)] = name = self.temporary()
        self.emitter.copy()
        self.emitter.store_fast(name)

    # ---- side effects ----

    def effect(self, value: Value) -> None:
        """Replay one side effect."""
        e = self.emitter
        source = value.source
        match value:
            case ObjectValue():
                self._call(store_attributes, lambda: self.value(value), lambda: self._changes(value))
            case SequenceValue():
                items = SequenceValue(value.items, list)
                self._call(replace_list, lambda: self.value(value), lambda: self.build_sequence(items))
            case DictValue():
                self._call(replace_dict, lambda: self.value(value), lambda: self._items(value.items))
            case SetValue():
                group = SetValue(value.items, set)
                self._call(replace_set, lambda: self.value(value), lambda: self.build_set(group))
            case CellValue():
                assert value.content is not None
                content = value.content
                if isinstance(source, AttrSource | ItemSource):
                    self._call(store_cell, lambda: self.load_source(source), lambda: self.value(content))
                else:
                    self.value(content)
                    e.store_deref(source.name)  # type: ignore[union-attr]
                    return
            case CallEffect():
                self._call_with_names(disabled(value.function), value.args, value.kwargs)
            case GlobalEffect():
                self._call(
                    dict.__setitem__,
                    lambda: e.load_const(value.namespace),
                    lambda: e.load_const(value.name),
                    lambda: self.value(value.assigned[value.name]),
                )
            case _:
                raise GraphBreak("side-effect", f"a change of {value.describe()}")
        e.pop_top()

    def _changes(self, value: ObjectValue) -> None:
        assert value.overlay is not None
        for name, new in value.overlay.items():
            self.emitter.load_const(name)
            if new is MISSING:
                self.emitter.load_const(MISSING)
            else:
                self.value(new)
        self.emitter.build_map(len(value.overlay))
