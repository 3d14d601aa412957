"""Functions and classes that make a tensor of Python numbers."""

from __future__ import annotations

import functools
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import C_OBJECT_MADE, CONTENT_DECIDES, UNKNOWN_ARGUMENT
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.calls.arrays.arrays import tensor_of
from dynamo_capture.semantics.registry import handles
from dynamo_capture.semantics.tensors.methods import method
from dynamo_capture.values import (
    NONE,
    TRUE,
    Const,
    ListValue,
    TensorValue,
    TupleValue,
    Value,
    is_none,
    tensors_of,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import RangeList, RepeatedList
from dynamo_capture.values.structures import sequence_leaves
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES


def _make_tensor(function: Any) -> Any:
    name = "obj" if function is torch.asarray else "data"

    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if not args and name in kwargs and not tx.tensors.modes.active:  # which would be shown the name
            args = [kwargs[name]]
            kwargs = {key: value for key, value in kwargs.items() if key != name}
        counted = _tensor_of_range(tx, args[0], kwargs) if len(args) == 1 else None
        if counted is not None:
            return counted
        repeated = _tensor_of_repeated(tx, args[0], kwargs) if len(args) == 1 else None
        if repeated is not None:
            return repeated
        given = _dtype_of_numpy(tx, args[0]) if args and is_none(kwargs.get("dtype", NONE)) else None
        kwargs = kwargs if given is None else {**kwargs, "dtype": Const(given)}
        if args and (args[0].varies or _has_varying(tx, args[0])):
            made_of_numbers = _tensor_of_numbers(tx, args[0], kwargs)
            if made_of_numbers is not None:
                return made_of_numbers
        of_numpy = tensor_of(tx, function, args[0], kwargs) if len(args) == 1 else None
        if of_numpy is not None:
            return of_numpy
        if args and _nested_tensor(tx, args[0]):
            if isinstance(args[0], TensorValue):
                return tx.tensors.call_function(function, args, kwargs)
            joined = _tensor_of_tensors(tx, args[0], kwargs) if len(args) == 1 else None
            if joined is not None:
                return joined
            raise GraphBreak(
                CONTENT_DECIDES, f"torch.{function.__name__}() of a list of tensors reads their content"
            )
        return tx.tensors.call_function(function, args, kwargs)

    return make


def _tensor_of_range(tx: Context, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """The tensor of ``list(range(n))``, of however many numbers; None for other values and options."""
    given = {name: item for name, item in kwargs.items() if not is_none(item)}
    if not isinstance(value, RangeList) or not value.is_unread or not given.keys() <= {"dtype", "device"}:
        return None
    if "dtype" in given and tx.constant(given["dtype"]) is not torch.int64:
        return None
    if not value.has_items(tx):  # a tensor of floats
        return None
    options = {"dtype": Const(torch.int64), **given}
    return tx.tensors.call_function(torch.arange, list(value.range.bounds), options)


def _tensor_of_repeated(tx: Context, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """The tensor of ``[a] * n``, of however many numbers; None for other values and options."""
    given = {name: item for name, item in kwargs.items() if not is_none(item)}
    if not isinstance(value, RepeatedList) or not value.is_unread or not given.keys() <= {"dtype", "device"}:
        return None
    number = value.part[0].as_constant() if len(value.part) == 1 else None
    if type(number) not in (bool, int, float):
        return None
    if not tx.truth(tx.operators.compare("<", Const(0), value.times)):  # a tensor of floats
        return None
    return tx.tensors.call_function(torch.full, [TupleValue([value.times]), Const(number)], given)


def _dtype_of_numpy(tx: Context, value: Value) -> torch.dtype | None:
    """The dtype of the tensor of a list, perhaps of others, with numbers of numpy, which bring theirs."""
    if not isinstance(value, (ListValue, TupleValue)):
        return None
    items = list(sequence_leaves(tx, [value]))
    kinds = (item.python_type() for item in items)
    if not any(issubclass(kind, numpy_types.SCALARS) for kind in kinds):  # a read value would be fixed
        return None
    if any(item.varies or not isinstance(item, Const) for item in items):
        raise GraphBreak(
            UNKNOWN_ARGUMENT, "a list of numbers of numpy and others is passed to a torch function"
        )
    given = tx.calls.python_object(value)
    return tx.fold(lambda: torch.tensor(given).dtype)


def _has_varying(tx: Context, value: Value) -> bool:
    """Whether a value is a list or tuple, perhaps of others, of numbers of which one varies."""
    if not isinstance(value, (ListValue, TupleValue)):
        return False
    items = list(sequence_leaves(tx, [value]))
    return any(value.varies for value in items) and all(
        item.varies or isinstance(item, Const) for item in items
    )


def _shape(tx: Context, value: Value) -> tuple[int, ...] | None:
    """The shape of the tensor of a list of lists; None where they are not of one length."""
    value = tx.force(value)
    if not isinstance(value, (ListValue, TupleValue)):
        return ()
    inner = {_shape(tx, item) for item in value.items}
    found = inner.pop() if len(inner) == 1 else None
    return None if found is None else (len(value.items), *found)


def _tensor_of_numbers(tx: Context, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """A tensor of a number, or of a list of numbers, known only when the code runs; None for other options."""
    given = {name: item for name, item in kwargs.items() if not is_none(item)}
    if not given.keys() <= {"dtype", "device"}:
        return None
    if isinstance(value, (ListValue, TupleValue)):
        items = [tx.force(item) for item in value.items]
        types = {item.python_type() for item in sequence_leaves(tx, [value])}
        if not types <= {int, float, bool} or _shape(tx, value) is None:
            return None
        default = torch.get_default_dtype() if float in types else torch.int64
        options = {"dtype": Const(default), **given}
        make = Const(torch.tensor)
        return tx.tensors.call_function(
            torch.stack, [ListValue([make.call(tx, [item], options) for item in items])], {}
        )
    if value.expr is not None:
        dtype = given.pop("dtype", Const(torch.int64))
        return tx.tensors.call_function(torch.full, [Const(()), value], {"dtype": dtype, **given})
    assert isinstance(value, RuntimeFloat)
    options = {"dtype": Const(torch.get_default_dtype()), **given, "copy": TRUE}
    return value.tensor().call_method(tx, "to", [], options)


def _tensor_of_tensors(tx: Context, value: Value, kwargs: dict[str, Value]) -> Value | None:
    """A tensor of a list of tensors without dimensions, perhaps with numbers among them, side by side. None
    where torch could refuse one, or warn, and for other options."""
    given = {name: item for name, item in kwargs.items() if not is_none(item)}
    if not given.keys() <= {"dtype", "device"} or not isinstance(value, (ListValue, TupleValue)):
        return None
    items = [tx.force(item) for item in value.items]
    if tx.tensors.modes or not all(_is_number(item) for item in items):
        return None
    dtypes = [item.meta.spec.dtype if isinstance(item, TensorValue) else _dtype_of(item) for item in items]
    promoted = functools.reduce(torch.promote_types, dtypes)
    wanted = tx.constant(given["dtype"]) if "dtype" in given else promoted
    if not all(_holds_all(wanted, dtype) for dtype in dtypes):
        return None
    options: dict[str, Value] = {"dtype": Const(wanted)}
    parts: list[Value] = [
        item.call_method(tx, "to", [Const(wanted)], {})
        if isinstance(item, TensorValue)
        else tx.tensors.call_function(torch.tensor, [item], options)
        for item in items
    ]
    made: Value = tx.tensors.call_function(torch.stack, [ListValue(parts)], {})
    return made.call_method(tx, "to", [given["device"]], {}) if "device" in given else made


def _is_number(item: Value) -> bool:
    """Whether an item is a number, or a tensor on the CPU with one number and without a history."""
    if type(item) is TensorValue:
        spec = item.meta.spec
        is_plain = item.meta.cls is torch.Tensor and not item.meta.requires_grad
        return is_plain and not spec.sizes and spec.device.type == "cpu" and not spec.dtype.is_complex
    return isinstance(item, Const) and not item.varies and type(item.value) in (bool, int, float)


def _dtype_of(number: Value) -> torch.dtype:
    return {bool: torch.bool, int: torch.int64, float: torch.get_default_dtype()}[number.python_type()]


def _holds_all(wider: torch.dtype, dtype: torch.dtype) -> bool:
    """Whether any number of one dtype becomes one of another without a check of its range."""
    if wider.is_floating_point and not dtype.is_floating_point:
        return wider is not torch.float16 and dtype is not torch.bool
    return torch.promote_types(wider, dtype) is wider and (dtype is not torch.bool or wider is torch.bool)


def _nested_tensor(tx: Context, value: Value) -> bool:
    return bool(tensors_of(sequence_leaves(tx, [value])))


for _function in (torch.tensor, torch.as_tensor, torch.asarray):
    handles(_function)(_make_tensor(_function))


@method("new_tensor")
def _new_tensor(tx: Context, owner: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``x.new_tensor(array)`` is ``torch.tensor(array, dtype=x.dtype, device=x.device)``."""
    given = args[0] if len(args) == 1 else kwargs.get("data", NONE)
    if not isinstance(given, ArrayValue) or given.is_number or owner.meta.cls not in PLAIN_CLASSES:
        return None
    rest = {name: value for name, value in kwargs.items() if name != "data"}
    options: dict[str, Value] = {
        "dtype": Const(owner.meta.spec.dtype),
        "device": Const(owner.meta.spec.device),
    }
    options |= {name: value for name, value in rest.items() if not is_none(value)}
    return tensor_of(tx, torch.tensor, given, options)


_LEGACY = {
    torch.Tensor: None, torch.FloatTensor: torch.float32, torch.DoubleTensor: torch.float64,
    torch.HalfTensor: torch.float16, torch.BFloat16Tensor: torch.bfloat16, torch.LongTensor: torch.int64,
    torch.IntTensor: torch.int32, torch.ShortTensor: torch.int16, torch.CharTensor: torch.int8,
    torch.ByteTensor: torch.uint8, torch.BoolTensor: torch.bool,
}  # fmt: skip
"""Classes that are called to make a tensor of one dtype (None: the default one) on the CPU."""


def _make_legacy(cls: Any) -> Any:
    def unasked(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Torch asks no mode of the program about these classes."""
        with tx.tensors.modes.without(len(tx.tensors.modes.active)):
            return make(tx, args, kwargs)

    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``torch.IntTensor([2, 3])`` has this content, ``torch.IntTensor(2, 3)`` this shape,
        ``torch.IntTensor()`` no elements; of an array it is ``torch.as_tensor(array, dtype=torch.int32)``."""
        options: dict[str, Value] = {
            "dtype": Const(_LEGACY[cls] or torch.get_default_dtype()),
            "device": Const(torch.device("cpu")),
        }
        if not kwargs and len(args) == 1 and isinstance(args[0], (ListValue, TupleValue)):
            if args[0].python_type() is not torch.Size and not _nested_tensor(tx, args[0]):
                return tx.tensors.call_function(torch.tensor, args, options)
        elif not kwargs and all(value.python_type() is int for value in args):
            shape = TupleValue(args or [Const(0)])
            return tx.tensors.call_function(torch.empty, [shape], options)
        elif not kwargs and len(args) == 1 and isinstance(args[0], ArrayValue) and not args[0].is_number:
            shown = tensor_of(tx, torch.as_tensor, args[0], options)
            assert shown is not None
            return shown
        elif not kwargs and cls is torch.Tensor and len(args) == 1 and isinstance(args[0], TensorValue):
            alias: Value = tx.tensors.as_class(args[0], torch.Tensor)
            return alias
        raise GraphBreak(C_OBJECT_MADE, f"{cls.__name__} is called with something else than numbers")

    return unasked


for _class in _LEGACY:
    handles(_class)(_make_legacy(_class))


@handles(torch.autograd.Variable)
def _variable(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``Variable(x)`` is a plain tensor with the memory of ``x`` and without its history; torch asks neither modes nor
    the class of ``x``."""
    given = dict(zip(("data", "requires_grad"), args, strict=False)) | kwargs
    data = tx.force(given["data"]) if "data" in given else None
    known = len(args) <= 2 and given.keys() <= {"data", "requires_grad"}
    if not known or type(data) is not TensorValue or data.meta.cls not in (torch.Tensor, torch.nn.Parameter):
        raise GraphBreak(C_OBJECT_MADE, "Variable is called with something else than a tensor")
    with tx.tensors.modes.without(len(tx.tensors.modes.active)):
        made: Value = data.call_method(tx, "detach", [], {})
        follows = given.get("requires_grad")
        if follows is not None and not is_none(follows) and tx.truth(follows):
            made = made.call_method(tx, "requires_grad_", [], {})
    return made
