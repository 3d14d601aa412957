"""What calls of particular functions mean while tracing: one declaration each."""

from __future__ import annotations

import builtins
import collections
import copy
import dataclasses
import enum
import functools
import inspect
import math
import operator
import types
import typing
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.operators import BINARY, COMPARE, INPLACE, binary, compare, identical, python_of, unary
from dynamo_capture.values.base import MISSING, Value, class_attribute
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import (
    DictValue,
    IteratorValue,
    SequenceValue,
    SetValue,
    SliceValue,
)
from dynamo_capture.values.functions import CellValue, ClosureValue, PartialValue, SuperValue
from dynamo_capture.values.objects import NewObject, ObjectValue
from dynamo_capture.values.tensors import SymIntValue, TensorValue

if TYPE_CHECKING:
    from dynamo_capture.tracer import Tracer

Meaning = Callable[..., Value]
BUILTINS: dict[Any, Meaning] = {}
"""Existing callable -> function of (tracer, *args, **kwargs)."""

PURE_MODULES = frozenset({"math", "builtins", "_operator", "itertools", "_functools", "cmath", "_struct", "sys"})
PURE: set[Any] = {
    torch.device, torch.dtype, torch.finfo, torch.iinfo, torch.is_storage, torch.get_default_dtype, torch.Size,
    torch.is_grad_enabled, torch.promote_types, torch.result_type, torch.is_inference_mode_enabled,
    torch.get_num_threads, torch.cuda.is_available, torch.is_autocast_enabled, torch.get_autocast_dtype,
    torch._C._get_tracing_state, torch.is_autocast_cache_enabled, torch._C._is_torch_function_enabled,
    inspect.signature, inspect.isfunction, inspect.isclass, inspect.ismethod, inspect.getfullargspec, inspect.unwrap,
    copy.copy, range, complex, bytes, int, float, str, bool, slice, types.SimpleNamespace if False else type(None),
    torch.backends.mps.is_available, torch.utils._pytree.tree_is_leaf if hasattr(torch.utils._pytree, "tree_is_leaf") else len,
    typing.get_type_hints, typing.get_origin, typing.get_args, dataclasses.fields, dataclasses.is_dataclass,
    torch._C._functorch.peek_interpreter_stack if hasattr(torch._C, "_functorch") else len,
    torch._C._is_tracing, torch.jit.is_scripting,
}  # fmt: skip
PURE.discard(copy.copy)


def means(*callables: Any) -> Callable[[Meaning], Meaning]:
    """Declare what calling these means."""

    def register(function: Meaning) -> Meaning:
        for item in callables:
            if item in BUILTINS:
                raise ValueError(f"{item!r} is declared twice")
            BUILTINS[item] = function
        return function

    return register


# ---- types and attributes ----


@means(isinstance)
def _isinstance(tracer: Tracer, value: Value, classes: Value) -> Value:
    wanted = _classes(tracer, classes)
    if isinstance(value, TensorValue):
        return ConstantValue(_tensor_isinstance(value, wanted))
    cls = value.python_type()
    if isinstance(value, ObjectValue) and not isinstance(value.obj, (type, types.ModuleType)):
        value.guard_type(tracer)
        return ConstantValue(isinstance(value.obj, wanted))
    if isinstance(value, ObjectValue) or value.constant:
        return ConstantValue(isinstance(value.as_python(), wanted))
    return ConstantValue(issubclass(cls, wanted))


def _tensor_isinstance(value: TensorValue, wanted: Any) -> bool:
    classes = wanted if isinstance(wanted, tuple) else (wanted,)
    for cls in classes:
        if isinstance(cls, tuple):
            if _tensor_isinstance(value, cls):
                return True
        elif cls is torch.nn.Parameter:
            if issubclass(value.python_class, torch.nn.Parameter):
                return True
        elif getattr(cls, "__module__", "") == "torch" and cls.__name__.endswith("Tensor") and cls is not torch.Tensor:
            if isinstance(torch.empty(0, dtype=value.meta.dtype), cls):
                return True
        elif isinstance(cls, type) and issubclass(value.python_class, cls):
            return True
    return False


def _classes(tracer: Tracer, value: Value) -> Any:
    if isinstance(value, SequenceValue):
        return tuple(_classes(tracer, item) for item in value.items)
    return value.as_python()


@means(issubclass)
def _issubclass(tracer: Tracer, cls: Value, classes: Value) -> Value:
    try:
        return ConstantValue(issubclass(cls.as_python(), _classes(tracer, classes)))
    except TypeError as error:
        raise Raised(tracer.exception(error)) from None


@means(type)
def _type(tracer: Tracer, value: Value, *rest: Value) -> Value:
    if rest:
        raise GraphBreak("unknown-call", "a class is made with type()")
    if isinstance(value, ObjectValue):
        value.guard_type(tracer)
    return tracer.wrap(value.python_type(), None)


@means(getattr)
def _getattr(tracer: Tracer, value: Value, name: Value, default: Value | None = None) -> Value:
    try:
        return tracer.getattr(value, name.as_python())
    except Raised as raised:
        if default is not None and issubclass(raised.value.cls, AttributeError):
            return default
        raise


@means(hasattr)
def _hasattr(tracer: Tracer, value: Value, name: Value) -> Value:
    try:
        tracer.getattr(value, name.as_python())
    except Raised as raised:
        if issubclass(raised.value.cls, AttributeError):
            return ConstantValue(False)
        raise
    return ConstantValue(True)


@means(setattr)
def _setattr(tracer: Tracer, value: Value, name: Value, new: Value) -> Value:
    value.setattr(tracer, name.as_python(), new)
    return ConstantValue(None)


@means(delattr)
def _delattr(tracer: Tracer, value: Value, name: Value) -> Value:
    value.delattr(tracer, name.as_python())
    return ConstantValue(None)


@means(super)
def _super(tracer: Tracer, cls: Value | None = None, receiver: Value | None = None) -> Value:
    if cls is None or receiver is None:
        frame = tracer.frames[-1]
        cell = frame.slots["__class__"]
        assert isinstance(cell, CellValue)
        cls = cell.content
        receiver = frame.slots[frame.code.co_varnames[0]]
        if isinstance(receiver, CellValue):
            receiver = receiver.content
    assert cls is not None
    assert receiver is not None
    return SuperValue(cls.as_python(), receiver)


@means(callable)
def _callable(tracer: Tracer, value: Value) -> Value:
    if isinstance(value, ObjectValue):
        value.guard_type(tracer)
        return ConstantValue(callable(value.obj))
    if isinstance(value, (ConstantValue, SequenceValue, DictValue, SetValue, TensorValue, SymIntValue)):
        return ConstantValue(False)
    if isinstance(value, NewObject):
        return ConstantValue(class_attribute(value.cls, "__call__") is not MISSING)
    return ConstantValue(True)


@means(id)
def _id(tracer: Tracer, value: Value) -> Value:
    if isinstance(value, ObjectValue):
        return ConstantValue(id(tracer.rely_on_object(value)))
    raise GraphBreak("unknown-call", f"id() of {value.describe()}")


@means(vars)
def _vars(tracer: Tracer, value: Value) -> Value:
    return tracer.getattr(value, "__dict__")


@means(hash)
def _hash(tracer: Tracer, value: Value) -> Value:
    return ConstantValue(hash(tracer.key_of(value)))


# ---- containers ----


@means(len)
def _len(tracer: Tracer, value: Value) -> Value:
    return value.length(tracer)


def _sequence_type(kind: type) -> Meaning:
    def make(tracer: Tracer, items: Value | None = None) -> Value:
        return SequenceValue([] if items is None else list(items.iterate(tracer)), kind)

    return make


for _kind in (list, tuple, torch.Size):
    means(_kind)(_sequence_type(_kind))


def _dict_type(kind: type) -> Meaning:
    def make(tracer: Tracer, *args: Value, **named: Value) -> Value:
        made = DictValue({}, kind)
        tracer.container_call(made, "update", list(args), named)
        return made

    return make


for _kind in (dict, collections.OrderedDict):
    means(_kind)(_dict_type(_kind))


def _set_type(kind: type) -> Meaning:
    def make(tracer: Tracer, items: Value | None = None) -> Value:
        found = [] if items is None else list(items.iterate(tracer))
        return SetValue({tracer.key_of(item): item for item in found}, kind)

    return make


for _kind in (set, frozenset):
    means(_kind)(_set_type(_kind))


@means(slice)
def _slice(tracer: Tracer, *bounds: Value) -> Value:
    none: Value = ConstantValue(None)
    if len(bounds) == 1:
        return SliceValue([none, bounds[0], none])
    return SliceValue([*bounds, *([none] * (3 - len(bounds)))])


@means(range)
def _range(tracer: Tracer, *bounds: Value) -> Value:
    return tracer.fold(range, [ConstantValue(tracer.int_of(bound)) for bound in bounds])


@means(iter)
def _iter(tracer: Tracer, value: Value, sentinel: Value | None = None) -> Value:
    if sentinel is not None:
        raise GraphBreak("unknown-call", "iter() with a sentinel")
    return value if isinstance(value, IteratorValue) else IteratorValue(value.iterate(tracer))


@means(next)
def _next(tracer: Tracer, iterator: Value, default: Value | None = None) -> Value:
    if not isinstance(iterator, IteratorValue):
        try:
            return tracer.call_special(iterator, "__next__", [])
        except Raised as raised:
            if default is not None and issubclass(raised.value.cls, StopIteration):
                return default
            raise
    for item in iterator.iterator:
        return item
    if default is not None:
        return default
    raise tracer.raise_type(StopIteration, "")


@means(enumerate)
def _enumerate(tracer: Tracer, items: Value, start: Value | None = None) -> Value:
    first = 0 if start is None else tracer.int_of(start)
    pairs = enumerate(items.iterate(tracer), first)
    return IteratorValue(SequenceValue([ConstantValue(at), item], tuple) for at, item in pairs)


@means(zip)
def _zip(tracer: Tracer, *groups: Value, strict: Value | None = None) -> Value:
    if strict is not None and strict.truth(tracer):
        columns = [list(group.iterate(tracer)) for group in groups]
        if len({len(column) for column in columns}) > 1:
            raise tracer.raise_type(ValueError, "zip() arguments have different lengths")
        return IteratorValue(SequenceValue(list(row), tuple) for row in zip(*columns, strict=True))
    return IteratorValue(
        SequenceValue(list(row), tuple) for row in zip(*(g.iterate(tracer) for g in groups), strict=False)
    )


@means(map)
def _map(tracer: Tracer, function: Value, *groups: Value) -> Value:
    rows = zip(*(group.iterate(tracer) for group in groups), strict=False)
    return IteratorValue(function.call(tracer, list(row), {}) for row in rows)


@means(reversed)
def _reversed(tracer: Tracer, items: Value) -> Value:
    return IteratorValue(iter(list(items.iterate(tracer))[::-1]))


@means(sorted)
def _sorted(tracer: Tracer, items: Value, key: Value | None = None, reverse: Value | None = None) -> Value:
    values = list(items.iterate(tracer))
    ranks = values
    if key is not None and not (key.constant and key.as_python() is None):
        ranks = [key.call(tracer, [value], {}) for value in values]
    plain = [python_of(tracer, rank) for rank in ranks]
    order = sorted(range(len(values)), key=plain.__getitem__, reverse=reverse is not None and reverse.truth(tracer))
    return SequenceValue([values[at] for at in order], list)


def _extreme(name: str, op: str) -> Meaning:
    def run(tracer: Tracer, *args: Value, key: Value | None = None, default: Value | None = None) -> Value:
        items = list(args[0].iterate(tracer)) if len(args) == 1 else list(args)
        if not items:
            if default is not None:
                return default
            raise tracer.raise_type(ValueError, f"{name}() arg is an empty sequence")
        ranks = items if key is None else [key.call(tracer, [item], {}) for item in items]
        best = 0
        for at in range(1, len(items)):
            if compare(tracer, op, ranks[at], ranks[best]).truth(tracer):
                best = at
        return items[best]

    return run


means(max)(_extreme("max", ">"))
means(min)(_extreme("min", "<"))


@means(sum)
def _sum(tracer: Tracer, items: Value, start: Value | None = None) -> Value:
    total: Value = ConstantValue(0) if start is None else start
    for item in items.iterate(tracer):
        total = binary(tracer, "+", total, item)
    return total


# ---- numbers and text ----


@means(int)
def _int(tracer: Tracer, value: Value | None = None, *rest: Value) -> Value:
    if isinstance(value, SymIntValue):
        return value
    return _convert(tracer, int, value, *rest)


def _convert(tracer: Tracer, kind: type, value: Value | None, *rest: Value) -> Value:
    if value is None:
        return ConstantValue(kind())
    if isinstance(value, TensorValue):
        raise GraphBreak("data-dependent", f"{kind.__name__}() of a tensor")
    if isinstance(value, (ObjectValue, NewObject)):
        return tracer.call_special(value, f"__{kind.__name__}__", [])
    return tracer.fold(kind, [ConstantValue(python_of(tracer, v)) for v in (value, *rest)])


@means(float)
def _float(tracer: Tracer, value: Value | None = None) -> Value:
    return _convert(tracer, float, value)


@means(bool)
def _bool(tracer: Tracer, value: Value | None = None) -> Value:
    return ConstantValue(False if value is None else value.truth(tracer))


@means(str)
def _str(tracer: Tracer, value: Value | None = None) -> Value:
    if value is None:
        return ConstantValue("")
    return tracer.text_of(value, 1) or tracer.fold(str, [tracer.snapshot(value)])


@means(repr)
def _repr(tracer: Tracer, value: Value) -> Value:
    return tracer.text_of(value, 2) or tracer.fold(repr, [tracer.snapshot(value)])


@means(abs)
def _abs(tracer: Tracer, value: Value) -> Value:
    if value.constant:
        return tracer.fold(abs, [value])
    if isinstance(value, TensorValue):
        return tracer.tensor_call("abs", [value], {})
    return tracer.call_special(value, "__abs__", [])


@means(math.prod)
def _prod(tracer: Tracer, items: Value, *, start: Value | None = None) -> Value:
    total: Value = ConstantValue(1) if start is None else start
    for item in items.iterate(tracer):
        total = binary(tracer, "*", total, item)
    return total


# ---- operator ----


def _declare_operators() -> None:
    for table, suffix in ((BINARY, ""), (INPLACE, "=")):
        for symbol, function in table.items():
            means(function)(functools.partial(_operator, symbol + suffix))
    for symbol, function in COMPARE.items():
        means(function)(functools.partial(_comparison, symbol))
    for function, name in ((operator.neg, "__neg__"), (operator.pos, "__pos__"), (operator.invert, "__invert__")):
        means(function)(functools.partial(_unary, function, name))


def _operator(symbol: str, tracer: Tracer, lhs: Value, rhs: Value) -> Value:
    return binary(tracer, symbol, lhs, rhs)


def _comparison(symbol: str, tracer: Tracer, lhs: Value, rhs: Value) -> Value:
    return compare(tracer, symbol, lhs, rhs)


def _unary(function: Any, name: str, tracer: Tracer, value: Value) -> Value:
    return unary(tracer, function, name, value)


_declare_operators()


@means(operator.getitem)
def _getitem(tracer: Tracer, container: Value, key: Value) -> Value:
    return tracer.getitem(container, key)


@means(operator.is_)
def _is(tracer: Tracer, lhs: Value, rhs: Value) -> Value:
    return ConstantValue(identical(tracer, lhs, rhs))


@means(operator.contains)
def _contains(tracer: Tracer, container: Value, item: Value) -> Value:
    return container.contains(tracer, item)


@means(operator.not_)
def _not(tracer: Tracer, value: Value) -> Value:
    return ConstantValue(not value.truth(tracer))


# ---- functools, copy, warnings, typing ----


@means(functools.partial)
def _partial(tracer: Tracer, function: Value, *args: Value, **kwargs: Value) -> Value:
    return PartialValue(function, list(args), kwargs)


@means(functools.update_wrapper)
def _update_wrapper(tracer: Tracer, wrapper: Value, wrapped: Value, *rest: Value, **named: Value) -> Value:
    if isinstance(wrapper, ClosureValue):
        wrapper.attributes["__wrapped__"] = wrapped
        return wrapper
    raise GraphBreak("unknown-call", "functools.update_wrapper of an existing function")


@means(functools.wraps)
def _wraps(tracer: Tracer, wrapped: Value, *rest: Value, **named: Value) -> Value:
    return PartialValue(tracer.wrap(functools.update_wrapper, None), [], {"wrapped": wrapped})


@means(copy.copy)
def _copy(tracer: Tracer, value: Value) -> Value:
    match value:
        case SequenceValue():
            return SequenceValue(list(value.items), value.kind)
        case DictValue():
            return DictValue(dict(value.items.items()), value.kind)
        case SetValue():
            return SetValue(dict(value.items), value.kind)
        case ConstantValue():
            return value
    raise GraphBreak("unknown-call", f"a copy of {value.describe()}")


@means(warnings.warn)
def _warn(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    raise GraphBreak("unknown-call", "a warning is given")


@means(typing.cast)
def _cast(tracer: Tracer, kind: Value, value: Value) -> Value:
    return value


@means(print)
def _print(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
    return tracer.call_later(print, [tracer.snapshot(arg) for arg in args], {k: tracer.snapshot(v) for k, v in kwargs.items()})


# ---- torch's state ----


@means(torch.is_grad_enabled)
def _is_grad_enabled(tracer: Tracer) -> Value:
    return ConstantValue(tracer.grad_mode)


@means(torch._C._set_grad_enabled)
def _set_grad_enabled(tracer: Tracer, mode: Value) -> Value:
    wanted = mode.truth(tracer)
    if wanted != tracer.grad_mode:
        tracer.set_grad_mode(wanted)
    return ConstantValue(None)


@means(torch.is_tensor)
def _is_tensor(tracer: Tracer, value: Value) -> Value:
    return ConstantValue(isinstance(value, TensorValue))


def _answer(value: Any) -> Meaning:
    def run(tracer: Tracer, *args: Value, **kwargs: Value) -> Value:
        return ConstantValue(value)

    return run


for _function, _value in (
    (torch.jit.is_scripting, False),
    (torch.jit.is_tracing, False),
    (torch._C._get_tracing_state, None),
    (torch.compiler.is_compiling, True),
    (torch.compiler.is_dynamo_compiling, True),
    (torch.compiler.is_exporting, False),
    (torch.onnx.is_in_onnx_export, False),
    (torch.overrides.has_torch_function, False),
    (torch.overrides.has_torch_function_unary, False),
    (torch.overrides.has_torch_function_variadic, False),
    (torch._C._log_api_usage_once, None),
    (torch._C._is_torch_function_mode_enabled if hasattr(torch._C, "_is_torch_function_mode_enabled") else object(), False),
    (torch.distributed.is_available if hasattr(torch, "distributed") else object(), False),
    (torch.cuda.is_current_stream_capturing, False),
):
    if _function not in BUILTINS:
        means(_function)(_answer(_value))

__all__ = ["BUILTINS", "PURE", "PURE_MODULES", "builtins", "collections", "enum", "means", "types"]
