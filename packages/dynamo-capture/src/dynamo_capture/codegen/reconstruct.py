"""Instructions that put a value on the real stack."""

from __future__ import annotations

import collections
import functools
import types
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.fx import Node

from dynamo_capture import runtime
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.calls.contexts import ContextFunction, NullContext
from dynamo_capture.calls.modes import Autocast, DeviceBlock, GradMode, InferenceMode
from dynamo_capture.codegen.collect import Collector, is_existing, kept_attributes
from dynamo_capture.codegen.generators import remade
from dynamo_capture.errors import GraphBreak
from dynamo_capture.frame import GeneratorValue
from dynamo_capture.tensors.overrides import overrides
from dynamo_capture.values import (
    BuiltinMethod,
    CallIterator,
    CellValue,
    Const,
    DictIterator,
    DictValue,
    DictView,
    EnumerateIterator,
    FunctionValue,
    ListIterator,
    ListValue,
    MapIterator,
    MethodValue,
    NullValue,
    ObjectIterator,
    ObjectValue,
    PartialValue,
    RangeIterator,
    SequenceIterator,
    SetValue,
    SliceValue,
    SourcedConst,
    SuperValue,
    SymRange,
    SymRangeIterator,
    SymValue,
    TensorMeta,
    TensorValue,
    TextValue,
    TupleValue,
    Value,
    ZipIterator,
)
from dynamo_capture.values.array import ArrayValue
from dynamo_capture.values.condition import DataCondition
from dynamo_capture.values.floating import RuntimeFloat
from dynamo_capture.values.instance_dict import InstanceDictValue
from dynamo_capture.values.opaque import NewReference
from fx_interface.source import LocalSource, Source
from fx_interface.symbols import Apply, Expr, IntLike, Symbol

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

GRAPH = ".graph_results"
EXISTING = ".existing"


class Reconstruction:
    """Pushes values. Existing objects come from the tuple ``EXISTING``, results of the graph from ``GRAPH``."""

    def __init__(
        self,
        tx: Trace,
        emitter: Emitter,
        collector: Collector,
        argument_locals: set[str],
        cell_names: dict[int, str],
    ) -> None:
        self._tx = tx
        self.emitter = emitter
        self._collector = collector
        self._locals = argument_locals
        self._cells = cell_names
        self._nodes: dict[Node, int] = {node: i for i, node in enumerate(collector.nodes)}
        indirect = [s for s in collector.sources if not self._is_plain_local(s)]
        self.indirect: dict[Source, int] = {source: i for i, source in enumerate(indirect)}
        self._temps: dict[int, str] = {}
        self._stored: dict[str, None] = {}
        self._building: set[int] = set()

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

    def push(self, value: Value) -> None:
        """Any value; one that occurs more than once is made once."""
        emitter = self.emitter
        temp = self._temps.get(id(value))
        if temp is not None:
            emitter.load_fast(temp)
            return
        if isinstance(value, (SourcedConst, RuntimeFloat)) and value.is_unread:
            self._push_unread(value)
            return
        if isinstance(value, Const):
            emitter.load_const(value.value)
            return
        if type(value) is NullValue:
            emitter.push_null()
            return
        if isinstance(value, CellValue) and id(value) in self._cells:
            emitter.load_closure(self._cells[id(value)])
            return
        if isinstance(value, TensorValue):
            self._push_tensor(value)
            return
        if is_existing(value):
            assert value.source is not None
            self.push_source(value.source)
            return
        if isinstance(value, ObjectValue):
            self._push_object(value)
            return
        if id(value) in self._building:
            raise GraphBreak("CAP240", f"{value.describe()} contains itself")
        self._building.add(id(value))
        self._make(value)
        self._building.discard(id(value))
        if id(value) in self._collector.shared:
            self._remember(value)

    def _push_unread(self, value: SourcedConst | RuntimeFloat) -> None:
        if value.source is not None:
            self.push_source(value.source)
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
        name = self._temps[id(value)] = f".made{len(self._temps)}"
        self.emitter.copy()
        self.emitter.store_fast(name)

    def _push_tensor(self, value: TensorValue) -> None:
        if value.source is not None:
            self.push_source(value.source)
            return
        if overrides(value.meta.cls):
            plain = TensorValue(value.node, TensorMeta.of(value.meta.spec, False, True))
            self.call(runtime.as_class, lambda: self.push_all([plain, Const(value.meta.cls)]), 2)
            self._remember(value)
            return
        self.emitter.load_fast(GRAPH)
        self.emitter.load_const(self._nodes[self._tx.output.use(value.node)])
        self.emitter.binary_subscr()

    def _push_object(self, value: ObjectValue) -> None:
        """Made empty first and filled then, so that objects may refer to each other in circles."""
        content = value.base if isinstance(value.base, TupleValue) else None
        if content is None:
            self.call(runtime.new_object, lambda: self.emitter.load_const(value.cls))
        else:
            self.call(runtime.new_tuple, lambda: self.push_all([Const(value.cls), content]), 2)
        self._remember(value)
        made = self._temps[id(value)]

        def arguments() -> None:
            self.emitter.load_fast(made)
            if value.base is None or content is not None:
                self.emitter.load_const(None)
            else:
                self.push(value.base)
            self._push_dict([(Const(name), part) for name, part in kept_attributes(value)])

        if value.attrs or (value.base is not None and content is None):
            self.call(runtime.fill_object, arguments, 3)
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

    def _push_dict(self, pairs: list[tuple[Value, Value]]) -> None:
        for key, value in pairs:
            self.push(key)
            self.push(value)
        self.emitter.build_map(len(pairs))

    def _push_tuple(self, values: list[Value]) -> None:
        self.push_all(values)
        self.emitter.build_tuple(len(values))

    def _push_list(self, values: list[Value]) -> None:
        self.push_all(values)
        self.emitter.build_list(len(values))

    def _make(self, value: Value) -> None:
        maker = _MAKERS.get(type(value))
        if maker is None:
            raise GraphBreak("CAP240", f"{value.describe()} outlives the captured code")
        maker(self, value)

    # One function for each kind of value that is made.

    def make_tuple(self, value: TupleValue) -> None:
        """Tuples, named tuples, ``torch.Size`` and torch's result tuples."""
        if value.cls is tuple:
            self._push_tuple(value.items)
        elif hasattr(value.cls, "_fields"):
            self.call(value.cls._make, lambda: self._push_tuple(value.items))  # type: ignore[attr-defined]
        else:
            self.call(value.cls, lambda: self._push_tuple(value.items))

    def make_list(self, value: ListValue) -> None:
        """Lists and deques."""
        if value.cls is list:
            self._push_list(value.items)
        else:
            limit = value.maxlen
            self.call(lambda items: collections.deque(items, limit), lambda: self._push_list(value.items))

    def make_dict(self, value: DictValue) -> None:
        """Dictionaries of the standard library's classes."""
        pairs = [(entry[0], entry[1]) for entry in value.all_entries(self._tx).values()]
        if value.cls is dict:
            self._push_dict(pairs)
        elif value.cls is collections.defaultdict:
            self.emitter.begin_call()
            self.emitter.load_const(collections.defaultdict)
            self.emitter.end_callable()
            self.push(value.factory or Const(None))
            self._push_dict(pairs)
            self.emitter.call(2)
        else:
            self.call(value.cls, lambda: self._push_dict(pairs))

    def make_set(self, value: SetValue) -> None:
        """Sets and frozensets."""
        if value.all_constant:
            members = frozenset if value.cls is frozenset else set
            self.call(members, lambda: self.emitter.load_const(value.order))
            return
        self.push_all(list(value.items.values()))
        self.emitter.build_set(len(value.items))
        if value.cls is not set:
            self.store(".set")
            self.call(value.cls, lambda: self.emitter.load_fast(".set"))

    def make_method(self, value: MethodValue) -> None:
        """Bound methods."""
        self.call(types.MethodType, lambda: self.push_all([value.function, value.receiver]), 2)

    def make_builtin_method(self, value: BuiltinMethod) -> None:
        """Bound methods of builtin objects."""
        self.push(value.receiver)
        self.emitter.load_attr(value.name)

    def make_super(self, value: SuperValue) -> None:
        """``super`` objects."""
        self.call(super, lambda: self.push_all([Const(value.cls), value.receiver]), 2)

    def make_partial(self, value: PartialValue) -> None:
        """``functools.partial``."""

        def arguments() -> None:
            self.push_all([value.function, *value.args, *value.kwargs.values()])

        self.emitter.begin_call()
        self.emitter.load_const(functools.partial)
        self.emitter.end_callable()
        arguments()
        self.emitter.call(1 + len(value.args) + len(value.kwargs), tuple(value.kwargs))

    def make_function(self, value: FunctionValue) -> None:
        """Functions that the trace defined."""

        def arguments() -> None:
            self.emitter.load_const(value.code)
            self.emitter.load_const(value.globals.real)
            self._push_tuple(value.defaults)
            self._push_dict([(Const(name), part) for name, part in value.kwdefaults.items()])
            self._push_tuple(list(value.closure))
            self._push_dict([(Const(name), part) for name, part in value.attrs.items()])

        self.call(runtime.make_function, arguments, 6)

    def make_cell(self, value: CellValue) -> None:
        """New cells."""
        if value.content is None:
            self.call(runtime.make_cell, lambda: None, 0)
        else:
            content = value.content
            self.call(runtime.make_cell, lambda: self.push(content))

    def make_text(self, value: TextValue) -> None:
        """Strings that tensors are part of."""
        parts = [part for piece, conversion in value.pieces for part in (piece, Const(conversion))]
        self.call(runtime.joined, lambda: self.push_all(parts), len(parts))

    def make_slice(self, value: SliceValue) -> None:
        """Slices."""
        self.push_all(list(value.bounds))
        self.emitter.build_slice(3)

    def make_range(self, value: SymRange) -> None:
        """Ranges."""
        self.call(range, lambda: self.push_all(list(value.bounds)), 3)

    def make_view(self, value: DictView) -> None:
        """Views of dictionaries."""
        self.push(value.owner)
        self.emitter.load_method(value.kind)
        self.emitter.call(0)

    def make_dict_iterator(self, value: DictIterator) -> None:
        """An iterator over a dictionary, at its place."""
        view = DictView(value.owner, value.kind)
        self.call(runtime.dict_iterator, lambda: self.push_all([view, Const(value.position)]), 2)

    def make_instance_dict(self, value: InstanceDictValue) -> None:
        """An object's own ``__dict__``."""
        self.call(runtime.instance_dict, lambda: self.push(value.owner))

    def make_grad_mode(self, value: GradMode) -> None:
        """Gradient-mode managers, entered or not."""
        if not value.previous:
            made = value.cls
            self.call(made, lambda: None, 0)
            return
        constants = (value.cls, value.enabled, value.previous[-1])
        self.call(runtime.entered_grad_mode, lambda: self.push_all([Const(c) for c in constants]), 3)

    def make_autocast(self, value: Autocast) -> None:
        """``torch.autocast``, not entered."""
        settings = value.settings()
        self.call(torch.autocast, lambda: self.push_all([Const(c) for c in settings]), len(settings))

    def make_inference_mode(self, value: InferenceMode) -> None:
        """``torch.inference_mode``, not entered."""
        self.call(torch.inference_mode, lambda: self.push(Const(value.mode)))

    def make_device(self, value: DeviceBlock) -> None:
        """``torch.device``."""
        self.push(Const(value.device))

    def make_sequence_iterator(self, value: SequenceIterator) -> None:
        """An iterator over what is left of some items."""
        self._push_list(value.items[value.position :])
        self.emitter.get_iter()

    def make_list_iterator(self, value: ListIterator) -> None:
        """An iterator over a list, at its place."""
        if value.has_ended:
            self.emitter.load_const(())
            self.emitter.get_iter()
            return
        self.call(runtime.list_iterator, lambda: self.push_all([value.owner, Const(value.position)]), 2)

    def make_open_range_iterator(self, value: SymRangeIterator) -> None:
        """An iterator over what is left of a range with symbolic bounds."""
        self.call(range, lambda: self.push_all(value.rest(self._tx)), 3)
        self.emitter.get_iter()

    def make_range_iterator(self, value: RangeIterator) -> None:
        """An iterator over what is left of a range."""
        self.emitter.load_const(value.rest)
        self.emitter.get_iter()

    def make_enumerate(self, value: EnumerateIterator) -> None:
        """``enumerate``."""
        self.call(enumerate, lambda: self.push_all([value.inner, Const(value.position)]), 2)

    def make_zip(self, value: ZipIterator) -> None:
        """``zip``."""
        made = functools.partial(zip, strict=True) if value.strict else zip
        self.call(made, lambda: self.push_all(list(value.inners)), len(value.inners))

    def make_map(self, value: MapIterator) -> None:
        """``map`` and ``filter``."""
        made = filter if value.keeps else map
        self.call(made, lambda: self.push_all([value.function, *value.inners]), 1 + len(value.inners))

    def make_generator(self, value: GeneratorValue) -> None:
        """Generators, suspended where they were."""
        parts = remade(value, self._tx.resumes)
        if value.finished:
            made: Callable[..., Any] = runtime.finished_generator
        else:
            made = runtime.suspended_generator if value.started else runtime.new_generator
        self.call(made, lambda: self.push_all(parts), len(parts))

    def make_object_iterator(self, value: ObjectIterator) -> None:
        """An object with ``__next__``."""
        self.push(value.value)

    def make_call_iterator(self, value: CallIterator) -> None:
        """``iter(function, sentinel)``."""
        self.call(iter, lambda: self.push_all([value.function, value.sentinel]), 2)

    def make_context_function(self, value: ContextFunction) -> None:
        """A function decorated by a context manager."""
        self.emitter.begin_call()
        self.push(value.manager)
        self.emitter.end_callable()
        self.push(value.function)
        self.emitter.call(1)

    def make_null_context(self, value: NullContext) -> None:
        """``contextlib.nullcontext``."""
        self.call(value.python_type(), lambda: self.push(value.result))

    def make_reference(self, value: NewReference) -> None:
        """Weak references."""
        self.call(weakref.ref, lambda: self.push(value.target))

    def make_array(self, value: ArrayValue) -> None:
        """Arrays of numpy: over a tensor's memory, or with the numbers that the trace knows."""
        if value.tensor is None:
            content = value.content
            self.call(content.copy, lambda: None, 0)
            return
        self.push(value.tensor)
        self.emitter.load_method("numpy")
        self.emitter.call(0)

    def make_number(self, value: SymValue) -> None:
        """An integer computed from sizes."""
        self._push_expr(self._tx.env.simplify(value.expr))

    def make_condition(self, value: DataCondition) -> None:
        """A comparison of such integers."""
        self._push_expr(self._tx.env.simplify(value.relation.lhs))
        self._push_expr(self._tx.env.simplify(value.relation.rhs))
        self.emitter.compare_op(value.relation.op)

    def _push_expr(self, expr: IntLike) -> None:
        emitter = self.emitter
        if not isinstance(expr, Expr):
            emitter.load_const(int(expr))
            return
        for position, (monomial, coefficient) in enumerate(expr.terms):
            emitter.load_const(coefficient)
            for atom in monomial:
                self._push_atom(atom)
                emitter.binary_op("*")
            if position:
                emitter.binary_op("+")

    def _push_atom(self, atom: Symbol | Apply) -> None:
        if isinstance(atom, Symbol) and atom in self._collector.numbers:
            self.emitter.load_fast(GRAPH)
            self.emitter.load_const(self._nodes[self._collector.numbers[atom]])
            self.emitter.binary_subscr()
            return
        if isinstance(atom, Symbol):
            self.push_source(self._collector.symbol_source(atom))
            return
        lhs, rhs = atom.args
        if atom.function in ("min", "max"):
            function = min if atom.function == "min" else max

            def arguments() -> None:
                self._push_expr(lhs)
                self._push_expr(rhs)

            self.call(function, arguments, 2)
            return
        self._push_expr(lhs)
        self._push_expr(rhs)
        self.emitter.binary_op("//" if atom.function == "floordiv" else "%")


_MAKERS: dict[type, Callable[[Reconstruction, Any], None]] = {
    TupleValue: Reconstruction.make_tuple, ListValue: Reconstruction.make_list, DictValue: Reconstruction.make_dict,
    SetValue: Reconstruction.make_set, MethodValue: Reconstruction.make_method,
    BuiltinMethod: Reconstruction.make_builtin_method, SuperValue: Reconstruction.make_super,
    PartialValue: Reconstruction.make_partial, FunctionValue: Reconstruction.make_function,
    TextValue: Reconstruction.make_text,
    CellValue: Reconstruction.make_cell, SliceValue: Reconstruction.make_slice, SymRange: Reconstruction.make_range,
    DictView: Reconstruction.make_view, DictIterator: Reconstruction.make_dict_iterator,
    GradMode: Reconstruction.make_grad_mode,
    SequenceIterator: Reconstruction.make_sequence_iterator, ListIterator: Reconstruction.make_list_iterator,
    SymRangeIterator: Reconstruction.make_open_range_iterator, RangeIterator: Reconstruction.make_range_iterator,
    EnumerateIterator: Reconstruction.make_enumerate,
    ZipIterator: Reconstruction.make_zip, MapIterator: Reconstruction.make_map,
    GeneratorValue: Reconstruction.make_generator,
    ObjectIterator: Reconstruction.make_object_iterator, CallIterator: Reconstruction.make_call_iterator,
    ContextFunction: Reconstruction.make_context_function, NullContext: Reconstruction.make_null_context,
    Autocast: Reconstruction.make_autocast, InferenceMode: Reconstruction.make_inference_mode,
    DeviceBlock: Reconstruction.make_device, ArrayValue: Reconstruction.make_array,
    NewReference: Reconstruction.make_reference,
    SymValue: Reconstruction.make_number, DataCondition: Reconstruction.make_condition,
    InstanceDictValue: Reconstruction.make_instance_dict,
}  # fmt: skip
