"""Instructions that carry out a trace's effects, in order, and what they need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from dynamo_capture.codegen.collect import Collector
from dynamo_capture.codegen.reconstruct import Reconstruction
from dynamo_capture.foundation.break_kinds import NOT_RECONSTRUCTIBLE
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.frames.globals_scope import GlobalsScope
from dynamo_capture.runtime import replacement_calls
from dynamo_capture.runtime.calls import changed_sets
from dynamo_capture.side_effects.effects import Effects
from dynamo_capture.sources.sources import ReferentSource
from dynamo_capture.trace import Trace
from dynamo_capture.values import Const, DictValue, ListValue, SetValue, TupleValue, Value


def visited(tx: Trace, values: list[Value], cells: dict[int, str]) -> Collector:
    """What is reached by these values and the effects, as the trace stands now."""
    collector = Collector(tx, cells)
    for value in values:
        collector.visit(value)
    _visit_effects(tx, tx.effects, collector)
    return collector


def close_dropped(tx: Trace, frame: Frame, result: Value) -> None:
    """Close the generators that only variables of a returning frame refer to, as Python does when it clears them."""
    pending = [generator for generator in tx.generators if not generator.ends_by_itself]
    if not pending:
        return
    collector = visited(tx, [result], {})
    names = dict.fromkeys((*tx.resumes.original(frame.code).co_varnames, *frame.variables))
    for held in (frame.variables.get(name) for name in names):
        if isinstance(held, GeneratorValue) and held in pending and not collector.has_seen(held):
            try:
                held.close(tx)
            except UserRaise:
                raise GraphBreak(
                    NOT_RECONSTRUCTIBLE, "a dropped generator raises while it is closed"
                ) from None


def _visit_effects(tx: Trace, effects: Effects, collector: Collector) -> None:
    """Tell the collector which values the replay needs."""
    for entry in effects.log.values():
        for value in _values(tx, entry):
            collector.visit(value)
    for value in effects.late:
        collector.visit(value)
    for made in (*effects.hooks, *effects.late):  # once, whether or not the program keeps it
        collector.shared.add(id(made))


def _values(tx: Trace, entry: tuple[Any, ...]) -> list[Value]:
    match entry:
        case ("content", owner):
            return [owner, *_content(tx, owner)]
        case ("attr" | "tensor_attr", owner, name):
            value = owner.attrs.get(name)
            return [owner] if value is None else [owner, value]
        case ("iterator" | "hook", value):
            return [value]
        case ("cell", cell):
            return [cell] if cell.content is None else [cell, cell.content]
        case ("global", scope, name):
            value = scope.written.get(name)
            return [] if value is None else [value]
        case ("call", _, args, kwargs):
            return [*args, *kwargs.values()]
    raise AssertionError(entry)


def _content(tx: Trace, owner: Value) -> list[Value]:
    if isinstance(owner, DictValue):
        return [part for pair in _entries(owner) for part in pair]
    if isinstance(owner, SetValue):
        return list(owner.items.values())
    assert isinstance(owner, ListValue)
    return owner.appended if owner.is_unread else list(owner.items)


def compute_late(effects: Effects, to: Reconstruction) -> None:
    """Emit what is computed of results of the graph, in the order of the program."""
    for value in effects.late:
        to.push(value)
        to.emitter.pop_top()


def replay(tx: Trace, effects: Effects, to: Reconstruction) -> None:
    """Emit the replay."""
    for handle in effects.hooks:
        to.push(handle)
        to.emitter.pop_top()
    for entry in effects.log.values():
        match entry:
            case ("content", owner):
                to.settle(owner)
            case ("attr" | "tensor_attr", owner, name):
                _replay_attribute(owner, name, to)
            case ("iterator", iterator):
                arguments = [iterator, Const(iterator.calls)]
                to.call(replacement_calls.advance, lambda given=arguments: to.push_all(given), 2)  # type: ignore[misc]
                to.emitter.pop_top()
            case ("cell", cell):
                if cell.content is not None:
                    to.push(cell.content)
                to.push(cell)
                (to.emitter.delete_attr if cell.content is None else to.emitter.store_attr)("cell_contents")
            case ("global", scope, name):
                _replay_global(scope, name, to)
            case ("call", function, args, kwargs):
                to.emitter.begin_call()
                to.emitter.load_const(function)
                to.emitter.end_callable()
                to.push_all([*args, *kwargs.values()])
                to.emitter.call(len(args) + len(kwargs), tuple(kwargs))
                to.emitter.pop_top()


def replay_content(owner: Any, to: Reconstruction) -> None:
    """Give a changed container of before the trace what it holds now."""
    content: Value
    function: Callable[..., None]
    if isinstance(owner, DictValue):
        pairs: list[Value] = [TupleValue(pair) for pair in _entries(owner)]
        function = replacement_calls.update_dict if owner.entries is None else replacement_calls.replace_dict
        content = ListValue(pairs) if owner.entries is None else DictValue(owner.entries)
    elif isinstance(owner, SetValue):
        content, function = ListValue(list(owner.items.values())), changed_sets.replace_set
    elif owner.is_unread:
        content, function = ListValue(owner.appended), replacement_calls.extend_list
    else:
        stays = owner.cls is not list and owner.generation == 0
        content = ListValue(owner.items)
        function = replacement_calls.replace_items if stays else replacement_calls.replace_list
    to.call(_unless_gone(owner, function), lambda: to.push_all([owner, content]), 2)
    to.emitter.pop_top()


def _unless_gone(owner: Value, function: Callable[..., None]) -> Callable[..., None]:
    """What changes ``owner``, where it may have died: a local that nothing reads any more may be all that held it."""
    return (
        partial(replacement_calls.unless_gone, function)
        if isinstance(owner.source, ReferentSource)
        else function
    )


def _entries(owner: DictValue) -> list[list[Value]]:
    """What is put into a changed dict: only what was stored where nothing asked for more."""
    if owner.entries is None:
        return [*owner.stored.values(), *owner.late]
    return list(owner.entries.values())


def _replay_attribute(owner: Any, name: str, to: Reconstruction) -> None:
    value = owner.attrs.get(name)
    if value is None:
        to.call(
            _unless_gone(owner, replacement_calls.delete_attribute),
            lambda: to.push_all([owner, Const(name)]),
            2,
        )
    else:
        function = _unless_gone(owner, replacement_calls.set_attribute)
        to.call(function, lambda: to.push_all([owner, Const(name), value]), 3)
    to.emitter.pop_top()


def _replay_global(scope: GlobalsScope, name: str, to: Reconstruction) -> None:
    """Set a global, or delete it: one that the trace itself has set before may not be there, so it is set first."""
    value = scope.written.get(name)
    to.push(value if value is not None else Const(None))
    if scope.is_root:
        to.emitter.store_global(name)
        if value is None:
            to.emitter.delete_global(name)
        return
    for opname in ("store", "delete") if value is None else ("store",):
        to.emitter.load_const(scope.real)
        to.emitter.load_const(name)
        (to.emitter.store_subscr if opname == "store" else to.emitter.delete_subscr)()
