"""Instructions that put a value on the real stack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch.fx import Node
from torch.nn import Parameter

from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.codegen.collect import Collector
from dynamo_capture.foundation.break_kinds import NOT_RECONSTRUCTIBLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime import made_tensors, replacement_calls
from dynamo_capture.tables import declaring
from dynamo_capture.trace import Trace
from dynamo_capture.values import (
    CellValue,
    Const,
    NullValue,
    ObjectValue,
    OpenText,
    PartialValue,
    SourcedConst,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.tensors.floating import LateFloat, RuntimeFloat
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.source import LocalSource, Source

F = TypeVar("F", bound=Callable[..., None])
GRAPH = ".graph_results"
EXISTING = ".existing"

MAKERS: dict[type[Value], Callable[[Reconstruction, Any], None]] = {}
"""What emits the instructions that push a value of exactly this class; ``makers.py`` loads all of them."""


def makes(*kinds: type[Value]) -> Callable[[F], F]:
    """Declare what makes values of these classes; declaring one twice is an error."""
    return declaring(MAKERS, *kinds)


class Reconstruction:
    """Pushes values. Existing objects come from the tuple ``EXISTING``, results of the graph from ``GRAPH``."""

    def __init__(
        self,
        tx: Trace,
        emitter: Emitter,
        collector: Collector,
        argument_locals: set[str],
        cell_names: dict[int, str],
        replay_content: Callable[[Value, Reconstruction], None],
    ) -> None:
        self._replay_content = replay_content
        self.tx = tx
        self.emitter = emitter
        self.collector = collector
        self._locals = argument_locals
        self._cells = cell_names
        self._nodes: dict[Node, int] = {node: i for i, node in enumerate(collector.nodes)}
        indirect = [s for s in collector.sources if not self._is_plain_local(s)]
        self.indirect: dict[Source, int] = {source: i for i, source in enumerate(indirect)}
        self._temps: dict[int, str] = {}
        self._stored: dict[str, None] = {}
        self._building: set[int] = set()
        self._settled: set[int] = set()
        self._waiting: dict[int, list[CellValue]] = {}

    def _is_plain_local(self, source: Source) -> bool:
        return isinstance(source, LocalSource) and source.name in self._locals

    def push_source(self, source: Source) -> None:
        """An existing object."""
        if isinstance(source, LocalSource) and source.name in self._locals:
            self.emitter.load_fast(source.name)
            return
        self.emitter.load_fast(EXISTING)
        self.emitter.load_const(self.indirect[source])
        self.emitter.binary_subscr()

    def push_result(self, node: Node) -> None:
        """A result of the graph."""
        self.emitter.load_fast(GRAPH)
        self.emitter.load_const(self._nodes[node])
        self.emitter.binary_subscr()

    def is_made(self, value: Value) -> bool:
        """Whether the value, which occurs more than once, has been made."""
        return id(value) in self._temps

    def push(self, value: Value) -> None:
        """Any value; one that occurs more than once is made once."""
        emitter = self.emitter
        temp = self._temps.get(id(value))
        if temp is not None:
            emitter.load_fast(temp)
            return
        if isinstance(value, (SourcedConst, RuntimeFloat)) and value.is_handed_on:
            self._push_unread(value)
            return
        if isinstance(value, Const) and not (isinstance(value, OpenText) and value.is_unread):
            new = self.tx.new_class(value.value)
            if new is not None:
                self.push(new)
            else:
                emitter.load_const(value.value)
            return
        if type(value) is NullValue:
            emitter.push_null()
            return
        if isinstance(value, CellValue) and id(value) in self._cells:
            emitter.load_closure(self._cells[id(value)])
            return
        if type(value) is TensorValue:
            self._push_tensor(value)
            return
        if value.is_existing:
            assert value.source is not None
            self.push_source(value.source)
            return
        if isinstance(value, ObjectValue):
            self._push_object(value)
            return
        if id(value) in self.tx.effects.of_caches:
            self._make(self.tx.effects.of_caches[id(value)][1])
            self._remember(value)
            return
        if id(value) in self._building:
            raise GraphBreak(NOT_RECONSTRUCTIBLE, f"{value.describe()} contains itself")
        self._building.add(id(value))
        self._make(value)
        self._building.discard(id(value))
        waiting = self._waiting.pop(id(value), None)
        if waiting is not None or id(value) in self.collector.shared:
            self._remember(value)
        for cell in waiting or ():
            self.emitter.load_fast(self._temps[id(value)])
            self.emitter.load_fast(self._temps[id(cell)])
            self.emitter.store_attr("cell_contents")

    def push_unfilled(self, cell: CellValue) -> bool:
        """Make a cell empty that is to hold what is just being made, as that of a function that calls itself; it is
        filled when that is there. False where nothing of the kind is being made."""
        if cell.content is None or id(cell.content) not in self._building:
            return False
        self.call(replacement_calls.make_cell, lambda: None, 0)
        self._remember(cell)
        self._waiting.setdefault(id(cell.content), []).append(cell)
        return True

    def settle(self, owner: Value) -> None:
        """Emit, once, the change of a container of before the trace. What is made out of its content, such as an
        iterator at a position, has to be made after that; what only refers to it need not."""
        if not self.tx.effects.has_changed(owner) or id(owner) in self._settled:
            return
        if id(owner) in self._building:
            raise GraphBreak(NOT_RECONSTRUCTIBLE, f"{owner.describe()} holds an iterator over itself")
        self._building.add(id(owner))
        self._replay_content(owner, self)
        self._building.discard(id(owner))
        self._settled.add(id(owner))

    def _push_unread(self, value: SourcedConst | RuntimeFloat) -> None:
        if value.source is not None:
            self.push_source(value.source)
            return
        self.tx.effects.by_data.append("a number that data tell")
        if isinstance(value, LateFloat):
            operands = list(value.operands)
            self.call(value.function, lambda: self.push_all(operands), len(operands))
            return
        assert isinstance(value, RuntimeFloat)
        self._push_tensor(value.tensor())
        self.emitter.load_method("item")
        self.emitter.call(0)

    def store(self, name: str) -> None:
        """Keep what is on the stack in a variable of its own."""
        self._stored[name] = None
        self.emitter.store_fast(name)

    def _remember(self, value: Value) -> None:
        if id(value) in self._temps:  # a cell that was made before its content
            return
        name = self._temps[id(value)] = f".made{len(self._temps)}"
        self.emitter.copy()
        self.emitter.store_fast(name)

    def _push_tensor(self, value: TensorValue) -> None:
        if value.source is not None:
            self.push_source(value.source)
            return
        node = self.tx.output.handed_out(value.node)
        if value.meta.cls not in PLAIN_CLASSES:
            cls = Const(value.meta.cls)
            if value.root is value:
                self.call(made_tensors.own_class, lambda: self._push_with(node, cls), 2)
            else:
                self.call(made_tensors.as_class, lambda: self._push_place_with(node, cls), 3)
            self._remember(value)
            return
        if value.meta.cls is Parameter:
            trained = Const(value.meta.requires_grad)
            self.call(made_tensors.new_parameter, lambda: self._push_with(node, trained), 2)
            self._remember(value)
            return
        self.push_result(node)

    def _push_place_with(self, node: Node, value: Value) -> None:
        self.emitter.load_fast(GRAPH)
        self.emitter.load_const(self._nodes[node])
        self.push(value)

    def _push_with(self, node: Node, value: Value) -> None:
        self.push_result(node)
        self.push(value)

    def _push_object(self, value: ObjectValue) -> None:
        """Made empty first and filled then, so that objects may refer to each other in circles."""
        content = value.base if isinstance(value.base, (TupleValue, PartialValue)) else None
        if content is None:
            self.call(replacement_calls.new_object, lambda: self.push(Const(value.cls)))
        else:
            is_tuple = isinstance(content, TupleValue)
            make = replacement_calls.new_tuple if is_tuple else replacement_calls.new_partial
            self.call(make, lambda: self.push_all([Const(value.cls), content]), 2)
        self._remember(value)
        made = self._temps[id(value)]

        def arguments() -> None:
            self.emitter.load_fast(made)
            if value.base is None or content is not None:
                self.emitter.load_const(None)
            else:
                self.push(value.base)
            self.push_dict([(Const(name), part) for name, part in value.kept_attributes()])

        if value.attrs or (value.base is not None and content is None):
            self.call(replacement_calls.fill_object, arguments, 3)
            self.emitter.pop_top()

    def forget(self) -> None:
        """Delete the variables of its own: where the user's code goes on, ``locals()`` must not show them."""
        for name in (*self._stored, *self._temps.values()):
            self.emitter.delete_fast(name)

    def call(self, function: Callable[..., Any], arguments: Callable[[], None], count: int = 1) -> None:
        """A call of a constant function."""
        self.emitter.begin_call()
        self.emitter.load_const(function)
        self.emitter.end_callable()
        arguments()
        self.emitter.call(count)

    def push_all(self, values: list[Value]) -> None:
        """Values one after the other."""
        for value in values:
            self.push(value)

    def push_dict(self, pairs: list[tuple[Value, Value]]) -> None:
        """A dict of these."""
        for key, value in pairs:
            self.push(key)
            self.push(value)
        self.emitter.build_map(len(pairs))

    def push_tuple(self, values: list[Value]) -> None:
        """A tuple of these."""
        self.push_all(values)
        self.emitter.build_tuple(len(values))

    def push_list(self, values: list[Value]) -> None:
        """A list of these."""
        self.push_all(values)
        self.emitter.build_list(len(values))

    def _make(self, value: Value) -> None:
        maker = MAKERS.get(type(value))
        if maker is None:
            raise GraphBreak(NOT_RECONSTRUCTIBLE, f"{value.describe()} outlives the captured code")
        maker(self, value)
