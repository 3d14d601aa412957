"""The third call of equal modules, which is recorded, and those that repeat it, if they may."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from dynamo_capture.semantics.calls.equal_modules import recording, replaying
from dynamo_capture.semantics.calls.equal_modules.places import Place
from dynamo_capture.semantics.calls.equal_modules.recording import Journal, NotFollowed, NotRecorded
from dynamo_capture.semantics.calls.equal_modules.trace_state import TraceState
from dynamo_capture.values import Const, ObjectValue, SourcedConst, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context

_log = logging.getLogger("dynamo_capture")
_MOST_FAILURES = 2


class Repeater:
    """The calls of one trace. ``skipped``: classes of objects that were read without a value."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._state: TraceState | None = None
        self.skipped: set[type] = set()

    def check_changes(self) -> None:
        """Where an object is changed of a class of which some were read without a value, the trace cannot tell whether
        it is one of them: CapturedAnew."""
        tx = self._tx
        if self.skipped and any(value.python_type() in self.skipped for value in tx.effects.changed()):
            replaying.one_by_one(tx)

    def call(
        self,
        place: Place,
        owner: ObjectValue,
        args: list[Value],
        kwargs: dict[str, Value],
        plain: Callable[[], Value],
    ) -> Value:
        """What calling a module gives, at a place where equal ones were called before."""
        if place.failures > _MOST_FAILURES or not self._is_open(owner):
            return plain()
        given = _arguments(self._tx, args, kwargs)
        if given is None:
            return plain()
        return (
            self._recorded(place, owner, given, plain)
            if place.record is None
            else self._repeated(place, owner, given, plain)
        )

    def _is_open(self, owner: ObjectValue) -> bool:
        tx = self._tx
        return (
            owner.source is not None
            and not owner.attrs
            and tx.tensors.journal is None
            and not tx.levels
            and not tx.env.symbols
            and not tx.tensors.modes
            and not any(frame.exceptions for frame in tx.frames)
            and id(tx.frames[0].code) not in tx.policy.functions.without_replay
        )

    def _recorded(
        self, place: Place, owner: ObjectValue, given: tuple[Any, ...], plain: Callable[[], Value]
    ) -> Value:
        tx = self._tx
        place.failures += 1
        if self._state is None:
            self._state = TraceState(tx)
        state = self._state.read()
        if state is None or owner.source is None:
            return plain()
        before = recording.begun(tx)
        journal = tx.tensors.journal = Journal(tx, len(tx.frames))
        try:
            result = plain()
        finally:
            tx.tensors.journal = None
        if self._state.read() != state:
            return result
        try:
            place.record = recording.recorded(tx, owner.real, owner.source, given[1], before, journal, result)
        except (NotRecorded, NotFollowed) as reason:
            _log.debug("calls of %s are traced one by one: %s", owner.cls.__qualname__, reason)
            return result
        place.state, place.given, place.failures = state, given, 0
        return result

    def _repeated(
        self, place: Place, owner: ObjectValue, given: tuple[Any, ...], plain: Callable[[], Value]
    ) -> Value:
        tx, record = self._tx, place.record
        assert record is not None
        assert self._state is not None
        assert owner.source is not None
        known = _matched(place.given, given)
        found = None
        if known is not None and self._state.read() == place.state:
            found = replaying.holds(tx, record, owner.real)
        if known is None or found is None:
            place.failures += 1
            return plain()
        below = record.paths.below(owner.source)
        if not replaying.read(tx, record, found, below, known):
            place.failures += 1
            return plain()
        self.skipped.update(record.kinds.values())
        return replaying.perform(tx, record, below, known)


def _arguments(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> tuple[Any, ...] | None:
    """The form of arguments, and the tensors and constants in them; None where there is anything else."""
    leaves: list[Value] = []
    form = [_form(tx, arg, leaves) for arg in args]
    named = [(name, _form(tx, arg, leaves)) for name, arg in kwargs.items()]
    if None in form or any(part is None for _, part in named):
        return None
    return (form, named), leaves


def _form(tx: Context, value: Value, leaves: list[Value]) -> Any:
    value = tx.force(value)
    if type(value) in (TensorValue, Const, SourcedConst):
        leaves.append(value)
        return type(value)
    if type(value) is not TupleValue or value.cls is not tuple or value.source is not None:
        return None
    parts = [_form(tx, part, leaves) for part in value.items]
    return None if None in parts else parts


def _matched(first: tuple[Any, ...], now: tuple[Any, ...]) -> dict[int, Value] | None:
    """The tensors that stand for the recorded ones, if the arguments are alike to all that a program can ask."""
    if first[0] != now[0]:
        return None
    known: dict[int, Value] = {}
    for one, other in zip(first[1], now[1], strict=True):
        if isinstance(one, TensorValue):
            if one is not other and not _is_alike(one, other):
                return None
            if known.setdefault(id(one), other) is not other:
                return None
        elif one is not other and not _is_constant(one, other):
            return None
    return known if len({*map(id, known.values())}) == len(known) else None


def _is_alike(one: TensorValue, other: TensorValue) -> bool:
    return one.real is None and other.real is None and replaying.is_equal(one, other)


def _is_constant(one: Value, other: Value) -> bool:
    return (
        type(one) is Const
        and type(other) is Const
        and one.source is None
        and other.source is None
        and replaying.same_constant(one.value, other.value)
    )
