"""A stretch: all operations of a graph through which gradients flow that are tensors which dispatch in Python.

What a class computes is plain nodes of the graph, with no history. Autograd's own record of the operations is kept on
the stand-ins, above the dispatch. Where the graph ends, those results that outlive it get their history at once: one
backward for all of them, as long as the whole stretch, so that gradients are added where torch adds them, by their
class.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dynamo_capture.foundation.break_kinds import DISPATCH_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.libraries.distributed_tensors import is_distributed
from dynamo_capture.graph.region_body import Body
from dynamo_capture.runtime.autograd_history import Histories
from dynamo_capture.runtime.replayed_operations import Operand, Replayed, Step
from dynamo_capture.runtime.subclass_parts import Ends
from dynamo_capture.semantics.tensor_subclasses.dispatch_decomposition import TakenApart
from dynamo_capture.semantics.tensor_subclasses.gradients import attached, plain_parts, traced_gradients
from dynamo_capture.values import (
    NONE,
    Const,
    DictValue,
    ListValue,
    SliceValue,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
    tensors_of,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.structures import sequence_leaves
from dynamo_capture.values.tensors.followed import FollowedResults
from dynamo_capture.values.tensors.wrapper import WrapperValue


class Stretch:
    """One graph's. Its members are the tensors that it gave and that require grad."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx
        self._apart = TakenApart(tx)
        self._members: dict[int, WrapperValue] = {}
        self._trained: dict[int, TensorValue] = {}
        self._inputs: dict[int, Value] = {}
        self._steps: list[tuple[Callable[..., Any], list[Value], dict[str, Value], list[TensorValue]]] = []
        self._written: set[int] = set()

    def __contains__(self, value: object) -> bool:
        return id(value) in self._members

    def run(
        self,
        function: Callable[..., Any],
        name: str,
        tensors: list[TensorValue],
        args: list[Value],
        kwargs: dict[str, Value],
    ) -> Value:
        """``function(*args, **kwargs)``, where some of its ``tensors`` require grad."""
        tx, apart = self._tx, self._apart
        follows = any(tensor in self for tensor in tensors)
        if follows and isinstance(tx.output, Body):
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"{name} on what tensors that dispatch in Python gave, in a region"
            )
        self._check_known(name, tensors)
        result, found, drew, writes = self._forward(function, name, args, kwargs)
        shown = any(self._shares(value) for value in found)
        if not found:
            if follows and writes:
                self._steps.append((function, args, kwargs, _tensors(tx, result)))
            return result
        trained = {id(t): t for t in tensors if t.meta.requires_grad and t not in self}
        if not follows and not shown and all(type(value) is TensorValue for value in found):
            traced = traced_gradients(tx, apart, name, list(trained.values()), found)
            if traced.are_plain:
                carriers = attached(tx, traced, list(trained.values()))
                return _replaced(tx, result, dict(zip(map(id, found), carriers, strict=True)))
        if drew or isinstance(tx.output, Body):
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"{name} on tensors that dispatch in Python draws, or is in a region"
            )
        self._check_computed(name, list(trained.values()), found)
        self._trained.update(trained)
        made = _replaced(tx, result, {id(value): self._member(value) for value in found})
        self._steps.append((function, args, kwargs, _tensors(tx, made)))
        return made

    def _forward(
        self, function: Callable[..., Any], name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> tuple[Value, list[TensorValue], bool, bool]:
        """What an operation gives, the tensors in it that require grad, and whether it draws or writes."""
        tx, output = self._tx, self._tx.output
        serial, last = WrapperValue.count(), next(iter(reversed(output.graph.nodes)), None)
        draws, written = output.draws, len(output.overwritten)
        output.draws = False
        try:
            result = tx.force(self._apart.run(function, args, kwargs))
        finally:
            drew, output.draws = output.draws, output.draws or draws
        self._written.update(map(id, output.overwritten[written:]))
        found = [value for value in _tensors(tx, result) if self._apart.stand_in(value).requires_grad]
        for value in found:
            if value not in self and not _is_new(value, serial, last, self._shares(value)):
                raise GraphBreak(
                    DISPATCH_IN_PYTHON, f"{name} on tensors that dispatch in Python gives an existing one"
                )
        return result, found, drew, len(output.overwritten) > written

    def _shares(self, value: TensorValue) -> bool:
        """Whether a plain result shows the memory of one before, or of the part of a distributed tensor, which the
        graph's end looks at (``_check_unwritten``)."""
        if isinstance(value, WrapperValue):
            return False
        known = [
            *self._members.values(),
            *(v for v in self._apart.values() if is_distributed(v.python_type())),
        ]
        return any(value is not own and value.memory is own for each in known for own in _memory(each))

    def _check_known(self, name: str, tensors: list[TensorValue]) -> None:
        """What autograd knows of the tensors has not changed behind the stand-ins."""
        for tensor in tensors:
            if self._apart.stand_in(tensor).requires_grad is not tensor.meta.requires_grad:
                raise GraphBreak(
                    DISPATCH_IN_PYTHON, f"{name} on {tensor.describe()} that has come to require grad"
                )

    def _check_computed(self, name: str, trained: list[TensorValue], found: list[TensorValue]) -> None:
        """Gradients of tensors that the graph itself computes stay in the graph, which knows plain ones only."""
        computed = [value for value in trained if value.source is None]
        if computed and not traced_gradients(self._tx, self._apart, name, computed, found).are_plain:
            raise GraphBreak(
                DISPATCH_IN_PYTHON, f"{name} gives a plain tensor that is computed here a gradient of a class"
            )

    def _member(self, value: TensorValue) -> WrapperValue:
        """A result that requires grad, as the trace goes on with it."""
        if isinstance(value, WrapperValue) and value in self:
            return value
        spec, kind = value.meta.spec, value.meta.cls
        meta = TensorMeta.of(spec, True, False, kind)
        if isinstance(value, WrapperValue):
            value.meta = meta
            made = value
        else:
            made = WrapperValue(meta)
            made.plain, made.attrs = value, value.attrs
            self._apart.stands_for(self._apart.stand_in(value), made)
        self._members[id(made)] = made
        return made

    def close(self, reached: Sequence[WrapperValue]) -> None:
        """Give the members that outlive the graph their history."""
        results = list({id(value): value for value in reached if value in self}.values())
        if not results:
            return
        tx, trained = self._tx, list(self._trained.values())
        traced = traced_gradients(tx, self._apart, "operations", trained, results)
        carriers = attached(tx, traced, trained, materialize=False)
        steps, inputs, places = self._replay(results)
        self._check_unwritten(inputs)
        self._check_views(results, inputs)
        counts = tuple(len(plain_parts(value, "a result")) for value in results)
        needed = tuple(places[id(value)] for value in trained)
        replayed = Replayed(tuple(steps), needed, tuple(places[id(value)] for value in results))
        raw: list[Value] = [NONE if value.plain is not None else _without_history(value) for value in results]
        known = self._known_histories(results)
        alike, kept = known.are_alike, [known.keeps(self._apart.stand_in(value)) for value in inputs]
        ends = Ends(
            counts, alike, tuple(kept), tuple(known.keeps(self._apart.stand_in(v)) for v in results), replayed
        )
        joined = FollowedResults(ends, raw, carriers, inputs)
        for index, value in enumerate(results):
            value.joined = (joined, index)

    def _replay(self, results: list[WrapperValue]) -> tuple[list[Step], list[Value], dict[int, int]]:
        """The operations for torch, what they are given, and the place of each value."""
        tx = self._tx
        inputs: list[Value] = []
        places: dict[int, int] = {}
        for value in self._trained.values():
            places[id(value)] = len(inputs)
            inputs.append(value)
        given = {id(v) for _, _, _, made in self._steps for v in made}
        for _, args, kwargs, _ in self._steps:
            for end in _ends(tx, [*args, *kwargs.values()]):
                if id(end) not in places and id(end) not in given:
                    places[id(end)] = len(inputs)
                    inputs.append(end)
        steps, count = [], len(inputs)
        for function, args, kwargs, made in self._steps:
            named = {name: _template(tx, value, places) for name, value in kwargs.items()}
            steps.append(Step(function, tuple(_template(tx, value, places) for value in args), named))
            for value in made:
                places[id(value)] = count
                count += 1
        return steps, inputs, places

    def _check_unwritten(self, inputs: list[Value]) -> None:
        """What the gradients are computed from is what the operations were given."""
        tx = self._tx
        memory = {id(tensor) for tensor in tx.output.overwritten} - self._written
        for value in [*inputs, *self._members.values()]:
            for part in _memory(value):
                if id(part) in memory or (value not in self and id(part) in self._written):
                    raise GraphBreak(
                        DISPATCH_IN_PYTHON, f"{value.describe()} is written to, and gradients need it"
                    )
        entries = tx.effects.log.values()
        changed = {id(entry[1]) for entry in entries if entry[0] == "tensor_attr"}
        changed |= {id(value) for entry in entries if entry[0] == "call" for value in entry[2]}
        if any(id(value) in changed for value in inputs):
            raise GraphBreak(
                DISPATCH_IN_PYTHON, "a tensor that gradients need is changed by what its class does"
            )

    def _check_views(self, results: list[WrapperValue], inputs: list[Value]) -> None:
        """Autograd takes what is written to a view for written to its base: no two of these may outlive the graph."""
        known = {id(self._apart.stand_in(value)) for value in inputs if isinstance(value, TensorValue)}
        for value in results:
            fake = self._apart.stand_in(value)
            base = fake._base if fake._is_view() else fake
            if id(base) in known:
                raise GraphBreak(
                    DISPATCH_IN_PYTHON,
                    f"{value.describe()}, a view of another tensor, outlives the graph with it",
                )
            known.add(id(base))

    def _known_histories(self, results: list[WrapperValue]) -> Histories:
        ends = [self._apart.stand_in(value) for value in self._trained.values()]
        found = [self._apart.stand_in(value) for value in results]
        made: Histories = self._tx.inference.run(Histories, [found, ends], {})
        return made


def _is_new(value: TensorValue, serial: int, last: Any, shares: bool) -> bool:
    """Whether a result was made by the operation itself: after so many wrappers, or behind a node. ``shares``: it may
    show memory that was there."""
    if isinstance(value, WrapperValue):
        return value.serial >= serial and value.source is None
    memory = value.node if shares else value.memory.node
    return memory.op != "placeholder" and (last is None or last < memory)


def _without_history(value: WrapperValue) -> WrapperValue:
    """The wrapper as its class made it."""
    meta = value.meta
    made = WrapperValue(TensorMeta.of(meta.spec, False, True, meta.cls), given=value.given, names=value.names)
    made.attrs = value.attrs
    return made


def _memory(value: Value) -> list[TensorValue]:
    """The tensors whose memory a tensor shows."""
    if not isinstance(value, TensorValue):
        return []
    if not isinstance(value, WrapperValue):
        return [value.memory]
    if value.plain is not None:
        return [value.plain.memory]
    return [part for inner in (value.attrs or {}).values() for part in _memory(inner)]


def _tensors(tx: Context, value: Value) -> list[TensorValue]:
    """The tensors that an operation gives, in order."""
    return tensors_of(sequence_leaves(tx, [value]))


def _ends(tx: Context, values: Sequence[Value]) -> list[Value]:
    """What is in the arguments of an operation, but for containers and constants."""
    found: list[Value] = []
    for value in map(tx.force, values):
        match value:
            case TupleValue() | ListValue():
                found += _ends(tx, value.items)
            case DictValue():
                found += _ends(tx, [item for _, item in value.all_entries(tx).values()])
            case SliceValue():
                found += _ends(tx, value.bounds)
            case Const():
                pass
            case _:
                found.append(value)
    return found


def _template(tx: Context, value: Value, places: dict[int, int]) -> Any:
    """An argument, with places for what is known only when the operation runs."""
    value = tx.force(value)
    if isinstance(value, Const):
        return value.value
    if id(value) in places:
        return Operand(places[id(value)])
    return value.rebuilt(tx, lambda part: _template(tx, part, places))


def _replaced(tx: Context, value: Value, made: dict[int, Any]) -> Value:
    """A result with some of its tensors replaced."""
    value = tx.force(value)
    found: Value | None = made.get(id(value))
    return value.mapped(tx, lambda part: _replaced(tx, part, made)) if found is None else found
