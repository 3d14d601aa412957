"""Which values a result reaches: what must be read, what the graph must return, what occurs more than once."""

from __future__ import annotations

from typing import Any

from torch.fx import Node

from dynamo_capture.codegen.generators import remade
from dynamo_capture.foundation.break_kinds import NOT_RECONSTRUCTIBLE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.known_objects import is_plain_key
from dynamo_capture.frames.generator_values import GeneratorValue
from dynamo_capture.semantics.tensors.replaced_data import check_handed_out
from dynamo_capture.semantics.tensors.results.hooked_copies import check_handed_out_once
from dynamo_capture.sources.sources import ContentSource
from dynamo_capture.trace import Trace
from dynamo_capture.values import (
    CellValue,
    Const,
    Lazy,
    NullValue,
    ObjectValue,
    OpenText,
    SourcedConst,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.new_class import check_constant
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.floating import LateFloat, RuntimeFloat
from dynamo_capture.values.tensors.wrapper import WrapperValue
from fx_interface.source import ItemSource, Source
from fx_interface.symbols import Expr, IntLike, Symbol, symbol


class Collector:
    """Walks values. ``sources``: existing objects to read; ``nodes``: results of the graph; ``shared``: seen twice;
    ``followed``: results of operations that dispatch in Python which require grad."""

    def __init__(self, tx: Trace, known_cells: dict[int, str]) -> None:
        self._tx = tx
        self._known_cells = known_cells
        self._seen: set[int] = set()
        self._shown: dict[int, TensorValue] = {}
        self._kept: list[Value] = []
        self.shared: set[int] = set()
        self.sources: dict[Source, None] = {}
        self.nodes: dict[Node, None] = {}
        self.numbers: dict[Symbol, Node] = {}
        self.written: dict[Expr, IntLike] = {}
        """Expressions as they were simplified when their symbols were listed: more may become known afterwards."""
        self.followed: list[WrapperValue] = []

    def has_seen(self, value: Value) -> bool:
        """Whether a result reaches the value."""
        return id(value) in self._seen

    def check_generators(self) -> None:
        """A graph break for a generator that nothing refers to any more: Python closes it, at a moment that the trace
        does not know."""
        for generator in self._tx.generators:
            if not generator.ends_by_itself and not self.has_seen(generator):
                name = generator.frame.code.co_qualname
                raise GraphBreak(
                    NOT_RECONSTRUCTIBLE, f"the generator {name} is dropped inside a try or with block"
                )

    def visit(self, value: Any) -> None:
        """Take in a value and all that it consists of."""
        kind = type(value)
        if isinstance(value, (SourcedConst, RuntimeFloat)) and value.is_handed_on:
            if value.source is not None:
                self.sources[value.source] = None
            elif isinstance(value, LateFloat):
                for operand in value.operands:
                    self.visit(operand)
            elif isinstance(value, RuntimeFloat):
                self.nodes[self._tx.output.use(value.tensor().node)] = None
            return
        is_open = isinstance(value, OpenText) and value.is_unread
        if (isinstance(value, Const) and not is_open) or kind is NullValue:
            new = self._tx.new_class(value.value) if isinstance(value, Const) else None
            if new is not None:
                self.visit(new)
            elif self._tx.new_classes and isinstance(value, Const):
                check_constant(value.value, self._tx.new_classes)
            return
        if id(value) in self._seen:
            self.shared.add(id(value))
            return
        self._seen.add(id(value))
        self._kept.append(value)
        if isinstance(value, (TupleValue, ObjectValue)) and value.cls in self._tx.new_classes:
            self.visit(self._tx.new_classes[value.cls])
        if kind is WrapperValue and value.meta.requires_grad and value.source is None:
            self.followed.append(value)
        if kind is TensorValue:
            self._tensor(value)
        elif kind is SymValue:
            self._symbols(value.expr)
        elif isinstance(value, DataCondition) and value.is_number:
            for side in (side for one in value.relations for side in (one.lhs, one.rhs)):
                if isinstance(side, Expr):
                    self._symbols(side)
        elif value.is_existing:
            self._existing(value)
        elif kind is CellValue and id(value) in self._known_cells:
            pass
        elif id(value) in self._tx.effects.of_caches:
            self.visit(self._tx.effects.of_caches[id(value)][1])
        else:
            generator = remade(value, self._tx.resumes) if isinstance(value, GeneratorValue) else None
            for part in value.children(self._tx) if generator is None else generator:
                self.visit(part)

    def _existing(self, value: Value) -> None:
        """Of keys that are objects the guards on a dict's keys tell of what kind they are: what is read under one of
        them is guarded itself, though nobody has looked at it."""
        source = value.source
        assert source is not None
        key = source.key if isinstance(source, (ItemSource, ContentSource)) else None
        if type(value) is Lazy and not is_plain_key(key):
            self._tx.guards.type_is(source, value.python_type())
        self.sources[source] = None

    def _tensor(self, value: TensorValue) -> None:
        if value.source is not None:
            self.sources[value.source] = None
        else:
            check_handed_out(self._tx, value)
            check_handed_out_once(self._tx, value, self._shown)
            self.nodes[self._tx.output.handed_out(value.node)] = None

    def _symbols(self, expr: Expr) -> None:
        simplified = self.written[expr] = self._tx.env.simplify(expr)
        if isinstance(simplified, Expr):
            for atom in simplified.symbols:
                if self._tx.env.symbols[atom].hint is None:
                    node = self._tx.output.size(symbol(atom.name))
                    assert isinstance(node, Node)
                    self.numbers[atom] = node
                    self.nodes[node] = None
                else:
                    self.sources[self.symbol_source(atom)] = None

    def as_written(self, expr: IntLike) -> IntLike:
        """The form of an expression in which it is computed again."""
        found = self.written.get(expr) if isinstance(expr, Expr) else None
        return self._tx.env.simplify(expr) if found is None else found

    def symbol_source(self, atom: Symbol) -> Source:
        """Where a symbol's value is read."""
        source = self._tx.env.symbols[atom].source
        if source is None:
            raise GraphBreak(NOT_RECONSTRUCTIBLE, f"the size {atom} has no source")
        return source
