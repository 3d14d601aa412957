"""Calling builtin classes: ``list``, ``dict``, ``int``, ``type``, ``super`` and so on."""

from __future__ import annotations

import collections
import functools
import types
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import CLASS_MADE, DESCRIPTOR, NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import is_heap_type, runs_program
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.foundation.type_names import has_buffer
from dynamo_capture.semantics.calls.builtins.construct import held_partial
from dynamo_capture.semantics.calls.builtins.functions import is_callable
from dynamo_capture.semantics.calls.builtins.new_classes import new_type
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.registry import Handler, handles
from dynamo_capture.semantics.tensors.arguments import numpy_numbers
from dynamo_capture.semantics.tensors.content import data_floats
from dynamo_capture.semantics.tensors.content.data_numbers import number_of, truth_of
from dynamo_capture.semantics.tensors.content.late_parts import rows_of
from dynamo_capture.values import (
    FALSE,
    NONE,
    CellValue,
    Const,
    DescriptorValue,
    DictValue,
    EnumerateIterator,
    ListValue,
    MapIterator,
    MethodValue,
    ObjectValue,
    PartialValue,
    SetValue,
    SliceValue,
    SuperValue,
    SymRange,
    TensorValue,
    TupleValue,
    Value,
    ZipIterator,
    boolean,
    is_none,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import PartsList, PartsTuple, RangeList
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.special_results import truth_from


@handles(list)
def make_list(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    rows = rows_of(tx, args[0]) if args and isinstance(args[0], TensorValue) else None
    if rows is not None:
        return rows
    if args and isinstance(args[0], SymRange) and args[0].bounds[2].known_as(int) in (1, -1):
        return RangeList(tx, args[0])
    if args and isinstance(args[0], PartsTuple) and args[0].is_unread:
        return PartsList(args[0])
    return ListValue(list(args[0].items_for_list(tx)) if args else [])


@handles(tuple)
def make_tuple(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args and isinstance(args[0], (TupleValue, Const)) and args[0].python_type() is tuple:
        return args[0]
    return TupleValue(list(args[0].items_for_list(tx)) if args else [])


@handles(set)
def make_set(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.calls.as_set(args[0]) if args else SetValue({})


@handles(frozenset)
def make_frozenset(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args and args[0].python_type() is frozenset:
        return args[0]
    return tx.calls.as_set(args[0], frozenset) if args else SetValue({}, frozenset)


@handles(collections.deque)
def make_deque(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    limit = args[1] if len(args) > 1 else kwargs.get("maxlen", NONE)
    if not is_none(limit) and not issubclass(limit.python_type(), int):
        raise tx.raises(TypeError, "an integer is required")
    length = None if is_none(limit) else tx.integer(limit)
    tx.fold(lambda: collections.deque(maxlen=length))
    made = ListValue(list(args[0].unpack(tx)) if args else [], collections.deque)
    made.maxlen = length
    if made.maxlen is not None:
        made.items = made.items[max(0, len(made.items) - made.maxlen) :]
    return made


def _make_dict(cls: type) -> Any:
    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        made = DictValue({}, cls)
        made.call_method(tx, "update", args, kwargs)
        return made

    return make


for _cls in (dict, collections.OrderedDict):
    handles(_cls)(_make_dict(_cls))


@handles(int)
def make_int(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not args:
        return Const(0)
    value = _number_in_tensor(tx, args[0])
    if value.expr is not None and len(args) == 1:
        return value
    if isinstance(value, DataCondition) and len(args) == 1 and value.tensor is not None:
        return number_of(tx, value)
    made = data_floats.integer(tx, "int", value) if len(args) == 1 else None
    if made is not None:
        return made
    if isinstance(value, TensorValue):
        tx.tensors.check_special(value, "__int__")
        answer = tx.tensors.by_override(int, [value]) if len(args) == 1 else None
        if answer is not None:
            return _of_class(answer, int)
        if len(args) == 1:
            _refuse_several(tx, value, "__int__")
            made = data_floats.integer_in(tx, value)
            if made is not None:
                return made
        args = [tx.tensors.number(value, "int() of a tensor reads its content"), *args[1:]]
        if args[0].expr is not None and len(args) == 1:
            return args[0]
    if isinstance(value, ObjectValue):
        _refuse_text(value)
        for name in ("__int__", "__index__"):
            if tx.attributes.has_special(value, name):
                return _number_of(tx, value, name, int)
        if tx.attributes.has_special(value, "__trunc__"):
            raise GraphBreak(NOT_IN_PYTHON, f"int() of {value.describe()}, which has a __trunc__")
        what = "int() argument must be a string, a bytes-like object or a real number, not"
        raise tx.raises(TypeError, f"{what} {value.cls.__name__!r}")
    constants = [tx.constant(arg) for arg in args]
    named = {name: tx.constant(arg) for name, arg in kwargs.items()}
    return Const(tx.fold(lambda: int(*constants, **named)))


def _refuse_several(tx: Context, tensor: TensorValue, name: str) -> None:
    """What torch raises where a number is made of a known tensor that has no or several elements, in the words of this
    method."""
    if isinstance(tensor.content, torch.Tensor) and tensor.content.numel() != 1:
        tensor.call_method(tx, name, [], {})


def _number_of(tx: Context, value: ObjectValue, name: str, kind: type) -> Value:
    """What a special method gives, which has to be a number of that kind."""
    made = tx.calls.special(value, name, [])
    found = made.python_type()
    if not issubclass(found, kind):
        owner = f"{value.cls.__name__}." if kind is float else ""
        raise tx.raises(TypeError, f"{owner}{name} returned non-{kind.__name__} (type {found.__name__})")
    if found is not kind:
        raise GraphBreak(NOT_IN_PYTHON, f"{name} gives a {found.__name__}")
    return made


def _refuse_text(value: ObjectValue) -> None:
    """A number is read out of the content of an object whose class is made from ``str``, or that lends its memory."""
    if issubclass(value.cls, str) or has_buffer(value.cls):
        raise GraphBreak(NOT_IN_PYTHON, f"a number is made of {value.describe()}")


@handles(float)
def make_float(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not args:
        return Const(0.0)
    args = [_number_in_tensor(tx, args[0])]
    if isinstance(args[0], TensorValue):
        tx.tensors.check_special(args[0], "__float__", "item")
        answer = tx.tensors.by_override(float, [args[0]])
        if answer is not None:
            return _of_class(answer, float)
        _refuse_several(tx, args[0], "__float__")
        args = [args[0].call_method(tx, "item", [], {})]
        if args[0].is_open:
            return args[0]
    if isinstance(args[0], ObjectValue):
        _refuse_text(args[0])
        if not tx.attributes.has_special(args[0], "__float__") and tx.attributes.has_special(
            args[0], "__index__"
        ):
            return Const(float(tx.index(args[0])))
        return _number_of(tx, args[0], "__float__", float)
    found = floats.of_integer(tx, args[0])
    if found is not None:
        return found
    number = tx.index(args[0])
    return Const(tx.fold(lambda: float(number)))


def _of_class(answer: Value, cls: type) -> Value:
    """What a tensor's class answers, which Python checks."""
    if answer.python_type() is not cls:
        raise GraphBreak(NOT_IN_PYTHON, f"{cls.__name__}() of a tensor whose class gives another object")
    return answer


def _number_in_tensor(tx: Context, value: Value) -> Value:
    """A number of numpy as the tensor that holds it, of which Python makes the same float or integer."""
    found = None if tx.tensors.modes else numpy_numbers.tensor_of(tx, value)
    return value if found is None else found


def _make_plain(cls: type) -> Any:
    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        try:
            plain = [tx.calls.python_object(arg) for arg in args]
            named = {name: tx.calls.python_object(arg) for name, arg in kwargs.items()}
        except NotConstant:
            raise GraphBreak(
                NOT_IN_PYTHON, f"{cls.__name__}() of a value that is not known while tracing"
            ) from None
        if any(is_heap_type(type(given)) for given in (*plain, *named.values())):
            raise GraphBreak(NOT_IN_PYTHON, f"{cls.__name__}() of what a class of the program may answer for")
        return Const(tx.fold(lambda: cls(*plain, **named)))

    return make


handles(complex)(_make_plain(complex))
handles(bytes)(_make_plain(bytes))


@handles(bytearray, memoryview)
def make_memory(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(NOT_IN_PYTHON, "a bytearray or memory object is made")


@handles(bool)
def make_bool(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0] if args else FALSE
    if isinstance(value, DataCondition):
        return value
    if isinstance(value, TensorValue) and value.content is None:
        answer = tx.tensors.by_override(bool, [value])
        known = truth_of(tx, value) if answer is None else boolean(truth_from(tx, answer))
        if known is not None:
            return known
    return boolean(tx.truth(value))


@handles(type)
def type_of(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 3 and not kwargs:
        name, bases, entries = map(tx.force, args)
        if type(bases) is TupleValue and bases.cls is tuple and isinstance(entries, DictValue):
            content = {tx.constant(key): value for key, value in entries.all_entries(tx).values()}
            return new_type(tx, tx.constant(name), [tx.force(base) for base in bases.items], content)
    if len(args) != 1 or kwargs:
        raise GraphBreak(CLASS_MADE, "a class is made")
    value = args[0]
    if isinstance(value, ObjectValue):
        tx.attributes.guard_type(value)
        if value.source is not None:
            from fx_interface.source import TypeSource

            return Const(value.cls, TypeSource(value.source))
    cls = value.python_type()
    if runs_program(type(cls)):
        raise value.unsupported("asking for the class")
    return Const(cls)


@handles(slice)
def make_slice_(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    bounds = [NONE, args[0], NONE] if len(args) == 1 else [*args, NONE][:3]
    return SliceValue((bounds[0], bounds[1], bounds[2]))


@handles(range)
def make_range(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    bounds = [Const(0), args[0], Const(1)] if len(args) == 1 else [*args, Const(1)][:3]
    numbers = [bound if bound.expr is not None else Const(int(tx.integer(bound))) for bound in bounds]
    known = [number.known_as(int) for number in numbers]
    if None not in known:
        return Const(tx.fold(lambda: range(*known)))  # type: ignore[arg-type]
    if known[2] == 0:
        raise tx.raises(ValueError, "range() arg 3 must not be zero")
    start, stop, step = numbers
    return SymRange((start, stop, step))


@handles(enumerate)
def make_enumerate(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    start = args[1] if len(args) > 1 else kwargs.get("start", Const(0))
    return EnumerateIterator(args[0].iterate(tx), tx.integer(start))


@handles(zip)
def make_zip(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    strict = "strict" in kwargs and tx.truth(kwargs["strict"])
    return ZipIterator([arg.iterate(tx) for arg in args], strict)


@handles(map)
def make_map(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return MapIterator(args[0], [arg.iterate(tx) for arg in args[1:]])


@handles(filter)
def make_filter(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return MapIterator(args[0], [args[1].iterate(tx)], keeps=True)


@handles(super)
def make_super(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 1:
        raise GraphBreak(DESCRIPTOR, "an unbound super object is made")
    if args:
        return _super(tx, tx.constant(args[0]), args[1])
    frame = tx.frames[-1]
    code = tx.resumes.original(frame.code)
    if not code.co_argcount:
        raise tx.raises(RuntimeError, "super(): no arguments")
    first, is_rest = code.co_varnames[0], code is not frame.code
    receiver = frame.variables.get(first)
    if isinstance(receiver, CellValue):
        receiver = receiver.content
    if receiver is None and (
        not is_rest or "__class__" in code.co_freevars
    ):  # else it may not have been handed over
        raise tx.raises(RuntimeError, "super(): arg[0] deleted")
    if receiver is None or "__class__" not in code.co_freevars:
        raise tx.raises(RuntimeError, "super(): __class__ cell not found")
    cell = frame.variables["__class__"]
    if not isinstance(cell, CellValue) or cell.content is None:
        raise tx.raises(RuntimeError, "super(): empty __class__ cell")
    return _super(tx, tx.constant(tx.force(cell.content)), tx.force(receiver))


def _super(tx: Context, cls: Any, receiver: Value) -> Value:
    if not isinstance(cls, type):
        raise tx.raises(TypeError, f"super() argument 1 must be a type, not {type(cls).__name__}")
    kind = receiver.python_type()
    is_class = receiver.known_class() is not None
    if cls not in kind.__mro__ and not (is_class and cls in receiver.as_constant().__mro__):
        raise GraphBreak(DESCRIPTOR, f"super() of {cls.__qualname__} for {receiver.describe()}")
    return SuperValue(cls, receiver)


@handles(object)
def make_object(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return ObjectValue(object)


def _descriptor(kind: type, most: int) -> Handler:
    def make(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if kwargs or not (kind is property or args) or len(args) > most:
            raise GraphBreak(NOT_IN_PYTHON, f"{kind.__name__}() with such arguments")
        return DescriptorValue(kind, list(args))

    return make


for _kind, _most in ((property, 3), (staticmethod, 1), (classmethod, 1)):
    handles(_kind)(_descriptor(_kind, _most))


@handles(functools.partial)
def make_partial(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function = args[0]
    if not tx.truth(is_callable(tx, [function], {})):
        raise tx.raises(TypeError, "the first argument must be callable")
    held = held_partial(tx, tx.force(function))
    if held is None:
        return PartialValue.of(function, args[1:], kwargs)
    return PartialValue.of(held.function, [*held.args, *args[1:]], {**held.kwargs(tx), **kwargs})


@handles(types.MethodType)
def make_method(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not tx.truth(is_callable(tx, [args[0]], {})):
        raise tx.raises(TypeError, "first argument must be callable")
    if is_none(args[1]):
        raise tx.raises(TypeError, "instance must not be None")
    return MethodValue(args[0], args[1])


@handles(types.SimpleNamespace)
def make_namespace(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args:
        raise GraphBreak(NOT_IN_PYTHON, "SimpleNamespace is called with a positional argument")
    made = ObjectValue(types.SimpleNamespace)
    made.attrs.update(kwargs)
    return made
