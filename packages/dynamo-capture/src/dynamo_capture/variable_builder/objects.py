"""Existing Python objects as values, with the guard that reading each kind of object needs.

``@wraps(type, ...)`` declares how objects of exactly these types are read from a source.
"""

from __future__ import annotations

import collections
import contextlib
import threading
import types
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import (
    CONTAINER_CLASS,
    DESCRIPTOR,
    NOT_IN_PYTHON,
    OUTSIDE_WORLD,
    UNKNOWN_VALUE,
)
from dynamo_capture.foundation.class_members import (
    class_of_program_answers,
    runs_program,
)
from dynamo_capture.foundation.errors import GraphBreak, forget_frames
from dynamo_capture.foundation.known_objects import (
    BY_EQUALITY,
    BY_IDENTITY,
    KINDS_BY_IDENTITY,
    is_answered_by_program,
    is_member_of_c,
)
from dynamo_capture.foundation.libraries.distributed_tensors import is_placement
from dynamo_capture.guard_kinds.iterators import LengthAtLeast
from dynamo_capture.sources.sources import CallSource, ProxyReferentSource, item_source
from dynamo_capture.tables import declaring
from dynamo_capture.values import (
    Const,
    DictValue,
    Lazy,
    ListValue,
    ObjectValue,
    OpaqueValue,
    SourcedConst,
    SymValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.sequences import keeps_tuple_methods
from dynamo_capture.values.functions import CellValue
from dynamo_capture.values.numbers.random_generator import DiceValue
from dynamo_capture.values.opaque import UnaskedValue, WeakProxy, WeakReference
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import InputFloat
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, LocalSource, Source

_BY_EQUALITY = tuple(cls for cls in BY_EQUALITY if cls is not slice)

Wrapper = Callable[["Context", Any, Source], Value]
WRAPPERS: dict[type, Wrapper] = {}


def wraps(*kinds: type) -> Callable[[Wrapper], Wrapper]:
    """Declare how objects of exactly these types are read; declaring one twice is an error."""
    return declaring(WRAPPERS, *kinds)


def wraps_once(*kinds: type) -> Callable[[Wrapper], Wrapper]:
    """As ``wraps``, for objects of which the trace has one value each, with its source, and a guard on their class."""

    def register(function: Wrapper) -> Wrapper:
        def wrapper(tx: Context, real: Any, source: Source) -> Value:
            found = tx.wrapping.seen(real, source)
            if found is not None:
                return found
            tx.guards.type_is(source, type(real))
            made = function(tx, real, source)
            if made.source is None:
                made.source = source  # type: ignore[misc]  # every class of values has the slot
            return tx.wrapping.remember(real, made)

        return wraps(*kinds)(wrapper)

    return register


class Wrapping:
    """Reads objects, one value for each object however many paths lead to it."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self.by_identity: dict[int, tuple[Any, Value]] = {}
        self.constants: list[SourcedConst] = []
        self._calls: dict[CallSource, Value] = {}
        self.without_cache: dict[Any, Value] = {}

    def release(self) -> None:
        """Let go of the objects: their values refer to each other in circles (an object, its methods)."""
        for _, value in self.by_identity.values():
            if isinstance(value, ObjectValue):
                value.real = None
                value.reads.clear()
                value.attrs.clear()
            elif isinstance(value, ListValue):
                value.release()

    def wrap(self, real: Any, source: Source) -> Value:
        """The value of an existing object that is read from ``source``."""
        if type(source) is not CallSource:
            return self._wrap(real, source)
        made = self._calls[source] = self._wrap(real, source)
        return made

    def read_from(self, source: CallSource) -> Value | None:
        """What a call of a function with a cache has given before."""
        return self._calls.get(source)

    def _wrap(self, real: Any, source: Source) -> Value:
        if class_of_program_answers(real):
            return self._unasked(real, source)
        try:
            wrapper = WRAPPERS.get(type(real))
            if self._tx.outside.holds(real):
                raise GraphBreak(OUTSIDE_WORLD, "what a warning or log record is kept in is read")
            if wrapper is not None:
                return wrapper(self._tx, real, source)
            found = self.seen(real, source)
            return found if found is not None else self._other(real, source)
        except GraphBreak as reason:
            forget_frames(reason)
            self._tx.guards.type_is(source, type(real))
            return self.remember(real, OpaqueValue(real, source, reason))

    def _unasked(self, real: Any, source: Source) -> Value:
        reason = GraphBreak(DESCRIPTOR, f"what the class of {source} is asked, code of the program answers")
        self._tx.guards.type_is(source, type(real))
        found = self.seen(real, source)
        return found if found is not None else self.remember(real, UnaskedValue(real, source, reason))

    def seen(self, real: Any, source: Source) -> Value | None:
        """The value of an object that was read before, with a guard that both paths lead to it."""
        found = self.by_identity.get(id(real))
        if found is None:
            return None
        value = found[1]
        if value.source is not None:
            self._tx.guards.same(value.source, source)
        return value

    def unread(self, value: SourcedConst) -> SourcedConst:
        """Note a constant that is guarded when it is used."""
        self.constants.append(value)
        return value

    def guard_presence(self) -> None:
        """What was reached and only passed on may change, but it must be there: Python would raise where it is not."""
        for value in self.constants:
            source = value.source
            if not value.is_unread or source is None or isinstance(source, LocalSource):
                continue
            if isinstance(source, ItemSource) and isinstance(source.parent, InstanceDictSource):
                self._tx.guards.present(source.parent, source.key)
            else:
                self._tx.guards.type_is(source, type(value.passed_on))
        for _, known in self.by_identity.values():
            if (
                isinstance(known, ListValue)
                and known.is_unread
                and known.at_least
                and known.source is not None
            ):
                self._tx.guards.add(LengthAtLeast(known.source, known.at_least))

    def remember(self, real: Any, value: Value) -> Value:
        """From now on ``real`` is this value."""
        self.by_identity[id(real)] = (real, value)
        return value

    def value_of(self, real: Any) -> Value | None:
        """The value of an object that was read before, if any."""
        found = self.by_identity.get(id(real))
        return None if found is None else found[1]

    def objects(self) -> Iterator[ObjectValue]:
        """The objects of the program's own classes that were read."""
        return (value for _, value in self.by_identity.values() if isinstance(value, ObjectValue))

    def possible_aliases(self, changed: list[Value]) -> Iterator[list[Source]]:
        """For each class of changed objects, where all its objects were read: no two may be one."""
        for cls in dict.fromkeys(value.python_type() for value in changed):
            values = [value for real, value in self.by_identity.values() if type(real) is cls]
            yield [value.source for value in values if value.source is not None]

    def _other(self, real: Any, source: Source) -> Value:
        tx, cls = self._tx, type(real)  # ``isinstance`` would ask the object for its ``__class__``
        is_known_by_identity = issubclass(cls, KINDS_BY_IDENTITY)
        if is_known_by_identity and is_answered_by_program(cls):
            raise GraphBreak(DESCRIPTOR, f"what {source} is asked, code of the program answers")
        if is_known_by_identity:
            tx.guards.is_object(source, real)
            return Const(real, source)
        if is_member_of_c(real) or is_placement(cls):
            tx.guards.equals(source, real)
            return Const(real, source)
        if issubclass(cls, torch.Tensor):
            return self.remember(real, tx.tensors.input(real, source))
        if issubclass(cls, (*numpy_types.CONSTANTS, *numpy_types.FUNCTIONS)):
            return _of_numpy(tx, real, source)
        if cls in numpy_types.ARRAYS:
            tx.guards.type_is(source, cls)
            return self.remember(real, ArrayValue(real, source))
        if numpy_types.is_generator_class(cls):
            return WRAPPERS[torch.Generator](tx, real, source)
        if issubclass(cls, tuple) and keeps_tuple_methods(cls):
            return self.remember(real, WRAPPERS[tuple](tx, real, source))
        if issubclass(cls, super):
            raise GraphBreak(DESCRIPTOR, f"{source} is a super object, which reads attributes of another one")
        if issubclass(cls, weakref.ProxyTypes):
            return self.remember(real, _weak_proxy(tx, real, source))
        if issubclass(cls, weakref.finalize):
            raise GraphBreak(
                DESCRIPTOR, f"{source} is a finalizer, one of a table that the compiler's own are in"
            )
        if issubclass(cls, threading.local) and cls is not threading.local:
            raise GraphBreak(
                DESCRIPTOR,
                f"{source} is of a class made from threading.local, which may run code in each thread",
            )
        if issubclass(cls, collections.defaultdict):
            raise GraphBreak(CONTAINER_CLASS, f"{cls.__name__} is a subclass of defaultdict")
        base = next((kind for kind in (dict, tuple, list) if issubclass(cls, kind)), None)
        if base is not None and _answers_itself(cls):
            raise GraphBreak(
                CONTAINER_CLASS, f"{cls.__name__} is a {base.__name__} that iterates in its own way"
            )
        made = ObjectValue(cls, real, source)
        if issubclass(cls, dict):
            made.base = DictValue(None, dict, source, real)
        elif issubclass(cls, tuple):
            tx.guards.length(source, real)
            made.base = TupleValue(
                [Lazy(item, item_source(source, i, type(real))) for i, item in enumerate(real)]
            )
        elif issubclass(cls, (list, set, frozenset, int, str, float)):
            made.base = None if issubclass(cls, (int, str, float)) else _content(tx, real, source)
        if tx.effects:
            tx.attribute_dicts.check_object(made)
        return self.remember(real, made)


def _weak_proxy(tx: Context, real: Any, source: Source) -> Value:
    reason = GraphBreak(DESCRIPTOR, f"{source} stands for another object, which it refers to weakly")
    place = ProxyReferentSource(source)
    referent = place.step(real)
    if referent is None or runs_program(type(referent)):
        raise reason
    tx.guards.type_is(source, type(real))
    return WeakProxy(real, source, reason, tx.wrap(referent, place))


def _answers_itself(cls: type) -> bool:
    """Whether reading the content of a container would run code of the program: its class's ``len`` or ``iter``."""
    return any(
        type(getattr(cls, name)) is not types.WrapperDescriptorType for name in ("__len__", "__iter__")
    )


def _of_numpy(tx: Context, real: Any, source: Source) -> Value:
    """Numbers and dtypes are constants as long as they stay the same; functions are what they are."""
    if isinstance(real, numpy_types.FUNCTIONS):
        tx.guards.is_object(source, real)
        return Const(real, source)
    varies = isinstance(real, numpy_types.SCALARS) and tx.policy.varies(real, source)
    if varies or not numpy_types.is_constant(real):
        raise GraphBreak(UNKNOWN_VALUE, f"{source}, a number of numpy, differs from call to call")
    return tx.wrapping.unread(SourcedConst(real, source, tx.guards.equals))


def _content(tx: Context, real: Any, source: Source) -> Value:
    if isinstance(real, list):
        tx.guards.length(source, real)
        return ListValue(
            [Lazy(item, item_source(source, i, type(real))) for i, item in enumerate(real)],
            list,
            source,
            real,
        )
    raise GraphBreak(CONTAINER_CLASS, f"{type(real).__name__} is a subclass of a set")


@wraps(type(None), bool)
def _singleton(tx: Context, real: Any, source: Source) -> Value:
    return tx.wrapping.unread(SourcedConst(real, source, tx.guards.is_object))


@wraps(float)
def _float(tx: Context, real: Any, source: Source) -> Value:
    if tx.policy.is_open_float(real, source):
        return InputFloat(tx, real, source)
    return tx.wrapping.unread(SourcedConst(real, source, tx.guards.equals))


@wraps(str, bytes, complex, type(Ellipsis), type(NotImplemented), *_BY_EQUALITY)
def _constant(tx: Context, real: Any, source: Source) -> Value:
    return tx.wrapping.unread(SourcedConst(real, source, tx.guards.equals))


@wraps(int)
def _integer(tx: Context, real: Any, source: Source) -> Value:
    symbolic = tx.policy.symbolic_integer(tx, real, source)
    if symbolic is not None:
        return SymValue(symbolic)
    return tx.wrapping.unread(SourcedConst(real, source, tx.guards.equals))


@wraps(*BY_IDENTITY)
def by_identity(tx: Context, real: Any, source: Source) -> Value:
    """An object that is guarded to be the same one."""
    tx.guards.is_object(source, real)
    return Const(real, source)


@wraps_once(torch.Generator)
def _dice(tx: Context, real: Any, source: Source) -> Value:
    return DiceValue(real, source)


@wraps_once(weakref.ReferenceType, weakref.KeyedRef)
def _weak_reference(tx: Context, real: Any, source: Source) -> Value:
    reason = GraphBreak(NOT_IN_PYTHON, "a weak reference is used other than by calling it")
    return WeakReference(real, source, reason)


@wraps(types.CellType)
def _cell(tx: Context, real: Any, source: Source) -> Value:
    found = tx.wrapping.value_of(real)
    if found is not None:
        return found
    content: Value | None = None
    with contextlib.suppress(ValueError):
        content = Lazy(real.cell_contents, AttrSource(source, "cell_contents"))
    return tx.wrapping.remember(real, CellValue(content, real, source))


@wraps(torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
def _tensor(tx: Context, real: Any, source: Source) -> Value:
    found = tx.wrapping.seen(real, source)
    return found if found is not None else tx.wrapping.remember(real, tx.tensors.input(real, source))
