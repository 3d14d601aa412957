"""Operations on tensors: one call of a torch function, a tensor method or an operator is one node.

The function itself runs once on tensors without data to learn what it returns; that is memoised by the function and
what is known of its arguments. A result without tensors (a size, a dtype, ``dim()``) becomes a constant, with no node.
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

import guards
from dynamo_capture.errors import DataDependent, GraphBreak, UserRaise
from dynamo_capture.output import with_grad
from dynamo_capture.shapes import SpecTensor
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    DictValue,
    Lazy,
    ListValue,
    MethodValue,
    SliceValue,
    SymValue,
    TensorMeta,
    TensorValue,
    TupleValue,
    Value,
    size_value,
)
from fx_interface.errors import UnsupportedProgramError
from fx_interface.signature import InputKind
from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, Source
from fx_interface.symbols import Expr
from fx_interface.tensor_spec import TensorSpec

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace

_INPLACE_OPERATORS = frozenset(
    getattr(operator, name) for name in dir(operator) if name.startswith("i") and hasattr(operator, name[1:])
)
_NOT_INPLACE = frozenset({"__init__"})
_BLOCKED_METHODS = {
    "backward": ("CAP203", "`backward()` runs the autograd engine"),
    "item": ("CAP201", "`item()` reads the tensor's content"),
    "tolist": ("CAP201", "`tolist()` reads the tensor's content"),
    "numpy": ("CAP201", "`numpy()` reads the tensor's content"),
    "__array__": ("CAP201", "a conversion to numpy reads the tensor's content"),
    "data_ptr": ("CAP204", "the address of a tensor is asked for"),
    "register_hook": ("CAP205", "a hook is registered on a tensor"),
    "untyped_storage": ("CAP204", "the storage of a tensor is asked for"),
    "storage": ("CAP204", "the storage of a tensor is asked for"),
}
_RANDOM_TAG = torch.Tag.nondeterministic_seeded


class _ArgRef:
    """In a remembered result: the argument itself, by its position among the tensor arguments."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class _New:
    """In a remembered result: a new tensor; ``view_of`` is the tensor argument that it is a differentiable view of."""

    __slots__ = ("meta", "view_of")

    def __init__(self, meta: TensorMeta, view_of: int | None) -> None:
        self.meta = meta
        self.view_of = view_of


class _Outcome:
    __slots__ = ("has_tensor", "result", "spec", "updates")

    def __init__(
        self, result: Any, has_tensor: bool, spec: Any, updates: list[tuple[int, TensorMeta]]
    ) -> None:
        self.result = result
        self.has_tensor = has_tensor
        self.spec = spec
        self.updates = updates


class Tensors:
    """The tensor operations of one trace. ``memo`` outlives it."""

    def __init__(self, tx: Trace, memo: dict[Any, _Outcome]) -> None:
        self._tx = tx
        self._static_memo = memo
        self._symbolic_memo: dict[Any, _Outcome] = {}
        self.inputs: list[TensorValue] = []

    # Inputs.

    def input(self, real: torch.Tensor, source: Source) -> TensorValue:
        """An existing tensor as an input of the graph."""
        tx = self._tx
        kind = type(real)
        if (
            kind not in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
            or real.layout is not torch.strided
        ):
            raise GraphBreak(
                "CAP216", f"{source} is a tensor of the type {kind.__name__} and layout {real.layout}"
            )
        if torch._C._functorch.is_functorch_wrapped_tensor(real) or real.is_quantized:
            raise GraphBreak("CAP216", f"{source} is a wrapped or quantized tensor")
        sizes, strides, dynamic = tx.policy.sizes_of(tx, real, source)
        spec = TensorSpec(sizes, strides, real.dtype, real.device)
        meta = TensorMeta.of(spec, real.requires_grad, real.is_leaf, kind)
        tx.guards.add(
            guards.tensor_match(
                source, real, dynamic_sizes=dynamic[0], dynamic_strides=dynamic[1], where=tx.where()
            )
        )
        node = tx.output.placeholder(
            _name_of(source), _kind_of(real, source), with_grad(spec, real.requires_grad), source, real
        )
        made = TensorValue(node, meta, source, real)
        self.inputs.append(made)
        return made

    # Calls.

    def call_function(
        self, function: Callable[..., Any], args: Sequence[Value], kwargs: dict[str, Value]
    ) -> Value:
        """A call of a torch function or operator."""
        inplace = function in _INPLACE_OPERATORS or function is operator.setitem
        name = getattr(function, "__name__", "")
        writes = (
            inplace
            or (name.endswith("_") and not name.endswith("__"))
            or "out" in kwargs
            or kwargs.get("inplace") is not None
        )
        return self._call("call_function", function, function, list(args), kwargs, writes)

    def call_method(
        self, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """``tensor.name(*args, **kwargs)``."""
        blocked = _BLOCKED_METHODS.get(name)
        if blocked is not None:
            raise GraphBreak(*blocked)
        special = METHODS.get(name)
        if special is not None:
            answer = special(self._tx, owner, args, kwargs)
            if answer is not None:
                return answer
        if owner.attrs is not None and name in owner.attrs:
            return owner.attrs[name].call(self._tx, args, kwargs)
        function = getattr(torch.Tensor, name, None)
        if function is None:
            return self.get_attr(owner, name).call(self._tx, args, kwargs)
        writes = (
            (name.endswith("_") and not name.endswith("__"))
            or name in ("__setitem__",)
            or (name.startswith("__i") and name != "__invert__")
        )
        return self._call("call_method", name, function, [owner, *args], kwargs, writes)

    def get_item(self, owner: TensorValue, key: Value) -> Value:
        """``tensor[key]``."""
        return self._call("call_function", operator.getitem, operator.getitem, [owner, key], {}, False)

    def set_item(self, owner: TensorValue, key: Value, value: Value) -> None:
        """``tensor[key] = value``."""
        self._call("call_function", operator.setitem, operator.setitem, [owner, key, value], {}, True)

    def _call(
        self,
        op: str,
        target: Any,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
        writes: bool,
    ) -> Value:
        tx = self._tx
        tensors: list[TensorValue] = []
        key = (target, self._mode_key(), self._frozen(args, tensors), self._frozen(kwargs, tensors))
        memo = self._symbolic_memo if tx.env.symbols else self._static_memo
        outcome = memo.get(key)
        if outcome is None:
            outcome = memo[key] = self._infer(function, args, kwargs, tensors, writes)
            if len(memo) > 50_000:
                memo.clear()
        if not outcome.has_tensor and not writes:
            return self._constant(outcome.result)
        if writes:
            tx.output.mutates = True
        spec = self._spec_tree(outcome.result, tensors)
        node = tx.output.call(
            op,
            target,
            tuple([self.argument(a) for a in args]),
            {k: self.argument(v) for k, v in kwargs.items()},
            spec,
            tx.where(),
            pure=not writes and not _is_random(target),
        )
        for index, meta in outcome.updates:
            self._update(tensors[index], meta)
        return self._result(node, outcome.result, tensors)

    def _mode_key(self) -> Any:
        grad = torch.is_grad_enabled()
        inference = torch.is_inference_mode_enabled()
        if torch.is_autocast_enabled("cpu") or torch.is_autocast_enabled("cuda"):
            state = tuple(
                (torch.is_autocast_enabled(d), torch.get_autocast_dtype(d)) for d in ("cpu", "cuda")
            )
            return (grad, inference, torch.get_default_dtype(), state)
        return (grad, inference, torch.get_default_dtype())

    def _update(self, tensor: TensorValue, meta: TensorMeta) -> None:
        """An in-place operation changed what autograd knows of a tensor, and so of its base and the base's views."""
        tensor.meta = meta
        if meta.requires_grad:
            root = tensor.root
            for other in (root, *root.views):
                if not other.meta.requires_grad and other is not tensor:
                    other.meta = TensorMeta.of(other.meta.spec, True, False, other.meta.cls)

    # Learning what a call returns.

    def _infer(
        self,
        function: Callable[..., Any],
        args: list[Value],
        kwargs: dict[str, Value],
        tensors: list[TensorValue],
        writes: bool,
    ) -> _Outcome:
        tx = self._tx
        fakes: dict[int, SpecTensor] = {}
        tx.env.location = tx.where()
        try:
            fake_args = [self._fake(a, fakes) for a in args]
            fake_kwargs = {name: self._fake(v, fakes) for name, v in kwargs.items()}
            result = tx.inference.run(function, fake_args, fake_kwargs)
        except DataDependent as error:
            raise GraphBreak("CAP201", f"the content of a tensor is needed: {error}") from None
        except UnsupportedProgramError as error:
            raise GraphBreak("CAP206", f"{_label(function)}: {error.what}") from None
        except (GraphBreak, UserRaise):
            raise
        except NotImplementedError as error:
            raise GraphBreak("CAP206", f"{_label(function)}: {error}") from None
        except Exception as error:
            raise UserRaise(tx.exception(error)) from error
        order = [fakes[id(t)] for t in tensors]
        updates = [
            (i, TensorMeta.of(t.meta.spec, fake.requires_grad, fake.is_leaf, t.meta.cls))
            for i, (t, fake) in enumerate(zip(tensors, order, strict=True))
            if writes and (fake.requires_grad, fake.is_leaf) != (t.meta.requires_grad, t.meta.is_leaf)
        ]
        found = [False]
        described = self._describe(result, order, found)
        return _Outcome(described, found[0], None, updates)

    def _describe(self, result: Any, fakes: list[SpecTensor], found: list[bool]) -> Any:
        if isinstance(result, SpecTensor):
            found[0] = True
            for index, fake in enumerate(fakes):
                if result is fake:
                    return _ArgRef(index)
            view_of = None
            if result._is_view():
                base = result._base
                view_of = next(
                    (i for i, f in enumerate(fakes) if f is base or (f._is_view() and f._base is base)), None
                )
            return _New(TensorMeta.of(result.spec, result.requires_grad, result.is_leaf), view_of)
        if isinstance(result, torch.Tensor):
            found[0] = True
            spec = TensorSpec(tuple(result.shape), tuple(result.stride()), result.dtype, result.device)
            return _New(TensorMeta.of(spec, result.requires_grad, result.is_leaf, type(result)), None)
        if isinstance(result, torch.SymInt):
            value = self._tx.env.simplify(result.node.value)
            return value
        if isinstance(result, torch.SymBool):
            return bool(result)
        if isinstance(result, torch.SymFloat):
            return float(result)
        if isinstance(result, (tuple, list)):
            return _Sequence(type(result), [self._describe(item, fakes, found) for item in result])
        return result

    def _fake(self, value: Any, fakes: dict[int, SpecTensor]) -> Any:
        kind = type(value)
        if kind is TensorValue:
            fake = fakes.get(id(value))
            if fake is None:
                meta = value.meta
                fake = self._tx.inference.tensor(meta.spec, meta.requires_grad, meta.is_leaf)
                fakes[id(value)] = fake
            return fake
        if isinstance(value, Const):
            return value.value
        if kind is SymValue:
            return self._tx.inference.sizes.to_torch(value.expr)
        if kind is TupleValue:
            items = [self._fake(self._tx.force(item), fakes) for item in value.items]
            return tuple(items) if value.cls in (tuple, torch.Size) else _rebuilt(value.cls, items)
        if kind is ListValue:
            return [self._fake(self._tx.force(item), fakes) for item in value.items]
        if kind is SliceValue:
            return slice(*(self._fake(bound, fakes) for bound in value.bounds))
        if isinstance(value, DictValue):
            entries = value.all_entries(self._tx).values()
            return {self._tx.constant(k): self._fake(self._tx.force(v), fakes) for k, v in entries}
        raise GraphBreak("CAP207", f"{value.describe()} is passed to a torch function")

    def _frozen(self, value: Any, tensors: list[TensorValue]) -> Any:
        kind = type(value)
        if kind is TensorValue:
            for index, known in enumerate(tensors):
                if known is value:
                    return (value.meta, index)
            tensors.append(value)
            return value.meta
        if isinstance(value, Const):
            known = value.value
            if type(known) is slice:
                return (slice, tuple([(type(b), b) for b in (known.start, known.stop, known.step)]))
            return (
                known
                if known is None
                else (type(known), known if known == known else repr(known), _sign(known))
            )
        if kind is list:
            return tuple([self._frozen(item, tensors) for item in value])
        if kind is dict:
            return tuple([(name, self._frozen(item, tensors)) for name, item in value.items()])
        if kind is SymValue:
            return value.expr
        if kind is TupleValue or kind is ListValue:
            force = self._tx.force
            return (kind, value.cls, tuple([self._frozen(force(item), tensors) for item in value.items]))
        if kind is SliceValue:
            return (slice, tuple([self._frozen(bound, tensors) for bound in value.bounds]))
        if kind is Lazy:
            return self._frozen(self._tx.force(value), tensors)
        if isinstance(value, DictValue):
            entries = value.all_entries(self._tx).values()
            return tuple([(self._tx.constant(k), self._frozen(v, tensors)) for k, v in entries])
        raise GraphBreak("CAP207", f"{value.describe()} is passed to a torch function")

    def argument(self, value: Any) -> Any:
        """A value as an argument of a graph node."""
        kind = type(value)
        if kind is TensorValue:
            return value.node
        if isinstance(value, Const):
            return value.value
        if kind is SymValue:
            return self._tx.output.size(self._tx.env.simplify(value.expr))
        if kind is TupleValue:
            items = [self.argument(self._tx.force(item)) for item in value.items]
            return tuple(items) if value.cls in (tuple, torch.Size) else _rebuilt(value.cls, items)
        if kind is ListValue:
            return [self.argument(self._tx.force(item)) for item in value.items]
        if kind is SliceValue:
            return slice(*(self.argument(bound) for bound in value.bounds))
        if isinstance(value, DictValue):
            entries = value.all_entries(self._tx).values()
            return {self._tx.constant(k): self.argument(self._tx.force(v)) for k, v in entries}
        raise GraphBreak("CAP207", f"{value.describe()} is passed to a torch function")

    # Results.

    def _constant(self, described: Any) -> Value:
        if isinstance(described, _Sequence):
            items = [self._constant(item) for item in described.items]
            if described.cls is list:
                return ListValue(items)
            return TupleValue(items, described.cls)
        if isinstance(described, Expr):
            return SymValue(described)
        return self._tx.known(described)

    def _spec_tree(self, described: Any, tensors: list[TensorValue]) -> Any:
        if type(described) is _New:
            return with_grad(described.meta.spec, described.meta.requires_grad)
        if type(described) is _ArgRef:
            meta = tensors[described.index].meta
            return with_grad(meta.spec, meta.requires_grad)
        if type(described) is _Sequence:
            parts = [self._spec_tree(item, tensors) for item in described.items]
            return parts if described.cls is list else tuple(parts)
        return None

    def _result(self, node: Any, described: Any, tensors: list[TensorValue]) -> Value:
        if type(described) is _New:
            made = TensorValue(node, described.meta)
            if described.view_of is not None:
                made.root = tensors[described.view_of].root
                made.root.views.append(made)
            return made
        if type(described) is _ArgRef:
            return tensors[described.index]
        if type(described) is _Sequence:
            items: list[Value] = []
            for index, part in enumerate(described.items):
                if type(part) is _New or type(part) is _Sequence:
                    item = self._tx.output.call(
                        "call_function",
                        operator.getitem,
                        (node, index),
                        {},
                        self._spec_tree(part, tensors),
                        self._tx.where(),
                        pure=True,
                    )
                    items.append(self._result(item, part, tensors))
                else:
                    items.append(self._result(node, part, tensors))
            return ListValue(items) if described.cls is list else TupleValue(items, described.cls)
        return self._constant(described)

    # Attributes.

    def get_attr(self, owner: TensorValue, name: str) -> Value:
        """``tensor.name``."""
        tx = self._tx
        if owner.attrs is not None and name in owner.attrs:
            return owner.attrs[name]
        spec = owner.meta.spec
        match name:
            case "shape":
                return TupleValue([size_value(n) for n in spec.sizes], torch.Size)
            case "dtype":
                return Const(spec.dtype)
            case "device":
                return Const(spec.device)
            case "requires_grad":
                return Const(owner.meta.requires_grad)
            case "ndim":
                return Const(len(spec.sizes))
            case "is_leaf":
                return Const(owner.meta.is_leaf)
            case "__class__":
                return Const(owner.meta.cls)
            case "grad":
                return self._grad(owner)
            case "grad_fn" if not owner.meta.requires_grad or owner.meta.is_leaf:
                return NONE
            case "grad_fn" | "_version" | "_base":
                raise GraphBreak("CAP208", f"the autograd state {name!r} of a tensor is asked for")
        found = _in_tensor_class(owner.meta.cls, name)
        if isinstance(found, (types.FunctionType, types.MethodDescriptorType, types.WrapperDescriptorType)):
            return BuiltinMethod(owner, name)
        if found is None:
            return self._instance_attribute(owner, name)
        if isinstance(found, (property, types.GetSetDescriptorType)):
            return self._call("call_function", getattr, getattr, [owner, Const(name)], {}, False)
        return tx.known(getattr(torch.Tensor, name))

    def _instance_attribute(self, owner: TensorValue, name: str) -> Value:
        if owner.real is not None and owner.source is not None:
            if name in vars(owner.real):
                return self._tx.wrap(
                    vars(owner.real)[name], ItemSource(InstanceDictSource(owner.source), name)
                )
            self._tx.guards.absent(InstanceDictSource(owner.source), name)
        raise self._tx.raises(AttributeError, f"{owner.meta.cls.__name__!r} object has no attribute {name!r}")

    def _grad(self, owner: TensorValue) -> Value:
        if owner.real is None or owner.source is None:
            if owner.meta.is_leaf or not owner.meta.requires_grad:
                return NONE
            raise GraphBreak("CAP208", "`grad` of an intermediate tensor is asked for")
        return self._tx.wrap(owner.real.grad, AttrSource(owner.source, "grad"))

    def set_attr(self, owner: TensorValue, name: str, value: Value) -> None:
        """``tensor.name = value``."""
        if name == "requires_grad" and isinstance(value, Const):
            self.call_method(owner, "requires_grad_", [value], {})
            return
        if _in_tensor_class(owner.meta.cls, name) is not None:
            raise GraphBreak("CAP208", f"the attribute {name!r} of a tensor is set")
        if owner.attrs is None:
            owner.attrs = {}
        owner.attrs[name] = value
        self._tx.effects.tensor_attribute(owner, name)


class _Sequence:
    __slots__ = ("cls", "items")

    def __init__(self, cls: type, items: list[Any]) -> None:
        self.cls = cls
        self.items = items


def _rebuilt(cls: type, items: list[Any]) -> Any:
    return cls(*items) if hasattr(cls, "_fields") else tuple(items)


def _sign(value: Any) -> Any:
    """Tells 0.0 from -0.0 and 1 inside tuples from True."""
    if type(value) is float:
        return value.hex()
    if type(value) is tuple:
        return tuple([(type(item), _sign(item)) for item in value])
    return None


def _in_tensor_class(cls: type, name: str) -> Any:
    for base in cls.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return None


_RANDOM_NAMES = frozenset(
    {
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_alpha_dropout",
        "feature_dropout",
        "rand",
        "randn",
        "randint",
        "randperm",
        "rand_like",
        "randn_like",
        "randint_like",
        "bernoulli",
        "multinomial",
        "normal",
        "poisson",
        "rrelu",
        "scaled_dot_product_attention",
        "gumbel_softmax",
        "binomial",
        "manual_seed",
    }
)


def _is_random(target: Any) -> bool:
    """Whether running the operation moves a random generator on, so that it must run even if its result is unused."""
    return (target if isinstance(target, str) else getattr(target, "__name__", "")) in _RANDOM_NAMES


def _label(function: Any) -> str:
    return getattr(function, "__qualname__", None) or repr(function)


def _name_of(source: Source) -> str:
    """A readable placeholder name: ``self.encoder.layer[0].weight`` -> ``self_encoder_layer_0_weight``."""
    parts: list[str] = []
    current: Source | None = source
    while current is not None and len(parts) < 12:
        step = getattr(current, "name", None)
        if step is None:
            step = getattr(current, "key", None)
        if isinstance(step, (str, int)) and step not in ("_modules", "_parameters", "_buffers"):
            parts.append(str(step))
        current = current.base
    text = "_".join(reversed(parts)) or "x"
    text = "".join(c if c.isalnum() or c == "_" else "_" for c in text).strip("_") or "x"
    return text if not text[0].isdigit() else f"x_{text}"


def _kind_of(real: torch.Tensor, source: Source) -> InputKind:
    if isinstance(real, torch.nn.Parameter):
        return InputKind.PARAMETER
    if (
        isinstance(source, ItemSource)
        and isinstance(source.parent, ItemSource)
        and source.parent.key == "_buffers"
    ):
        return InputKind.BUFFER
    return InputKind.USER


Method = Callable[["Trace", TensorValue, list[Value], dict[str, Value]], "Value | None"]
METHODS: dict[str, Method] = {}
"""Tensor methods that need no torch: what the metadata answers."""


def method(*names: str) -> Callable[[Method], Method]:
    """Declare how a tensor method is traced; returning None leaves it to torch."""

    def register(function: Method) -> Method:
        for name in names:
            if name in METHODS:
                raise ValueError(f"the tensor method {name!r} is declared twice")
            METHODS[name] = function
        return function

    return register


@method("size")
def _size(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    sizes = owner.meta.spec.sizes
    if not args and not kwargs:
        return TupleValue([size_value(n) for n in sizes], torch.Size)
    dim = args[0] if args else kwargs.get("dim")
    if isinstance(dim, Const) and type(dim.value) is int and -len(sizes) <= dim.value < len(sizes):
        return size_value(sizes[dim.value])
    return None


@method("dim", "ndimension")
def _dim(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return Const(len(owner.meta.spec.sizes))


@method("__len__")
def _len(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return Const(owner.length(tx))


@method("__iter__")
def _iter(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return owner.iterate(tx)


@method("__bool__", "__int__", "__float__", "__index__", "__contains__", "is_nonzero")
def _content(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    raise GraphBreak("CAP201", "the content of a tensor decides what Python does")


@method("__setitem__")
def _setitem(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    owner.set_item(tx, args[0], args[1])
    return NONE


@method("__getitem__")
def _getitem(tx: Trace, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    return owner.get_item(tx, args[0])


__all__ = ["METHODS", "MethodValue", "Tensors", "method"]
