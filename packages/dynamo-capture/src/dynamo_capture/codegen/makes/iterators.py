"""Iterators that are made where the traced ones stood."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from dynamo_capture.codegen.generators import remade
from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.runtime import iterators, replacement_calls
from dynamo_capture.values import (
    CallIterator,
    Const,
    DictIterator,
    DictView,
    EnumerateIterator,
    IndexIterator,
    ListIterator,
    ListValue,
    MapIterator,
    ObjectIterator,
    RangeIterator,
    ReversedListIterator,
    SequenceIterator,
    SymRangeIterator,
    Value,
    WatchingIterator,
    ZipIterator,
)
from dynamo_capture.values.containers.late_sequences import PartsIterator
from dynamo_capture.values.iteration.arrangements import LIBRARY_ITERATORS, SharedItems
from dynamo_capture.values.iteration.array_iterator import ArrayIterator
from dynamo_capture.values.iteration.library import LibraryIterator

_OF_SET: type = type(iter(set()))


@makes(DictIterator)
def dict_iterator(to: Reconstruction, value: DictIterator) -> None:
    """An iterator over a dictionary, at its place."""
    if value.has_ended or value.is_spoiled(to.tx):
        made = iterators.ended_iterator if value.has_ended else iterators.spoiled_iterator
        to.call(made, lambda: to.push(Const(value.python_type())))
        return
    to.settle(value.owner)
    view = DictView(value.owner, value.kind)
    if value.backward:
        to.call(iterators.reversed_iterator, lambda: to.push_all([view, Const(value.position)]), 2)
        return
    to.call(replacement_calls.dict_iterator, lambda: to.push_all([view, Const(value.position)]), 2)


@makes(SequenceIterator)
def sequence_iterator(to: Reconstruction, value: SequenceIterator) -> None:
    """An iterator over what is left of some items: of its own class, where that does not need the whole container."""
    owner, left = value.owner, value.items[value.position :]
    if isinstance(value, WatchingIterator) and value.is_spoiled:
        to.call(iterators.spoiled_iterator, lambda: to.push(Const(value.kind)))
        return
    if value.has_ended:
        to.call(iterators.ended_iterator, lambda: to.push(Const(value.kind)))
        return
    if owner is None:
        to.push_list(left)
        to.emitter.get_iter()
        return
    to.settle(owner)
    if value.kind is _OF_SET:
        to.call(iterators.set_iterator, lambda: to.push_all([owner, ListValue(left)]), 2)
        return
    forward = value.kind in iterators.FORWARD
    made = iterators.iterator if forward else iterators.reversed_iterator
    to.call(made, lambda: to.push_all([owner, Const(value.position)]), 2)


@makes(PartsIterator)
def parts_iterator(to: Reconstruction, value: PartsIterator) -> None:
    """An iterator over parts of a tensor."""
    if value.is_unread:
        to.push(value.parts_iterated)
        to.emitter.get_iter()
    else:
        sequence_iterator(to, value)


@makes(IndexIterator, ArrayIterator)
def index_iterator(to: Reconstruction, value: IndexIterator) -> None:
    """An iterator that asks for items by their index."""
    if value.position is None or value.position < 0:
        to.call(iterators.ended_iterator, lambda: to.push(Const(value.python_type())))
        return
    to.settle(value.owner)
    made = iterators.reversed_by_index if value.is_reversed else iterators.by_index
    to.call(made, lambda: to.push_all([value.owner, Const(value.position)]), 2)


@makes(ListIterator)
def list_iterator(to: Reconstruction, value: ListIterator) -> None:
    """An iterator over a list, at its place."""
    if value.has_ended:
        to.call(iterators.ended_iterator, lambda: to.push(Const(value.python_type())))
        return
    if value.owner.source is not None or value.holder is value.owner:
        to.settle(value.owner)
    to.call(replacement_calls.list_iterator, lambda: to.push_all([value.holder, Const(value.position)]), 2)


@makes(ReversedListIterator)
def reversed_list_iterator(to: Reconstruction, value: ReversedListIterator) -> None:
    """An iterator over a list from its end, at its place."""
    if value.upcoming < 0:
        to.call(iterators.ended_iterator, lambda: to.push(Const(value.python_type())))
        return
    to.settle(value.holder)
    to.call(iterators.reversed_list_iterator, lambda: to.push_all([value.holder, Const(value.upcoming)]), 2)


@makes(SymRangeIterator)
def open_range_iterator(to: Reconstruction, value: SymRangeIterator) -> None:
    """An iterator over what is left of a range with symbolic bounds."""
    to.call(range, lambda: to.push_all(value.rest(to.tx)), 3)
    to.emitter.get_iter()


@makes(RangeIterator)
def range_iterator(to: Reconstruction, value: RangeIterator) -> None:
    """An iterator over what is left of a range."""
    to.call(iterators.iterator, lambda: to.push_all([Const(value.range), Const(value.position)]), 2)


@makes(EnumerateIterator)
def enumerate_(to: Reconstruction, value: EnumerateIterator) -> None:
    """``enumerate``."""
    to.call(enumerate, lambda: _push_started(to, [value.inner], Const(value.position)), 2)


@makes(ZipIterator)
def zip_(to: Reconstruction, value: ZipIterator) -> None:
    """``zip``."""
    made = functools.partial(zip, strict=True) if value.strict else zip
    to.call(made, lambda: _push_started(to, value.inners), len(value.inners))


@makes(MapIterator)
def map_(to: Reconstruction, value: MapIterator) -> None:
    """``map`` and ``filter``."""
    made = filter if value.keeps else map

    def push() -> None:
        to.push(value.function)
        _push_started(to, value.inners)

    to.call(made, push, 1 + len(value.inners))


def _push_started(to: Reconstruction, iterators: Sequence[Value], *more: Value) -> None:
    """Iterators that ``zip`` and its kin have asked for already: an object's own ``__iter__`` is not called again."""
    for iterator in iterators:
        if isinstance(iterator, ObjectIterator):
            to.call(replacement_calls.drawing_from, functools.partial(to.push, iterator), 1)
        else:
            to.push(iterator)
    to.push_all(list(more))


@makes(GeneratorValue)
def generator(to: Reconstruction, value: GeneratorValue) -> None:
    """Generators, suspended where they were."""
    code = value.frame.code
    names = [value.name(to.tx, "__name__"), value.name(to.tx, "__qualname__")]
    if value.finished or names != [code.co_name, code.co_qualname]:

        def arguments() -> None:
            _unnamed_generator(to, value)
            for name in names:
                to.emitter.load_const(name)

        to.call(replacement_calls.named_generator, arguments, 3)
    else:
        _unnamed_generator(to, value)


def _unnamed_generator(to: Reconstruction, value: GeneratorValue) -> None:
    parts = remade(value, to.tx.resumes)
    if value.finished:
        made: Callable[..., Any] = replacement_calls.finished_generator
    else:
        made = replacement_calls.suspended_generator if value.started else replacement_calls.new_generator
    to.call(made, lambda: to.push_all(parts), len(parts))


@makes(ObjectIterator)
def object_iterator(to: Reconstruction, value: ObjectIterator) -> None:
    """An object with ``__next__``."""
    to.push(value.value)


def _library_iterator(to: Reconstruction, value: LibraryIterator | SharedItems) -> None:
    """Iterators of ``itertools``, of what is left."""
    made, parts = value.remaking(to.tx)
    to.call(made, lambda: _push_started(to, parts), len(parts))


for _kind in (*LIBRARY_ITERATORS, SharedItems):
    makes(_kind)(_library_iterator)


@makes(CallIterator)
def call_iterator(to: Reconstruction, value: CallIterator) -> None:
    """``iter(function, sentinel)``."""
    to.call(iter, lambda: to.push_all([value.function, value.sentinel]), 2)
