"""Unary, binary and comparison operators on symbolic values."""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from fx_interface.symbols import floordiv, mod

from dynamo_capture.graph_breaks import GraphBreak
from dynamo_capture.values.base import MISSING, Value, class_attribute
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import DictValue, SequenceValue, SetValue
from dynamo_capture.values.functions import BoundMethod, ClosureValue
from dynamo_capture.values.objects import NewObject, ObjectValue
from dynamo_capture.values.tensors import SymIntValue, TensorValue

if TYPE_CHECKING:
    from dynamo_capture.tracer import Tracer

BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "@": operator.matmul,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
INPLACE: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.iadd,
    "-": operator.isub,
    "*": operator.imul,
    "/": operator.itruediv,
    "//": operator.ifloordiv,
    "%": operator.imod,
    "**": operator.ipow,
    "@": operator.imatmul,
    "&": operator.iand,
    "|": operator.ior,
    "^": operator.ixor,
    "<<": operator.ilshift,
    ">>": operator.irshift,
}
SPECIAL = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_COMPARE_NAMES = {"<": "lt", "<=": "le", "==": "eq", "!=": "ne", ">": "gt", ">=": "ge"}
_MIRRORED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}
_INTEGER: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": floordiv,
    "%": mod,
}


def binary(tracer: Tracer, op: str, lhs: Value, rhs: Value) -> Value:
    """``lhs op rhs``; ``op`` ends in ``=`` for an augmented assignment."""
    inplace = op.endswith("=")
    symbol = op[:-1] if inplace else op
    if lhs.constant and rhs.constant:
        return tracer.fold(BINARY[symbol], [lhs, rhs])
    if isinstance(lhs, TensorValue) or isinstance(rhs, TensorValue):
        table = INPLACE if inplace and isinstance(lhs, TensorValue) else BINARY
        if inplace and isinstance(lhs, TensorValue):
            return tracer.tensor_call(f"__i{SPECIAL[symbol]}__" if symbol != "/" else "__itruediv__", [lhs, rhs], {})
        return tracer.tensor_call(table[symbol], [lhs, rhs], {})
    if isinstance(lhs, SymIntValue) or isinstance(rhs, SymIntValue):
        return _symbolic(tracer, symbol, lhs, rhs)
    if isinstance(lhs, SequenceValue):
        return _sequence(tracer, symbol, lhs, rhs, inplace)
    if isinstance(rhs, SequenceValue) and symbol == "*" and lhs.constant:
        return SequenceValue(rhs.items * tracer.int_of(lhs), rhs.kind)
    if isinstance(lhs, DictValue) and isinstance(rhs, DictValue) and symbol == "|":
        if inplace:
            lhs.touch(tracer)
            lhs.items.update(rhs.items)
            return lhs
        return DictValue({**dict(lhs.items.items()), **dict(rhs.items.items())}, lhs.kind)
    if isinstance(lhs, SetValue) and isinstance(rhs, (SetValue, DictValue)) and symbol in _SETS:
        return _SETS[symbol](tracer, lhs, rhs, inplace)
    if lhs.constant and symbol == "%" and isinstance(lhs.as_python(), str):
        return tracer.fold(operator.mod, [lhs, ConstantValue(python_of(tracer, rhs))])
    return _by_protocol(tracer, symbol, lhs, rhs, inplace)


def python_of(tracer: Tracer, value: Value) -> Any:
    """A Python object for a value made of constants (for formatting and the like)."""
    match value:
        case SequenceValue():
            items = [python_of(tracer, item) for item in value.items]
            if value.kind in (list, tuple, torch.Size) or hasattr(value.kind, "n_sequence_fields"):
                return value.kind(items)
            return tuple.__new__(value.kind, items)
        case DictValue():
            return value.kind({key: python_of(tracer, item) for key, item in value.items.items()})
        case SetValue():
            return value.kind(python_of(tracer, item) for item in value.items.values())
        case SymIntValue():
            return tracer.int_of(value)
        case BoundMethod() if isinstance(value.function, ObjectValue):
            return types.MethodType(value.function.as_python(), value.receiver.as_python())
        case ObjectValue():
            return tracer.rely_on_object(value)
    return value.as_python()


def _symbolic(tracer: Tracer, symbol: str, lhs: Value, rhs: Value) -> Value:
    def expression(value: Value) -> Any:
        if isinstance(value, SymIntValue):
            return value.expr
        found = value.as_python()
        return found if type(found) in (int, bool) else None

    left, right = expression(lhs), expression(rhs)
    if left is not None and right is not None and symbol in _INTEGER:
        if symbol in ("//", "%") and isinstance(right, int) and right == 0:
            raise tracer.raise_type(ZeroDivisionError, "integer division or modulo by zero")
        return tracer.sym_int(_INTEGER[symbol](left, right))
    if isinstance(lhs, SequenceValue) and symbol == "*":
        return SequenceValue(lhs.items * tracer.int_of(rhs), lhs.kind)
    if isinstance(rhs, SequenceValue) and symbol == "*":
        return SequenceValue(rhs.items * tracer.int_of(lhs), rhs.kind)
    return tracer.fold(BINARY[symbol], [ConstantValue(tracer.int_of(lhs)), ConstantValue(tracer.int_of(rhs))])


def _sequence(tracer: Tracer, symbol: str, lhs: SequenceValue, rhs: Value, inplace: bool) -> Value:
    if symbol == "*" and rhs.constant:
        return SequenceValue(lhs.items * tracer.int_of(rhs), lhs.kind)
    if symbol == "+":
        if inplace and lhs.kind is list:
            added = list(rhs.iterate(tracer))
            lhs.touch(tracer)
            lhs.items.extend(added)
            return lhs
        if isinstance(rhs, SequenceValue):
            kind = list if lhs.kind is list else tuple
            if (rhs.kind is list) != (kind is list):
                raise tracer.raise_type(
                    TypeError, f'can only concatenate {kind.__name__} (not "{rhs.kind.__name__}") to {kind.__name__}'
                )
            return SequenceValue(lhs.items + rhs.items, torch.Size if lhs.kind is torch.Size else kind)
    return _by_protocol(tracer, symbol, lhs, rhs, inplace)


def _set_operation(function: Callable[[dict[Any, Value], dict[Any, Value]], dict[Any, Value]]) -> Any:
    def run(tracer: Tracer, lhs: SetValue, rhs: Any, inplace: bool) -> Value:
        result = function(lhs.items, dict(rhs.items.items()))
        if inplace and lhs.kind is set:
            lhs.touch(tracer)
            lhs.items = result
            return lhs
        return SetValue(result, lhs.kind)

    return run


_SETS = {
    "|": _set_operation(lambda a, b: {**a, **b}),
    "&": _set_operation(lambda a, b: {k: v for k, v in a.items() if k in b}),
    "-": _set_operation(lambda a, b: {k: v for k, v in a.items() if k not in b}),
    "^": _set_operation(
        lambda a, b: {**{k: v for k, v in a.items() if k not in b}, **{k: v for k, v in b.items() if k not in a}}
    ),
}


def _by_protocol(tracer: Tracer, symbol: str, lhs: Value, rhs: Value, inplace: bool) -> Value:
    names = [f"__i{SPECIAL[symbol]}__"] if inplace else []
    names.append(f"__{SPECIAL[symbol]}__")
    for receiver, name, other in [
        *((lhs, name, rhs) for name in names),
        (rhs, f"__r{SPECIAL[symbol]}__", lhs),
    ]:
        if class_attribute(receiver.python_type(), name) is not MISSING and not receiver.constant:
            result = tracer.call_special(receiver, name, [other])
            if not (result.constant and result.as_python() is NotImplemented):
                return result
    left, right = lhs.python_type().__name__, rhs.python_type().__name__
    raise tracer.raise_type(TypeError, f"unsupported operand type(s) for {symbol}: '{left}' and '{right}'")


def unary(tracer: Tracer, function: Callable[[Any], Any], name: str, value: Value) -> Value:
    """``-x``, ``+x`` or ``~x``."""
    if value.constant:
        return tracer.fold(function, [value])
    if isinstance(value, TensorValue):
        return tracer.tensor_call(function, [value], {})
    if isinstance(value, SymIntValue) and function is operator.neg:
        return tracer.sym_int(-value.expr)
    return tracer.call_special(value, name, [])


def compare(tracer: Tracer, op: str, lhs: Value, rhs: Value) -> Value:
    """``lhs op rhs`` for the six comparisons."""
    if lhs.constant and rhs.constant:
        return tracer.fold(COMPARE[op], [lhs, rhs])
    if isinstance(lhs, TensorValue) or isinstance(rhs, TensorValue):
        other = rhs if isinstance(lhs, TensorValue) else lhs
        if other.constant and other.as_python() is None:
            return ConstantValue(op == "!=")
        return tracer.tensor_call(COMPARE[op], [lhs, rhs], {})
    if isinstance(lhs, SymIntValue) or isinstance(rhs, SymIntValue):
        return _compare_sizes(tracer, op, lhs, rhs)
    if isinstance(lhs, SequenceValue) and isinstance(rhs, SequenceValue):
        return _compare_sequences(tracer, op, lhs, rhs)
    if isinstance(lhs, (DictValue, SetValue)) and isinstance(rhs, (DictValue, SetValue)):
        return _compare_mappings(tracer, op, lhs, rhs)
    return _compare_by_protocol(tracer, op, lhs, rhs)


def _compare_sizes(tracer: Tracer, op: str, lhs: Value, rhs: Value) -> Value:
    def expression(value: Value) -> Any:
        if isinstance(value, SymIntValue):
            return value.expr
        return value.as_python() if value.constant else None

    left, right = expression(lhs), expression(rhs)
    if any(type(v) not in (int, bool) and not hasattr(v, "terms") for v in (left, right)):
        if op in ("==", "!=") and not any(isinstance(v, float) for v in (left, right)):
            return ConstantValue(op == "!=")
        return tracer.fold(COMPARE[op], [ConstantValue(tracer.int_of(v)) for v in (lhs, rhs)])
    if op in (">", ">="):
        return ConstantValue(tracer.decide("<" if op == ">" else "<=", right, left))
    return ConstantValue(tracer.decide(op, left, right))


def _compare_sequences(tracer: Tracer, op: str, lhs: SequenceValue, rhs: SequenceValue) -> Value:
    comparable = (lhs.kind is list) == (rhs.kind is list)
    if op in ("==", "!="):
        equal = comparable and len(lhs.items) == len(rhs.items)
        if equal:
            equal = all(
                one is two or compare(tracer, "==", one, two).truth(tracer)
                for one, two in zip(lhs.items, rhs.items, strict=True)
            )
        return ConstantValue(equal == (op == "=="))
    for one, two in zip(lhs.items, rhs.items, strict=False):
        if not (one is two or compare(tracer, "==", one, two).truth(tracer)):
            return compare(tracer, op, one, two)
    return tracer.fold(COMPARE[op], [ConstantValue(len(lhs.items)), ConstantValue(len(rhs.items))])


def _compare_mappings(tracer: Tracer, op: str, lhs: Any, rhs: Any) -> Value:
    if isinstance(lhs, SetValue) and isinstance(rhs, SetValue):
        return tracer.fold(COMPARE[op], [ConstantValue(set(lhs.items)), ConstantValue(set(rhs.items))])
    if op not in ("==", "!="):
        raise tracer.raise_type(TypeError, f"'{op}' not supported between instances of 'dict' and 'dict'")
    equal = type(lhs) is type(rhs) and set(lhs.items) == set(rhs.items)
    if equal:
        equal = all(compare(tracer, "==", lhs.items[k], rhs.items[k]).truth(tracer) for k in lhs.items)
    return ConstantValue(equal == (op == "=="))


def _compare_by_protocol(tracer: Tracer, op: str, lhs: Value, rhs: Value) -> Value:
    for receiver, name, other in ((lhs, op, rhs), (rhs, _MIRRORED[op], lhs)):
        if receiver.constant or isinstance(receiver, (SequenceValue, DictValue, SetValue)):
            continue
        found = class_attribute(receiver.python_type(), f"__{_COMPARE_NAMES[name]}__")
        own = found is not MISSING and found is not getattr(object, f"__{_COMPARE_NAMES[name]}__")
        if own and hasattr(found, "__code__"):
            result = tracer.call_special(receiver, f"__{_COMPARE_NAMES[name]}__", [other])
            if not (result.constant and result.as_python() is NotImplemented):
                return result
        elif own and isinstance(lhs, ObjectValue) and isinstance(rhs, (ObjectValue, ConstantValue)):
            return tracer.fold(COMPARE[op], [lhs, rhs])
    if op in ("==", "!="):
        return ConstantValue(identical(tracer, lhs, rhs) == (op == "=="))
    raise tracer.raise_type(
        TypeError,
        f"'{op}' not supported between instances of '{lhs.python_type().__name__}' and '{rhs.python_type().__name__}'",
    )


def identical(tracer: Tracer, lhs: Value, rhs: Value) -> bool:
    """``lhs is rhs``; where that rests on what the arguments are, a guard notes it."""
    if lhs is rhs:
        return True
    tracer.rely_on_distinct(lhs, rhs)
    if lhs.constant and rhs.constant:
        one, two = lhs.as_python(), rhs.as_python()
        small = (int, float, str, bytes, bool)
        return one is two or (type(one) is type(two) and type(one) in small and one == two)
    if isinstance(lhs, ObjectValue) and isinstance(rhs, ObjectValue):
        return lhs.obj is rhs.obj
    if isinstance(lhs, BoundMethod | ClosureValue | NewObject | TensorValue | SymIntValue):
        return False
    if lhs.constant != rhs.constant or type(lhs) is not type(rhs):
        return False
    if isinstance(lhs, (SequenceValue, DictValue, SetValue)):
        return False
    raise GraphBreak("value", f"whether {lhs.describe()} is {rhs.describe()}")
