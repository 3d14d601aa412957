"""The state of one capture: graph, guards, the values of known objects, and the operations that opcodes ask for."""

from __future__ import annotations

import functools
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import guards
import torch
from fx_interface import InputDecl, InputKind, SymSpec, TensorSpec, UserLocation
from fx_interface.operators import OperatorLibrary
from fx_interface.source import AttrSource, ItemSource, SizeSource, Source, StrideSource, TypeSource
from fx_interface.symbols import Relation, ShapeEnv
from fx_interface.sym_nodes import from_torch
from fx_interface.tensor_spec import SPEC_KEY
from torch import nn
from torch.fx import Graph, Node

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.metadata import MetadataTrace, MetaTensor
from dynamo_capture.operators import compare, python_of
from dynamo_capture.polyfills.registry import substitute_for
from dynamo_capture.values.base import MISSING, Value, class_attribute
from dynamo_capture.values.constants import ConstantValue, is_literal
from dynamo_capture.values.containers import (
    DictValue,
    IteratorValue,
    SequenceValue,
    SetValue,
    SliceValue,
)
from dynamo_capture.values.functions import (
    BoundMethod,
    CellValue,
    ClosureValue,
    ContainerMethod,
    PartialValue,
    SuperValue,
    TensorMethod,
)
from dynamo_capture.values.objects import ExceptionValue, ModuleValue, NewObject, ObjectValue
from dynamo_capture.values.pinned import PinnedSource
from dynamo_capture.values.tensors import SymIntValue, TensorValue


IDENTIFIED = (
    type,
    types.FunctionType,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
    functools._lru_cache_wrapper,
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
)
"""Objects that are what they are: wherever one is read, a guard notes that it is this one."""


class Tracer:
    """Everything that one attempt to capture a frame owns."""

    def __init__(self, operators: OperatorLibrary, dynamic: Callable[[Source, int], bool]) -> None:
        self.graph = Graph()
        self.env = ShapeEnv()
        self.trace = MetadataTrace(operators, self.env)
        self.guards: dict[Any, None] = {}
        self.inputs: list[InputDecl] = []
        self.input_values: list[Any] = []
        self.real_of: dict[Node, torch.Tensor] = {}
        self.effects: list[Value] = []
        self.frames: list[Any] = []
        self.dynamic = dynamic
        self.tensor_sources: list[Source] = []
        self._known: dict[int, Value] = {}
        self._alive: list[Any] = []
        self._size_nodes: dict[Any, Node] = {}
        self._where: tuple[Any, UserLocation] | None = None
        self.grad_mode = self.entry_grad_mode = torch.is_grad_enabled()
        self._globals: dict[int, dict[str, Value]] = {}
        self._storages: dict[int, Value] = {}
        self._class_sources: dict[type, Source] = {}
        self.handled: Value | None = None
        self.advances = 0
        """How often a frame began or went on: what changes it ran code of the program."""

    # ---- where ----

    @property
    def where(self) -> UserLocation | None:
        """The user's line that is being traced: the innermost frame's."""
        return self.frames[-1].location() if self.frames else None

    # ---- values of Python objects ----

    def const(self, value: Any) -> Value:
        """A literal."""
        return ConstantValue(value)

    def of_python(self, value: Any) -> Value:
        """A value for an object that needs no source: a literal, or something immutable reached through one."""
        if is_literal(value):
            return ConstantValue(value)
        if isinstance(value, slice):
            return SliceValue([self.of_python(b) for b in (value.start, value.stop, value.step)])
        if type(value) in (tuple, list, torch.Size):
            return SequenceValue([self.of_python(item) for item in value], type(value))
        if type(value) is dict:
            return DictValue({key: self.of_python(item) for key, item in value.items()})
        if type(value) in (set, frozenset):
            return SetValue({item: self.of_python(item) for item in value}, type(value))
        if isinstance(value, (MetaTensor, torch.SymInt)):
            return self.of_metadata(value)
        return self.wrap(value, None)

    def of_metadata(self, value: Any) -> Value:
        """The answer to a question about a tensor without data."""
        if isinstance(value, torch.SymInt):
            return self.sym_int(from_torch(value))
        if isinstance(value, (tuple, list)):
            return SequenceValue([self.of_metadata(item) for item in value], type(value))
        return self.of_python(value)

    def sym_int(self, expr: Any) -> Value:
        """A value for an integer of our algebra."""
        if isinstance(expr, int):
            return ConstantValue(expr)
        from fx_interface.graph import materialize

        node = materialize(self.graph, expr, self._symbol_nodes())
        return SymIntValue(expr, node)

    def _symbol_nodes(self) -> Any:
        from fx_interface.graph import symbol_nodes

        return symbol_nodes(self.graph)

    def wrap(self, value: Any, source: Source | None) -> Value:
        """The value of an existing object read at ``source``; the same object gives the same value."""
        if is_literal(value):
            return self._wrap_literal(value, source)
        found = self._known.get(id(value))
        if found is not None:
            if source is not None and source != found.source:
                self._same_object(source, found.source, value)
            return found
        made = self._wrap_new(value, source)
        if source is None and type(value) in _MUTABLE:
            made.source = PinnedSource(value)
        self._known[id(value)] = made
        self._alive.append(value)
        return made

    def _same_object(self, source: Source, other: Source | None, value: Any) -> None:
        if other is None or isinstance(other, PinnedSource) or isinstance(value, IDENTIFIED):
            self.guard(guards.IsObject(source, value))
        else:
            self.guard(guards.SameObject(source, other))

    def rely_on_object(self, value: ObjectValue) -> Any:
        """The object itself, for what holds of this one only; a guard notes that it is this one."""
        if value.source is not None and not isinstance(value.obj, IDENTIFIED):
            self.guard(guards.IsObject(value.source, value.obj))
        return value.as_python()

    def rely_on_distinct(self, one: Value, two: Value) -> None:
        """Rely on two values being different objects."""
        for value in (one, two):
            if isinstance(value, ObjectValue):
                value.guard_type(self)
        if one.source is None or two.source is None or one.constant or two.constant:
            return
        if isinstance(one.source, PinnedSource) or isinstance(two.source, PinnedSource):
            return
        if one.python_type() is two.python_type() and not _identified(one) and not _identified(two):
            self.guard(guards.DistinctObjects(one.source, (two.source,)))

    def distinct_from_changed(self) -> Iterator[Any]:
        """Guards that nothing else that was read is one of the objects that are changed."""
        for changed in self.effects:
            if changed.source is None or isinstance(changed.source, PinnedSource) or not isinstance(changed, (SequenceValue, DictValue, SetValue, ObjectValue)):
                continue
            kind = changed.python_type()
            others = tuple(
                value.source
                for value in self._known.values()
                if value is not changed
                and value.source is not None
                and not isinstance(value.source, PinnedSource)
                and isinstance(value, type(changed))
                and value.python_type() is kind
            )
            for other in others:
                yield guards.DistinctObjects(changed.source, (other,))

    def _wrap_literal(self, value: Any, source: Source | None) -> Value:
        if source is not None:
            if type(value) is int and self.dynamic(source, value):
                return self._dynamic_int(value, source)
            self.guard(guards.EqualsConstant(source, value))
        return ConstantValue(value, source)

    def _dynamic_int(self, value: int, source: Source) -> Value:
        expr = self.env.create_symbol(value, source, low=2 if value >= 2 else None)
        return SymIntValue(expr, self._symbol_input(expr, source, value), source)

    def _wrap_new(self, value: Any, source: Source | None) -> Value:
        kind = type(value)
        if isinstance(value, torch.Tensor):
            return self._wrap_tensor(value, source)
        if isinstance(value, nn.Module):
            return ModuleValue(value, source)
        if kind in (list, tuple) or kind is torch.Size or (isinstance(value, tuple) and hasattr(kind, "_fields")):
            return self._wrap_sequence(value, source)
        if kind in (dict, OrderedDict) and not self._is_namespace(value):
            return self._wrap_dict(value, source)
        if kind in (set, frozenset):
            return self._wrap_set(value, source)
        if kind is functools.partial:
            return self._wrap_partial(value, source)
        if kind is types.MethodType:
            return self._wrap_method(value, source)
        if kind is types.CellType:
            return self._wrap_cell(value, source)
        if kind is slice:
            return SliceValue(
                [
                    self.wrap(getattr(value, name), None if source is None else AttrSource(source, name))
                    for name in ("start", "stop", "step")
                ]
            )
        if source is not None and _is_container_method(value):
            return self._wrap_container_method(value, source)
        if source is not None and isinstance(value, IDENTIFIED):
            self.guard(guards.IsObject(source, value))
            if isinstance(value, type):
                self._class_sources.setdefault(value, source)
        return ObjectValue(value, source)

    def _wrap_container_method(self, value: Any, source: Source) -> Value:
        """``items.append`` and the like, read somewhere: a new object each time, but of one container."""
        self.guard_type(source, type(value))
        self.guard(guards.EqualsConstant(AttrSource(source, "__name__"), value.__name__))
        container = self.wrap(value.__self__, AttrSource(source, "__self__"))
        made: Value
        if isinstance(container, TensorValue):
            made = TensorMethod(container, value.__name__)
        else:
            made = ContainerMethod(container, value.__name__)
        made.source = source
        return made

    def member_source(self, cls: type, name: str, receiver: Value | None = None) -> Source | None:
        """Where ``cls.name`` can be read, for what a class of the program holds; None if the class cannot be reached."""
        source = self._class_sources.get(cls)
        if source is None and isinstance(receiver, ObjectValue) and receiver.source is not None:
            source = self._class_sources[cls] = TypeSource(receiver.source)
        if source is None:
            return None
        owner = next((base for base in cls.__mro__ if name in base.__dict__), object)
        if owner is nn.Module or not owner.__flags__ & _HEAP_TYPE:
            return None
        return AttrSource(source, name)

    def call_property(self, found: property, receiver: Value, name: str) -> Value:
        """Read a property of ``receiver``'s class."""
        if found.fget is None:
            raise self.raise_type(AttributeError, f"property {name!r} of {receiver.python_type().__name__!r} object has no getter")
        source = self.member_source(receiver.python_type(), name, receiver)
        getter = self.wrap(found.fget, None if source is None else AttrSource(source, "fget"))
        return getter.call(self, [receiver], {})

    def _is_namespace(self, value: dict[Any, Any]) -> bool:
        return "__name__" in value and "__builtins__" in value

    def _wrap_sequence(self, value: Any, source: Source | None) -> Value:
        if source is not None:
            self.guard_type(source, type(value))
            self.guard(guards.Length(source, len(value)))
        return self._wrap_items(value, type(value), source)

    def _wrap_items(self, value: Any, kind: type, source: Source | None) -> Value:
        items = [
            self.wrap(item, None if source is None else ItemSource(source, position))
            for position, item in enumerate(value)
        ]
        return SequenceValue(items, kind, source)

    def _wrap_dict(self, value: dict[Any, Any], source: Source | None) -> Value:
        for key in value:
            if not is_literal(key) and not isinstance(key, (type, types.FunctionType, tuple)):
                return ObjectValue(value, source)
        if source is not None:
            self.guard_type(source, type(value))
            self.guard(guards.DictKeys(source, tuple(value)))
        return LazyDict(self, value, type(value), source)

    def _wrap_set(self, value: Any, source: Source | None) -> Value:
        if source is not None:
            self.guard_type(source, type(value))
            if all(is_literal(item) for item in value):
                self.guard(guards.EqualsConstant(source, value))
            else:
                return ObjectValue(value, source)
        return SetValue({item: self.of_python(item) for item in value}, type(value), source)

    def _wrap_partial(self, value: Any, source: Source | None) -> Value:
        if source is not None:
            self.guard_type(source, functools.partial)
        part = functools.partial(self._attribute, value, source)
        args, keywords = part("args"), part("keywords")
        made = PartialValue(part("func"), list(args.items), dict(keywords.items))
        made.source = source
        return made

    def _attribute(self, value: Any, source: Source | None, name: str) -> Any:
        return self.wrap(getattr(value, name), None if source is None else AttrSource(source, name))

    def _wrap_method(self, value: Any, source: Source | None) -> Value:
        if source is not None:
            self.guard_type(source, types.MethodType)
        function = self._attribute(value, source, "__func__")
        return BoundMethod(function, self._attribute(value, source, "__self__"), source)

    def _wrap_cell(self, value: Any, source: Source | None) -> Value:
        try:
            content = value.cell_contents
        except ValueError:
            return CellValue(None, source)
        return CellValue(self.wrap(content, None if source is None else AttrSource(source, "cell_contents")), source)

    # ---- tensors ----

    def _wrap_tensor(self, value: torch.Tensor, source: Source | None) -> Value:
        if type(value) not in (torch.Tensor, nn.Parameter, nn.Buffer) or value.layout is not torch.strided:
            raise GraphBreak("value", f"a {type(value).__name__} with layout {value.layout}")
        if source is None:
            raise GraphBreak("value", "a tensor that cannot be reached from the frame")
        sizes, dynamic = self._sizes(value, source)
        strides = self._strides(value, sizes, dynamic)
        symbolic = frozenset(dim for dim, stride in enumerate(strides) if not isinstance(stride, int))
        self.guard(
            guards.tensor_match(source, value, dynamic_sizes=frozenset(dynamic), dynamic_strides=symbolic)
        )
        for dim in symbolic:
            read = self.env.create_symbol(value.stride(dim), StrideSource(source, dim), low=None)
            self.env.require(Relation("==", read, strides[dim]))
        spec = TensorSpec(tuple(sizes), tuple(strides), value.dtype, value.device, value.requires_grad)
        node = self.graph.placeholder(f"input_{len(self.inputs)}")
        node.meta[SPEC_KEY] = spec
        kind = InputKind.PARAMETER if isinstance(value, nn.Parameter) else InputKind.USER
        self.inputs.append(InputDecl(node.name, kind, spec, source))
        self.input_values.append(value)
        self.real_of[node] = value
        self.tensor_sources.append(source)
        meta = MetaTensor.make(spec, self.trace, value.requires_grad)
        if value.requires_grad and not value.is_leaf:
            with torch.enable_grad():
                meta = torch.ops.aten.view_as.default(meta, meta)
        return TensorValue(node, meta, source, type(value))

    def _sizes(self, value: torch.Tensor, source: Source) -> tuple[list[Any], set[int]]:
        sizes: list[Any] = []
        dynamic: set[int] = set()
        for dim, size in enumerate(value.shape):
            read = SizeSource(source, dim)
            if size >= 2 and self.dynamic(read, size):
                expr = self.env.create_symbol(size, read)
                self._symbol_input(expr, read, size)
                sizes.append(expr)
                dynamic.add(dim)
            else:
                sizes.append(size)
        return sizes, dynamic

    def _strides(self, value: torch.Tensor, sizes: list[Any], dynamic: set[int]) -> list[Any]:
        """Strides over the symbolic sizes, for layouts that are a permutation of a contiguous one."""
        if not dynamic:
            return list(value.stride())
        strides: list[Any] = [0] * value.dim()
        expected: Any = 1
        hint = 1
        for dim in sorted(range(value.dim()), key=lambda d: (value.stride(d), -d)):
            if value.stride(dim) != hint and value.shape[dim] != 1:
                raise GraphBreak("value", "a tensor with symbolic sizes whose memory is not dense")
            strides[dim] = expected
            expected = expected * sizes[dim]
            hint *= value.shape[dim]
        return strides

    def _symbol_input(self, expr: Any, source: Source, hint: int) -> Node:
        node = self.graph.placeholder(f"size_{len(self.inputs)}")
        node.meta[SPEC_KEY] = SymSpec(expr)
        self.inputs.append(InputDecl(node.name, InputKind.SYMBOL, SymSpec(expr), source))
        self.input_values.append(hint)
        return node

    def tensor_call(self, target: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Run a torch function, tensor method (by name) or operator on metadata, and record it if it gives tensors."""
        metas = [self.to_meta(arg) for arg in args]
        named = {key: self.to_meta(arg) for key, arg in kwargs.items()}
        function = getattr(torch.Tensor, target) if isinstance(target, str) else target
        before = torch.is_grad_enabled()
        torch._C._set_grad_enabled(self.grad_mode)
        try:
            with self.trace:
                result = function(*metas, **named)
        except (GraphBreak, Raised):
            raise
        except (AttributeError, TypeError, ValueError, IndexError, RuntimeError, NotImplementedError) as error:
            raise GraphBreak("operator", f"{_target_name(target)}: {type(error).__name__}: {error}") from error
        finally:
            torch._C._set_grad_enabled(before)
        return self._record(target, args, kwargs, result)

    def _record(self, target: Any, args: list[Value], kwargs: dict[str, Value], result: Any) -> Value:
        if not _holds_tensor(result) and not _writes(target):
            return self.of_metadata(result)
        if isinstance(result, MetaTensor):
            for arg in args:
                if isinstance(arg, TensorValue) and arg.meta is result and not _writes(target):
                    return arg
        node_args = tuple(self.to_node(arg) for arg in args)
        node_kwargs = {key: self.to_node(arg) for key, arg in kwargs.items()}
        if isinstance(target, str):
            node = self.graph.call_method(target, node_args, node_kwargs)
        else:
            node = self.graph.call_function(target, node_args, node_kwargs)
        node.meta["where"] = self.where
        node.meta[SPEC_KEY] = self._spec_of(result)
        for arg in (*args, *kwargs.values()):
            if isinstance(arg, TensorValue) and arg.meta is result:
                return arg
        return self._of_result(node, result)

    def _spec_of(self, result: Any) -> Any:
        if isinstance(result, MetaTensor):
            spec = self.trace.spec(result)
            if result.requires_grad:
                return TensorSpec(spec.sizes, spec.strides, spec.dtype, spec.device, True)
            return spec
        if isinstance(result, (tuple, list)):
            return tuple(self._spec_of(item) for item in result)
        if isinstance(result, (int, torch.SymInt)) and not isinstance(result, bool):
            return SymSpec(from_torch(result))
        return None

    def _of_result(self, node: Node, result: Any) -> Value:
        if isinstance(result, MetaTensor):
            return TensorValue(node, result)
        if isinstance(result, (tuple, list)):
            items = []
            for position, item in enumerate(result):
                if isinstance(item, (MetaTensor, tuple, list)):
                    picked = self.graph.call_function(operator.getitem, (node, position))
                    picked.meta["where"] = self.where
                    picked.meta[SPEC_KEY] = self._spec_of(item)
                    items.append(self._of_result(picked, item))
                else:
                    items.append(self.of_metadata(item))
            return SequenceValue(items, type(result))
        return self.of_metadata(result)

    def to_meta(self, value: Value) -> Any:
        """The object to run torch functions on: tensors without data, sizes, constants."""
        match value:
            case ConstantValue():
                return value.value
            case TensorValue():
                return value.meta
            case SymIntValue():
                return self.trace.sizes.to_torch(value.expr)
            case SequenceValue():
                items = [self.to_meta(item) for item in value.items]
                if hasattr(value.kind, "_fields"):
                    return value.kind(*items)
                return value.kind(items) if value.kind is not torch.Size else tuple(items)
            case SliceValue():
                return slice(*(self.to_meta(bound) for bound in value.bounds))
            case DictValue():
                return {key: self.to_meta(item) for key, item in value.items.items()}
            case ObjectValue():
                return self.rely_on_object(value)
        raise GraphBreak("value", f"{value.describe()} as an operand of a tensor operation")

    def to_node(self, value: Value) -> Any:
        """The same as an argument of a graph node."""
        match value:
            case TensorValue() | SymIntValue():
                return value.node
            case SequenceValue():
                items = [self.to_node(item) for item in value.items]
                return items if value.kind is list else tuple(items)
            case SliceValue():
                return slice(*(self.to_node(bound) for bound in value.bounds))
            case DictValue():
                return {key: self.to_node(item) for key, item in value.items.items()}
        return self.to_meta(value)

    def decide(self, op: Any, lhs: Any, rhs: Any) -> bool:
        """A question about sizes."""
        self.env.location = self.where
        return self.env.decide(Relation(op, lhs, rhs))

    # ---- guards ----

    def guard(self, record: Any) -> None:
        """Rely on a fact."""
        self.guards[record] = None

    def guard_type(self, source: Source, cls: type) -> None:
        """Rely on a class."""
        self.guards[guards.TypeIs(source, cls)] = None

    def guard_absent(self, source: Source, key: str) -> None:
        """Rely on a dict having no such key."""
        self.guards[guards.KeyAbsent(source, key)] = None

    # ---- Python protocol ----

    def exception(self, error: BaseException) -> ExceptionValue:
        """A symbolic value for an exception that happened while tracing."""
        return ExceptionValue(type(error), [self.of_python(a) if is_literal(a) else ConstantValue(str(a)) for a in error.args])

    def raise_type(self, cls: type, message: str) -> Raised:
        """An exception of the traced program."""
        return Raised(ExceptionValue(cls, [ConstantValue(message)]))

    def fold(self, function: Callable[..., Any], args: list[Value]) -> Value:
        """Run a pure function on constants now; its exceptions are the program's."""
        for arg in args:
            if isinstance(arg, ObjectValue):
                self.rely_on_object(arg)
        try:
            return self.of_python(function(*[arg.as_python() for arg in args]))
        except (GraphBreak, Raised):
            raise
        except Exception as error:
            raise Raised(self.exception(error)) from None

    def call_python(self, function: Any, args: list[Value], kwargs: dict[str, Value] | None = None) -> Value:
        """Trace a call of an existing function."""
        return self.wrap(function, None).call(self, args, kwargs or {})

    def call_special(
        self, value: Value, name: str, args: list[Value], kwargs: dict[str, Value] | None = None
    ) -> Value:
        """Call a special method, looked up on the class."""
        cls = value.python_type()
        found = class_attribute(cls, name)
        if found is MISSING:
            raise self.raise_type(TypeError, f"{cls.__name__!r} object does not support {name}")
        if isinstance(value, NewObject) and value.storage is not None and not isinstance(found, types.FunctionType):
            return self.container_call(value.storage, name, args, kwargs or {})
        if isinstance(value, ObjectValue):
            value.guard_type(self)
        return self.bind(found, value, name).call(self, args, kwargs or {})

    def truth_by_protocol(self, value: Value) -> bool:
        """``bool(value)`` through ``__bool__`` or ``__len__``."""
        cls = value.python_type()
        for name in ("__bool__", "__len__"):
            if class_attribute(cls, name) is not MISSING:
                return self.call_special(value, name, []).truth(self)
        return True

    def iterate_by_protocol(self, value: Value) -> Iterator[Value]:
        """``iter(value)`` through ``__iter__`` or ``__getitem__``."""
        cls = value.python_type()
        if class_attribute(cls, "__iter__") is not MISSING:
            iterator = self.call_special(value, "__iter__", [])
            if isinstance(iterator, (IteratorValue, SequenceValue, DictValue)):
                return iterator.iterate(self)
            return self._iterate_by_next(iterator)
        if class_attribute(cls, "__getitem__") is not MISSING:
            return self._iterate_by_item(value)
        raise self.raise_type(TypeError, f"{cls.__name__!r} object is not iterable")

    def _iterate_by_next(self, iterator: Value) -> Iterator[Value]:
        while True:
            try:
                yield self.call_special(iterator, "__next__", [])
            except Raised as raised:
                if issubclass(raised.value.cls, StopIteration):
                    return
                raise

    def _iterate_by_item(self, value: Value) -> Iterator[Value]:
        position = 0
        while True:
            try:
                yield value.getitem(self, ConstantValue(position))
            except Raised as raised:
                if issubclass(raised.value.cls, IndexError):
                    return
                raise
            position += 1

    def bind(self, found: Any, receiver: Value, name: str) -> Value:
        """What reading a class attribute through an instance gives."""
        kind = type(found)
        if kind is types.FunctionType or kind is functools._lru_cache_wrapper:
            return BoundMethod(self.wrap(found, self.member_source(receiver.python_type(), name, receiver)), receiver)
        if kind is staticmethod:
            return self.wrap(found.__func__, self.member_source(receiver.python_type(), name, receiver))
        if kind is classmethod:
            source = self.member_source(receiver.python_type(), name, receiver)
            function = self.wrap(found.__func__, None if source is None else AttrSource(source, "__func__"))
            return BoundMethod(function, self.wrap(receiver.python_type(), None))
        if kind in (types.WrapperDescriptorType, types.MethodDescriptorType, types.BuiltinFunctionType):
            return BoundMethod(self.wrap(found, None), receiver)
        if kind is functools.cached_property:
            value = self.call_python(found.func, [receiver])
            receiver.store(self, name, value)  # type: ignore[attr-defined]
            return value
        if kind is functools.partialmethod:
            inner = PartialValue(
                self.wrap(found.func, None),
                [receiver, *(self.of_python(a) for a in found.args)],
                {k: self.of_python(v) for k, v in found.keywords.items()},
            )
            return inner
        getter = class_attribute(kind, "__get__")
        if isinstance(getter, types.FunctionType):
            return self.call_python(
                getter, [self.of_python(found), receiver, self.wrap(receiver.python_type(), None)]
            )
        if isinstance(receiver, ObjectValue) and receiver.source is not None:
            return self.wrap(found, AttrSource(receiver.source, name))
        return self.wrap(found, self.member_source(receiver.python_type(), name))

    def class_getattr(self, cls_value: ObjectValue, name: str) -> Value:
        """``getattr(cls, name)``."""
        cls = cls_value.obj
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantValue(getattr(cls, name))
        meta = class_attribute(type(cls), name)
        if type(meta) is property:
            return self.call_python(meta.fget, [cls_value])
        found = class_attribute(cls, name)
        if found is MISSING:
            if meta is not MISSING and isinstance(meta, types.FunctionType):
                return BoundMethod(self.wrap(meta, None), cls_value)
            try:
                value = getattr(cls, name)
            except AttributeError as error:
                raise Raised(self.exception(error)) from None
            return self.wrap(value, None if cls_value.source is None else AttrSource(cls_value.source, name))
        member = self.member_source(cls, name)
        if isinstance(found, staticmethod):
            return self.wrap(found.__func__, member)
        if isinstance(found, classmethod):
            return BoundMethod(self.wrap(found.__func__, None if member is None else AttrSource(member, "__func__")), cls_value)
        if isinstance(found, types.FunctionType):
            return self.wrap(found, member)
        value = getattr(cls, name)
        return self.wrap(value, None if cls_value.source is None else AttrSource(cls_value.source, name))

    def super_getattr(self, value: SuperValue, name: str) -> Value:
        """``getattr(super(cls, receiver), name)``."""
        receiver = value.receiver
        is_class = isinstance(receiver, ObjectValue) and isinstance(receiver.obj, type)
        cls = receiver.obj if is_class else receiver.python_type()  # type: ignore[attr-defined]
        mro = cls.__mro__
        for base in mro[mro.index(value.cls) + 1 :]:
            found = base.__dict__.get(name, MISSING)
            if found is not MISSING:
                source = self._source_in_base(cls, base, name, receiver)
                if isinstance(found, types.FunctionType) and not is_class:
                    return BoundMethod(self.wrap(found, source), receiver)
                if isinstance(found, classmethod):
                    function = self.wrap(found.__func__, None if source is None else AttrSource(source, "__func__"))
                    return BoundMethod(function, self.wrap(cls, None))
                if type(found) is property:
                    getter = self.wrap(found.fget, None if source is None else AttrSource(source, "fget"))
                    return getter.call(self, [receiver], {})
                if isinstance(found, (staticmethod, types.FunctionType)):
                    return self.wrap(getattr(found, "__func__", found), source)
                bound = BoundMethod(self.wrap(found, None), receiver)
                return bound
        raise self.raise_type(AttributeError, f"'super' object has no attribute '{name}'")

    def _source_in_base(self, cls: type, base: type, name: str, receiver: Value) -> Source | None:
        if base not in self._class_sources:
            self.member_source(cls, name, receiver)
            if cls in self._class_sources:
                mro = AttrSource(self._class_sources[cls], "__mro__")
                self._class_sources[base] = ItemSource(mro, cls.__mro__.index(base))
        return self.member_source(base, name)

    def index_of(self, key: Value) -> Any:
        """An index or slice of a list as Python has it."""
        if isinstance(key, SliceValue):
            return slice(*(None if b.constant and b.as_python() is None else self.int_of(b) for b in key.bounds))
        if isinstance(key, (ConstantValue, SymIntValue)):
            return self.int_of(key)
        raise self.raise_type(TypeError, f"list indices must be integers or slices, not {key.python_type().__name__}")

    def int_of(self, value: Value) -> Any:
        """A Python int; a symbolic size becomes its value, and is guarded."""
        if isinstance(value, SymIntValue):
            return self.env.specialize(value.expr)
        return value.as_python()

    def key_of(self, value: Value) -> Any:
        """A dict key or set element: a hashable Python object."""
        match value:
            case ConstantValue():
                return value.value
            case SymIntValue():
                return self.env.specialize(value.expr)
            case SequenceValue() if value.kind in (tuple, torch.Size):
                return tuple(self.key_of(item) for item in value.items)
            case ObjectValue():
                return self.rely_on_object(value)
            case BoundMethod():
                return value
            case ClosureValue() | TensorValue() | NewObject():
                return value
        raise GraphBreak("value", f"{value.describe()} as a key")

    def of_key(self, key: Any) -> Value:
        """The value of a key."""
        if isinstance(key, Value):
            return key
        if isinstance(key, tuple):
            return SequenceValue([self.of_key(item) for item in key], type(key))
        return self._known.get(id(key)) or self.of_python(key)

    def compare(self, op: str, lhs: Value, rhs: Value) -> Value:
        """``lhs op rhs``."""
        return compare(self, op, lhs, rhs)

    # ---- reads and writes that opcodes share ----

    def getattr(self, value: Value, name: str) -> Value:
        """``value.name``."""
        return value.getattr(self, name)

    def getitem(self, container: Value, key: Value) -> Value:
        """``container[key]``; a tensor as key asks the tensor's protocol."""
        if isinstance(key, TensorValue) and not isinstance(container, TensorValue):
            raise GraphBreak("data-dependent", "a tensor is used as an index of a Python container")
        if isinstance(container, ObjectValue) and isinstance(container.obj, type):
            return self.fold(operator.getitem, [container, key])
        return container.getitem(self, key)

    def storage_of(self, value: ObjectValue) -> Value:
        """The items of an existing object whose class extends a builtin container."""
        found = self._storages.get(id(value))
        if found is None:
            obj, source = value.obj, value.source
            if isinstance(obj, dict):
                if source is not None:
                    self.guard(guards.DictKeys(source, tuple(obj)))
                found = LazyDict(self, obj, dict, source)
            elif isinstance(obj, (list, tuple)):
                if source is not None:
                    self.guard(guards.Length(source, len(obj)))
                found = self._wrap_items(obj, list if isinstance(obj, list) else tuple, source)
            else:
                found = SetValue({item: self.of_python(item) for item in obj}, set, source)
            self._storages[id(value)] = found
        return found

    def contains(self, container: Value, item: Value) -> Value:
        """``item in container``."""
        if isinstance(container, (ObjectValue, NewObject)):
            cls = container.python_type()
            if class_attribute(cls, "__contains__") is not MISSING:
                return self.call_special(container, "__contains__", [item])
        return container.contains(self, item)

    def special(self, value: Value, name: str) -> Value:
        """A special method of ``value``, bound."""
        found = class_attribute(value.python_type(), name)
        if found is MISSING:
            raise self.raise_type(AttributeError, name)
        if isinstance(value, ObjectValue):
            value.guard_type(self)
        return self.bind(found, value, name)

    def mapping_items(self, value: Value) -> list[tuple[Any, Value]]:
        """Pairs of a mapping, keys as Python objects."""
        from dynamo_capture.container_methods import pairs_of

        return list(pairs_of(self, value))

    def snapshot(self, value: Value) -> Value:
        """What a printed value is now. A graph break for what has no text before the graph has run."""
        self.must_have_text(value)
        return ConstantValue(python_of(self, value))

    def must_have_text(self, value: Value) -> None:
        """Break the graph for a value whose text may depend on more than is guarded."""
        if isinstance(value, (SequenceValue, DictValue, SetValue)):
            for child in value.children():
                self.must_have_text(child)
        elif isinstance(value, ObjectValue) and not isinstance(value.obj, IDENTIFIED):
            raise GraphBreak("unknown-call", f"the text of {value.describe()}")

    def text_of(self, value: Value, conversion: int) -> Value | None:
        """A text for messages, for values whose own text is not known; None if there is none."""
        special = "__repr__" if conversion == 2 else "__str__"
        own = class_attribute(value.python_type(), special)
        if isinstance(value, (NewObject, ObjectValue)) and isinstance(own, types.FunctionType):
            return self.call_special(value, special, [])
        if isinstance(value, ObjectValue) and not value.overlay and isinstance(
            value.obj, (type, types.FunctionType, types.ModuleType)
        ):
            return ConstantValue(repr(value.obj) if conversion == 2 else str(value.obj))
        if isinstance(value, ExceptionValue) and all(arg.constant for arg in value.args) and conversion != 2:
            args = [arg.as_python() for arg in value.args]
            if own is BaseException.__str__:
                return ConstantValue(str(BaseException(*args)))
            if own is class_attribute(KeyError, "__str__"):
                return ConstantValue(str(KeyError(*args)))
        return None

    def adopt_cell(self, cell: Any, value: CellValue) -> CellValue:
        """A cell of the outermost frame: the same value wherever the cell is met."""
        self._known[id(cell)] = value
        self._alive.append(cell)
        return value

    def set_cell(self, cell: CellValue, value: Value) -> None:
        """Assign a closure variable."""
        cell.content = value
        if cell.source is not None and not cell.mutated:
            cell.mutated = True
            self.effects.append(cell)

    def globals_of(self, namespace: dict[str, Any]) -> dict[str, Value]:
        """Globals that the traced program assigned, of one namespace."""
        return self._globals.setdefault(id(namespace), {})

    def set_global(self, frame: Any, name: str, value: Value) -> None:
        """Assign a global."""
        if frame.globals_source is None:
            raise GraphBreak("side-effect", f"the global {name!r} of a namespace that cannot be reached")
        assigned = self.globals_of(frame.namespace)
        if name not in assigned:
            self.effects.append(GlobalEffect(frame.namespace, name, assigned))
        assigned[name] = value

    def call_later(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call that only the outside sees (printing, logging): made after the graph, in order with other effects."""
        self.effects.append(CallEffect(function, args, kwargs))
        return ConstantValue(None)

    def set_grad_mode(self, enabled: bool) -> None:
        """Turn gradients on or off, in the graph and for what follows."""
        node = self.graph.call_function(torch._C._set_grad_enabled, (enabled,))
        node.meta["where"] = self.where
        node.meta[SPEC_KEY] = None
        self.grad_mode = enabled

    # ---- calls; the rest lives in ``calls`` ----

    def call_object(self, value: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of an existing object."""
        from dynamo_capture.calls import call_object

        return call_object(self, value, args, kwargs)

    def call_module(self, value: ModuleValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A call of an ``nn.Module``."""
        from dynamo_capture.calls import call_module

        return call_module(self, value, args, kwargs)

    def container_call(self, container: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """A method of a builtin container."""
        from dynamo_capture.container_methods import call_method

        return call_method(self, container, name, args, kwargs)

    def inline_closure(self, function: ClosureValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Trace into a function that the program made."""
        from dynamo_capture.frame import inline

        return inline(self, function, args, kwargs)

    def substitute(self, original: Any) -> Callable[..., Any] | None:
        """Traceable Python in place of a C function."""
        return substitute_for(original)


_MUTABLE = (list, dict, OrderedDict, set)
_HEAP_TYPE = 1 << 9


def _is_container_method(value: Any) -> bool:
    return type(value) is types.BuiltinFunctionType and (
        type(value.__self__) in _MUTABLE or isinstance(value.__self__, torch.Tensor)
    )


class CallEffect(Value):
    """A call to be made at run time, whose result nobody uses."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.source = None
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def children(self) -> Iterator[Value]:
        yield from self.args
        yield from self.kwargs.values()


class GlobalEffect(Value):
    """A global that the traced program assigned."""

    __slots__ = ("assigned", "name", "namespace")

    def __init__(self, namespace: dict[str, Any], name: str, assigned: dict[str, Value]) -> None:
        self.source = None
        self.namespace = namespace
        self.name = name
        self.assigned = assigned

    def children(self) -> Iterator[Value]:
        return iter((self.assigned[self.name],))


class LazyDict(DictValue):
    """An existing dict: values are made when they are read."""

    __slots__ = ()

    def __init__(self, tracer: Tracer, real: dict[Any, Any], kind: type, source: Source | None) -> None:
        super().__init__({}, kind, source)
        for key, value in real.items():
            self.items[key] = _Pending(value, None if source is None else ItemSource(source, key), tracer)
        self.items = _Forcing(self.items)


class _Pending(Value):
    """A dict's value that nobody has read yet."""

    __slots__ = ("real", "tracer")

    def __init__(self, real: Any, source: Source | None, tracer: Tracer) -> None:
        self.source = source
        self.real = real
        self.tracer = tracer


class _Forcing(dict):  # type: ignore[type-arg]
    """A dict of values in which pending ones are made when read."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if type(found) is _Pending:
            found = found.tracer.wrap(found.real, found.source)
            super().__setitem__(key, found)
        return found

    def get(self, key: Any, default: Any = None) -> Any:
        return self[key] if key in self else default

    def values(self) -> Any:  # type: ignore[override]
        return [self[key] for key in self]

    def items(self) -> Any:  # type: ignore[override]
        return [(key, self[key]) for key in self]

    def pop(self, key: Any, *default: Any) -> Any:
        if key in self:
            found = self[key]
            del self[key]
            return found
        return super().pop(key, *default)

    def copy(self) -> Any:
        return dict(self.items())


def _identified(value: Value) -> bool:
    return isinstance(value, ObjectValue) and isinstance(value.obj, IDENTIFIED)


def _holds_tensor(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if isinstance(value, (tuple, list)):
        return any(_holds_tensor(item) for item in value)
    return False


_WRITERS = frozenset({operator.setitem, torch._C._set_grad_enabled})


_WRITING_METHODS = frozenset(
    f"__{name}__"
    for name in "setitem iadd isub imul itruediv ifloordiv imod ipow imatmul iand ior ixor ilshift irshift".split()
)


def _writes(target: Any) -> bool:
    if isinstance(target, str):
        return (target.endswith("_") and not target.endswith("__")) or target in _WRITING_METHODS
    return target in _WRITERS


def _target_name(target: Any) -> str:
    return target if isinstance(target, str) else getattr(target, "__name__", str(target))




