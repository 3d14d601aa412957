"""Builtin functions: ``isinstance``, ``getattr``, ``len`` and so on."""

from __future__ import annotations

import builtins
from typing import Any

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import (
    CONTENT_DECIDES,
    NAMESPACE_ACCESS,
    NOT_IN_PYTHON,
    OBJECT_ADDRESS,
    OUTSIDE_WORLD,
    UNKNOWN_HASH,
)
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.polyfills.python.sorting import sorted_by
from dynamo_capture.semantics.calls.builtins.slots import attribute_name, refuse
from dynamo_capture.semantics.regions.steered import needless_items
from dynamo_capture.semantics.registry import handles, pure
from dynamo_capture.semantics.tensors.content import conditions, data_floats, late_floats
from dynamo_capture.values import (
    NONE,
    CallIterator,
    Const,
    DictValue,
    HashedKey,
    IteratorStop,
    IteratorValue,
    ListValue,
    MapIterator,
    ObjectValue,
    SequenceValue,
    TensorValue,
    TupleValue,
    Value,
    boolean,
    is_none,
    is_opaque,
    size_value,
    tensors_of,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.objects.instance_dict import InstanceDictValue
from dynamo_capture.values.operator_methods import check_metaclass
from dynamo_capture.values.special_methods import rely_on
from dynamo_capture.values.special_results import size_from
from dynamo_capture.values.tensors.array import ArrayValue
from fx_interface.source import DerivedSource

pure(
    builtins.ord,
    builtins.chr,
    builtins.hex,
    builtins.oct,
    builtins.bin,
    builtins.ascii,
    int.from_bytes,
    float.fromhex,
)


@handles(len)
def length(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0]
    if isinstance(value, TensorValue) and value.meta.spec.sizes:
        rely_on(tx, "__len__")
        tx.tensors.check_special(value, "__len__")
        answer = tx.tensors.by_override(len, [value])
        if answer is not None:
            return size_from(tx, answer)
        return size_value(value.meta.spec.sizes[0])
    if isinstance(value, ObjectValue):
        return size_from(tx, tx.calls.special(value, "__len__", []))
    return Const(value.length(tx))


@handles(callable)
def is_callable(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(args[0].is_callable(tx))


@handles(getattr)
def get_attribute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    name = attribute_name(tx, args[1])
    if len(args) == 2:
        return tx.attribute(args[0], name)
    try:
        return args[0].get_attr(tx, name)
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), AttributeError):
            return args[2]
        raise


@handles(hasattr)
def has_attribute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(tx.attributes.has(args[0], attribute_name(tx, args[1])))


@handles(setattr)
def set_attribute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    args[0].set_attr(tx, attribute_name(tx, args[1]), args[2])
    return NONE


@handles(delattr)
def delete_attribute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    args[0].del_attr(tx, attribute_name(tx, args[1]))
    return NONE


@handles(vars)
def variables(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if args:
        try:
            return args[0].get_attr(tx, "__dict__")
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), AttributeError):
                raise tx.raises(TypeError, "vars() argument must have __dict__ attribute") from None
            raise
    raise GraphBreak(NAMESPACE_ACCESS, "vars() without an argument")


@handles(id)
def identity(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0]
    if isinstance(value, Const) and tx.new_class(value.value) is None:
        return Const(id(value.value))
    if isinstance(value, ObjectValue) and value.real is not None and value.source is not None:
        tx.guards.is_object(value.source, value.real)
        return Const(id(value.real))
    if isinstance(value, TensorValue) and value.real is not None and isinstance(value.source, DerivedSource):
        tx.guards.is_object(value.source, value.real)  # one that an object of the program keeps
        return Const(id(value.real))
    raise GraphBreak(OBJECT_ADDRESS, f"the id of {value.describe()}")


@handles(hash)
def hash_of(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0]
    key = tx.hash_key(value)
    if _holds_identity(key) or tx.new_class(key) is not None:
        raise GraphBreak(UNKNOWN_HASH, f"the hash of {value.describe()}")
    return Const(tx.fold(lambda: hash(key)))


def _holds_identity(key: Any) -> bool:
    """Whether the hash follows from where an object is in memory."""
    if isinstance(key, (tuple, frozenset)):
        return any(map(_holds_identity, key))
    return is_opaque(key) and not isinstance(key, HashedKey)


@handles(iter)
def iterator(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 1:
        return args[0].iterate(tx)
    if not args[0].is_callable(tx):
        raise GraphBreak(NOT_IN_PYTHON, f"iter() with {args[0].describe()}, which cannot be called")
    return CallIterator(args[0], args[1])


@handles(next)
def next_item(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0]
    try:
        if isinstance(value, IteratorValue):
            tx.effects.advances(value)
            return value.next(tx)
        if not has_member(value.python_type(), "__next__"):
            raise tx.raises(TypeError, f"{value.class_name(tx)!r} object is not an iterator")
        if not isinstance(value, ObjectValue):
            raise value.unsupported("asking for the next item")
        return tx.calls.special(value, "__next__", [])
    except IteratorStop as stop:
        if len(args) > 1:
            return args[1]
        raise stop.raised(tx) from None
    except UserRaise as raised:
        if len(args) > 1 and issubclass(raised.value.python_type(), StopIteration):
            return args[1]
        raise


@handles(abs)
def absolute(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = args[0]
    if isinstance(value, TensorValue):
        rely_on(tx, "__abs__")
        tx.tensors.check_special(value, "__abs__")
        return tx.tensors.call_method(value, "abs", [], {})
    if isinstance(value, ObjectValue):
        return tx.calls.special(value, "__abs__", [])
    if isinstance(value, ArrayValue):
        return tx.arrays.call_function(abs, [value], {})
    made = data_floats.absolute(tx, value)
    if made is not None:
        return made
    number = tx.index(value)
    return Const(tx.fold(lambda: abs(number)))


_DIVIDED = (*numpy_types.ARRAYS, *numpy_types.SCALARS)
"""Classes that come with a ``divmod`` of their own."""


@handles(divmod)
def quotient_and_rest(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    one, other = args
    if any(isinstance(arg, ObjectValue) for arg in args):
        raise GraphBreak(NOT_IN_PYTHON, "divmod() of an object of the program")
    if isinstance(one, Const) and isinstance(other, Const) and not (one.is_open or other.is_open):
        check_metaclass(tx, one.value, "__divmod__")
        check_metaclass(tx, other.value, "__rdivmod__")
        known = tx.fold(lambda: divmod(one.value, other.value))
        return tx.calls.from_python(known)
    for arg in args:
        tx.tensors.check_special(tx.force(arg), "__divmod__", "__rdivmod__")
    kinds = [arg.python_type() for arg in args]
    divided = any(issubclass(kind, _DIVIDED) for kind in kinds)
    if not (divided or all(kind in (int, float, bool) for kind in kinds)):
        names = " and ".join(repr(message_name(kind)) for kind in kinds)
        raise tx.raises(TypeError, f"unsupported operand type(s) for divmod(): {names}")
    return None


@handles(round)
def rounded(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if isinstance(args[0], TensorValue):
        tx.tensors.check_special(args[0], "__round__")
        raise refuse(tx, args[0].python_type(), "__round__")
    if args[0].expr is not None and len(args) == 1:
        return args[0]
    if isinstance(args[0], ObjectValue):
        return tx.calls.special(args[0], "__round__", args[1:])
    late = late_floats.rounded(tx, args)
    if late is None and len(args) == 1 and not kwargs:
        late = data_floats.integer(tx, "round", args[0])
    if late is not None:
        return late
    constants = [tx.index(arg) for arg in args]
    return Const(tx.fold(lambda: round(*constants)))


@handles(pow)
def power(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) == 2:
        return tx.operators.binary("**", args[0], args[1])
    constants = [tx.index(arg) for arg in args]
    return Const(tx.fold(lambda: pow(*constants)))


@handles(sum)
def total(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    result = args[1] if len(args) > 1 else kwargs.get("start", Const(0))
    if result.python_type() in (str, bytes, bytearray):
        raise GraphBreak(NOT_IN_PYTHON, f"sum() starts with {result.describe()}")
    if isinstance(args[0], MapIterator) or isinstance(result, ObjectValue):
        return None  # a graph may end in what these call
    for item in args[0].one_by_one(tx):
        result = tx.operators.binary("+", result, item)
    return result


def _looks_for(truth: bool) -> Any:
    """``all`` looks for a false item, ``any`` for a true one."""

    def look(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        known = args[0].items if isinstance(args[0], (ListValue, TupleValue)) else ()
        if any(isinstance(item, (DataCondition, TensorValue)) for item in known):
            of_data = conditions.joined(tx, "|" if truth else "&", known)
            if of_data is not None:
                return of_data
        items = args[0].iterate(tx)
        while True:
            try:
                item = items.next(tx)
            except IteratorStop:
                return boolean(not truth)
            if isinstance(item, (DataCondition, TensorValue)):
                of_all = needless_items.answer(tx, items, item, "|" if truth else "&")
                if of_all is not None:
                    return of_all
            if tx.truth(item) is truth:
                return boolean(truth)

    return look


handles(all)(_looks_for(False))
handles(any)(_looks_for(True))


def _flag(tx: Context, value: Value) -> bool:
    """``reverse=value``: before CPython 3.13 an integer is asked for."""
    if isinstance(value, Const):
        tx.fold(lambda: sorted((), reverse=value.value))
    return tx.truth(value)


@handles(sorted)
def sorted_list(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    items = args[0].items_for_list(tx)
    key = kwargs.get("key", NONE)
    ranks = items if is_none(key) else [key.call(tx, [item], {}) for item in items]
    reverse = "reverse" in kwargs and _flag(tx, kwargs["reverse"])
    try:
        if any(rank.expr is not None for rank in ranks):
            raise NotConstant("sizes are compared, not fixed")
        plain = [tx.calls.python_object(rank) for rank in ranks]
    except NotConstant:
        if tensors_of(ranks) and len(ranks) > 1:
            raise GraphBreak(CONTENT_DECIDES, "tensors are sorted by their content") from None
        given = [ListValue(items), ListValue(ranks), boolean(reverse)]
        return tx.inliner.call_function(Const(sorted_by), given, {})
    order = tx.fold(lambda: sorted(range(len(items)), key=plain.__getitem__, reverse=reverse))
    return ListValue([items[index] for index in order])


@handles(globals)
def global_names(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(NAMESPACE_ACCESS, "globals()")


@handles(locals)
def local_names(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(NAMESPACE_ACCESS, "locals()")


@handles(dir)
def names_of(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(*((NOT_IN_PYTHON, "dir() of an object") if args else (NAMESPACE_ACCESS, "dir()")))


@handles(exec, eval)
def runs_code(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(NAMESPACE_ACCESS, "exec() or eval()")


@handles(print)
def print_(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(OUTSIDE_WORLD, "print() writes to the terminal")


@handles(input, open, compile, breakpoint)
def interacts(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    raise GraphBreak(OUTSIDE_WORLD, "a builtin that talks to the outside world")


__all__ = ["DictValue", "InstanceDictValue", "SequenceValue"]
