"""What the trace does while a module is called: which existing objects it reads, and how, and the operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import torch

import fx_guards
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import prepare
from dynamo_capture.semantics.attributes.modules import MODULE_DICTS
from dynamo_capture.semantics.calls.equal_modules.paths import NotFollowed, Paths
from dynamo_capture.semantics.calls.equal_modules.stamps import Stamp, stamp_of
from dynamo_capture.values import Const, ListValue, SourcedConst, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.slices import SliceValue
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import LocalSource, Scope, Source

_ALONE = (
    fx_guards.TypeIs,
    fx_guards.IsObject,
    fx_guards.EqualsConstant,
    fx_guards.Length,
    fx_guards.KeyPresent,
    fx_guards.KeyAbsent,
    fx_guards.DictKeys,
    fx_guards.ClassLookup,
    fx_guards.ClassBases,
    fx_guards.FunctionState,
)
"""Guards on one value, which are asked about what lies at the same place below another module."""
_MODULE = LocalSource("module")


class NotRecorded(Exception):
    """What a call does that is not done again for another module."""


@dataclass(slots=True)
class Performed:
    """An operation: its arguments, what it gave, and the frames above the one that calls the module. ``stamp``: its
    node, where that is all that it has done."""

    op: str
    target: Any
    function: Any
    args: list[Value]
    kwargs: dict[str, Value]
    frames: list[Frame]
    result: Value | None = None
    leaves: tuple[Value, ...] = ()
    stamp: Stamp | None = None


class Journal:
    """Notes the operations of a call, the outermost where one is put in terms of others."""

    def __init__(self, tx: Context, frames: int) -> None:
        self._tx = tx
        self._frames = frames
        self._open: Performed | None = None
        self._is_followed = True
        self.performed: list[Performed] = []
        self.calls = 0
        self._before = 0
        self._made: list[Stamp | None] = []

    def begins(self, call: Any) -> Performed | None:
        """An operation begins; None: inside of another one."""
        if self._open is not None or not self._is_followed:
            return None
        tx = self._tx
        self._before = tx.output.calls
        frames = [_standing(tx, frame) for frame in tx.frames[self._frames :]]
        try:
            args = [copied(tx, arg) for arg in call.args]
            kwargs = {name: copied(tx, arg) for name, arg in call.kwargs.items()}
        except NotRecorded:
            self._is_followed = False
            return None
        self._open = Performed(call.op, call.target, call.function, args, kwargs, frames)
        return self._open

    def makes(
        self, call: Any, outcome: Any, tensors: Sequence[TensorValue], node: Any, result: Value
    ) -> None:
        """An operation, the one that has begun or one inside of it, has made a node."""
        if self._open is not None:
            self._made.append(stamp_of(self._tx, call, outcome, tensors, node, result))

    def ends(self, begun: Performed, result: Value) -> None:
        """It has given a result."""
        tx = self._tx
        made, self._made = self._made, []
        try:
            begun.result = copied(tx, result)
        except NotRecorded:
            self._is_followed = False
            return
        begun.leaves = tuple(leaves_of(tx, begun.result))
        if (
            len(made) == 1
            and made[0] is not None
            and made[0].result is result
            and made[0].is_of(given_to(tx, begun))
        ):
            begun.stamp = made[0]
        self.calls += tx.output.calls - self._before
        self.performed.append(begun)
        self._open = None

    @property
    def is_whole(self) -> bool:
        """Whether each operation that began has ended, and all are of tensors and constants."""
        return self._open is None and self._is_followed


def _standing(tx: Context, frame: Frame) -> Frame:
    made = Frame(tx, prepare(frame.code), frame.globals, {})
    made.next, made.line = frame.next, frame.line
    return made


def copied(tx: Context, value: Value) -> Value:
    """A value, structures as they are now."""
    return mapped(tx, value, {})


def mapped(tx: Context, value: Value, known: dict[int, Value]) -> Value:
    """A value with what ``known`` has for tensors and constants in it. NotRecorded where it is something else."""
    value = tx.force(value)
    kind = type(value)
    if kind is TensorValue or kind is Const or kind is SourcedConst:
        return known.get(id(value), value)
    is_new = isinstance(value, ListValue) and value.real is None and value.cls is list
    if kind in (TupleValue, SliceValue) or (kind is ListValue and is_new):
        return value.mapped(tx, lambda part: mapped(tx, part, known))
    raise NotRecorded(value.describe())


def leaves_of(tx: Context, value: Value) -> list[Value]:
    """The tensors and constants in a value, in order."""
    found: list[Value] = []

    def note(part: Value) -> Value:
        part = tx.force(part)
        if type(part) in (TensorValue, Const, SourcedConst):
            found.append(part)
            return part
        return part.mapped(tx, note)

    note(value)
    return found


def given_to(tx: Context, call: Performed) -> list[Value]:
    """The tensors and constants among the arguments of an operation."""
    return [leaf for arg in (*call.args, *call.kwargs.values()) for leaf in leaves_of(tx, arg)]


@dataclass(slots=True)
class Recorded:
    """A call of a module. What was read below it, by places: ``kinds`` of objects, ``modules`` with their attributes,
    ``inputs`` with the lines that read them, ``constants``, and pairs that are the ``same``. ``guards``: all others
    below it, with the fields that are paths; ``outside``: tensors of elsewhere that operations take."""

    paths: Paths
    evaluator: Any
    kinds: dict[int, type]
    modules: list[tuple[int, tuple[Any, ...]]]
    inputs: list[tuple[int, TensorValue, Any]]
    constants: list[tuple[int, SourcedConst]]
    same: list[tuple[int, int, Any]]
    guards: list[tuple[Any, tuple[tuple[str, int], ...]]]
    performed: list[Performed]
    outside: frozenset[int]
    result: Value
    steps: int
    runs: int


@dataclass(slots=True)
class Begun:
    """How far the trace was when a call began."""

    guards: int
    inputs: int
    constants: int
    known: frozenset[int]
    calls: int
    steps: int
    runs: int


def begun(tx: Context) -> Begun:
    """How far the trace is."""
    return Begun(
        len(tx.guards.records),
        len(tx.tensors.inputs),
        len(tx.wrapping.constants),
        frozenset(tx.wrapping.by_identity),
        tx.output.calls,
        tx.steps,
        tx.runs,
    )


def recorded(
    tx: Context,
    module: Any,
    source: Source,
    given: Sequence[Value],
    before: Begun,
    journal: Journal,
    result: Value,
) -> Recorded:
    """What a call has done. NotRecorded, NotFollowed: what it has done is not done again."""
    if not journal.is_whole or journal.calls != tx.output.calls - before.calls:
        raise NotRecorded("nodes that no operation has made")
    paths = Paths(source)
    read = [held for key, held in tx.wrapping.by_identity.items() if key not in before.known]
    kinds = {0: type(module)}
    kinds.update((_below(paths, value.source), type(real)) for real, value in read)
    inputs = []
    for value in tx.tensors.inputs[before.inputs :]:
        if not is_ordinary(value) or type(value.real) not in (torch.Tensor, torch.nn.Parameter):
            raise NotRecorded(value.describe())
        inputs.append((_below(paths, value.source), value, None))
    constants = []
    for constant in tx.wrapping.constants[before.constants :]:
        place = paths.place(constant.source)
        if place >= 0:
            constants.append((place, constant))
    guards, same = _guards(tx, paths, {place for place, _, _ in inputs})
    evaluator = fx_guards.build(_moved(paths, guards), varnames=(_MODULE.name,))
    if not evaluator.check(Scope({_MODULE.name: module}, {})):
        raise NotRecorded("a guard does not hold")
    if not paths.asked <= kinds.keys():
        raise NotRecorded("an attribute of an object of an unknown class")
    found = paths.objects(module, kinds)
    modules = [(place, shape_of(one)) for place, one in enumerate(found) if isinstance(one, torch.nn.Module)]
    made = Recorded(
        paths,
        evaluator,
        kinds,
        modules,
        [(place, value, _where(tx, value)) for place, value, _ in inputs],
        constants,
        [(one, other, found[one]) for one, other in same],
        guards,
        journal.performed,
        frozenset(),
        copied(tx, result),
        tx.steps - before.steps,
        tx.runs - before.runs,
    )
    made.outside = _outside(tx, made, given, paths)
    return made


def _where(tx: Context, value: TensorValue) -> Any:
    found = (one for one in reversed(tx.guards.records) if one.source is value.source)
    return next((one.where for one in found if type(one) is fx_guards.TensorMatch), None)


def _below(paths: Paths, source: Source | None) -> int:
    place = -1 if source is None else paths.place(source)
    if place < 0:
        raise NotRecorded(f"{source} is read first")
    return place


def is_ordinary(value: TensorValue) -> bool:
    """Whether all that is known of a tensor is its form."""
    return (
        value.content is None
        and value.attrs is None
        and not value.is_replaced
        and not value.follows_from
        and value.formula is None
    )


def shape_of(module: torch.nn.Module) -> tuple[Any, ...]:
    """Which attributes a module has, of which classes, and which members are in its tables; keys that are no texts by
    what objects they are, so that no code of the program compares them."""
    own = vars(module)
    tables = [own.get(name) for name in MODULE_DICTS]
    members = [tuple(map(_named, table)) if type(table) is dict else None for table in tables]
    return (type(module), tuple(map(_named, own)), tuple(map(type, own.values())), *members)


def _named(key: Any) -> Any:
    return key if type(key) is str else id(key)


def _guards(
    tx: Context, paths: Paths, inputs: set[int]
) -> tuple[list[tuple[Any, tuple[tuple[str, int], ...]]], list[tuple[int, int]]]:
    """The guards below the module, each once, and the pairs of paths that lead to one object."""
    found: dict[Any, tuple[tuple[str, int], ...]] = {}
    same = []
    for record in tx.guards.records:
        kind = type(record)
        places = [paths.place(source) for source in record.sources]
        if max(places, default=-1) < 0 or record in found:
            continue
        if kind in _ALONE:
            found[record] = (("source", places[0]),)
        elif isinstance(record, fx_guards.SameObject):
            names = ("source", "other")
            sources = (record.source, record.other)
            moved = [(name, paths.place(one)) for name, one in zip(names, sources, strict=True)]
            places = [place for _, place in moved]
            if places[0] < 0:
                places.reverse()
            same.append((places[0], places[1]))
            found[record] = tuple([(name, place) for name, place in moved if place >= 0])
        elif kind is not fx_guards.TensorMatch or places[0] not in inputs:
            raise NotRecorded(f"a guard {record.kind} on {record.source}")
    return list(found.items()), same


def _moved(paths: Paths, guards: list[tuple[Any, tuple[tuple[str, int], ...]]]) -> list[Any]:
    below = paths.below(_MODULE)
    return [
        moved(record, names, below) for record, names in guards if type(record) is not fx_guards.SameObject
    ]


def moved(record: Any, names: tuple[tuple[str, int], ...], below: list[Source]) -> Any:
    """A guard about the same places below another module."""
    kind = type(record)
    made = object.__new__(kind)
    for name in _slots(kind):
        object.__setattr__(made, name, getattr(record, name))
    for name, place in names:
        object.__setattr__(made, name, below[place])
    return made


_SLOTS: dict[type, tuple[str, ...]] = {}


def _slots(kind: type[Any]) -> tuple[str, ...]:
    found = _SLOTS.get(kind)
    if found is None:
        found = _SLOTS[kind] = tuple([one.name for one in fields(kind)])
    return found


def _outside(tx: Context, made: Recorded, given: Sequence[Value], paths: Paths) -> frozenset[int]:
    """The tensors that operations take and that are no argument, below the module, or result of an operation: other
    existing ones. NotRecorded where there is anything else, or more is known of a result than its form."""
    known = {id(one) for one in given}
    known.update(id(value) for _, value, _ in made.inputs)
    constants = {id(constant) for _, constant in made.constants}
    outside: set[int] = set()
    results = [Performed("", None, None, [made.result], {}, [])]
    for one in (*made.performed, *results):
        for value in (*one.args, *one.kwargs.values()):
            for leaf in leaves_of(tx, value):
                if id(leaf) in known or id(leaf) in constants:
                    continue
                if isinstance(leaf, TensorValue):
                    if leaf.real is None or tx.wrapping.value_of(leaf.real) is not leaf:
                        raise NotRecorded(leaf.describe())
                    outside.add(id(leaf))
                elif leaf.source is not None and paths.place(leaf.source) >= 0:
                    raise NotRecorded(leaf.describe())
        for leaf in one.leaves:
            if isinstance(leaf, TensorValue):
                if not is_ordinary(leaf):
                    raise NotRecorded(leaf.describe())
                known.add(id(leaf))
            elif type(leaf) is not Const or leaf.source is not None:
                raise NotRecorded(leaf.describe())
    return frozenset(outside)


__all__ = ["Journal", "NotFollowed", "NotRecorded", "Recorded", "begun", "mapped", "recorded"]
