"""Operators of which an operand is an object of the program's classes: who is asked, and in which order.

Python asks both operands as numbers first, and as sequences only where these decline. Which of the two a class is for
``+`` and ``*`` depends on which of the methods it defines: one that overrides ``list.__rmul__`` is a number then.
"""

from __future__ import annotations

import operator
import types

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.class_members import has_member, is_subtype
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.type_names import (
    answers_as_number,
    answers_as_sequence,
    has_sequence_slots,
    message_name,
)
from dynamo_capture.runtime.replacement_calls import builtin_base
from dynamo_capture.values import Const, DictValue, ObjectValue, SequenceValue, SetValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.opaque import OpaqueValue
from dynamo_capture.values.operator_methods import BINARY, BinaryOperator

_Attempt = tuple[Value, str, Value]
"""Who is asked, by which method, and about which operand."""


def by_methods(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    """What the operands' special methods answer, in Python's order; None where all give NotImplemented."""
    plain = BINARY[row.plain] if row.plain else row
    for operand in (lhs, rhs):
        if isinstance(operand, ObjectValue):
            tx.attributes.guard_type(operand)
            for name in (plain.left, plain.right, row.left):  # on which its class's slots depend
                tx.attributes.in_class(operand.python_type(), str(name))
    for receiver, name, other in _as_numbers(tx, row, plain, lhs, rhs):
        if isinstance(receiver, ObjectValue) and tx.attributes.has_special(receiver, name):
            found = tx.calls.special(receiver, name, [other])
            if not (isinstance(found, Const) and found.value is NotImplemented):
                return found
        elif isinstance(receiver, TensorValue):
            return tx.tensors.call_function(plain.function, [lhs, rhs], {})
        elif isinstance(receiver, OpaqueValue) and has_member(receiver.python_type(), name):
            raise GraphBreak(
                OBJECT_OPERATION, f"{receiver.describe()}.{name} is asked about {other.describe()}"
            )
    return _as_sequence(tx, row, plain, lhs, rhs)


def content_of(value: Value) -> Value | None:
    """What an object of a class made from a container holds."""
    kinds = (SequenceValue, DictValue, SetValue)
    return value.base if isinstance(value, ObjectValue) and isinstance(value.base, kinds) else None


def _as_numbers(
    tx: Context, row: BinaryOperator, plain: BinaryOperator, lhs: Value, rhs: Value
) -> list[_Attempt]:
    attempts: list[_Attempt] = []
    one, other_one = lhs.python_type(), rhs.python_type()
    if answers_as_number(one, plain.function):
        attempts.append((lhs, plain.left, rhs))
    right = plain.right
    if right is not None and one is not other_one:
        in_class = tx.attributes.in_class
        own = in_class(other_one, right)
        if plain.function in (operator.add, operator.mul):
            is_asked = answers_as_number(other_one, plain.function)
        else:  # a container's own methods in C come after all others
            is_asked = content_of(rhs) is None or not isinstance(own, types.WrapperDescriptorType)
        if is_asked:
            if _may_compute(lhs, rhs, plain):
                raise GraphBreak(
                    OBJECT_OPERATION, f"{lhs.describe()}.{plain.left} is asked about {rhs.describe()}"
                )
            goes_first = is_subtype(other_one, one) and own is not in_class(one, right)
            attempts.insert(0 if goes_first else len(attempts), (rhs, right, lhs))
    if row.plain and answers_as_number(one, row.function):
        attempts.insert(0, (lhs, row.left, rhs))
    return attempts


def _may_compute(lhs: Value, rhs: Value, plain: BinaryOperator) -> bool:
    """Whether an operand of one of Python's classes may take the other, by the class that this is made from, before it
    is asked: ``1.5 - Count(2)``, ``{1} & Frozen([1])``. An integer takes integers only, which go first."""
    one, other_one = lhs.python_type(), rhs.python_type()
    if not isinstance(rhs, ObjectValue) or isinstance(lhs, (ObjectValue, TensorValue, OpaqueValue)):
        return False
    if one is int or is_subtype(other_one, one) or builtin_base(other_one) is object:
        return False
    return answers_as_number(one, plain.function) and has_member(one, plain.left)


def _as_sequence(
    tx: Context, row: BinaryOperator, plain: BinaryOperator, lhs: Value, rhs: Value
) -> Value | None:
    """Joined or repeated, where the sequence is an object of the program's classes."""
    one = lhs.python_type()
    found = [r for r in (row, plain) if answers_as_sequence(one, r.function)]
    attempt: _Attempt | None = (lhs, found[0].left, rhs) if found else None
    if attempt is None and plain.function is operator.mul and not (row.plain and has_sequence_slots(one)):
        is_sequence = answers_as_sequence(rhs.python_type(), operator.mul)
        attempt = (rhs, "__rmul__", lhs) if is_sequence else None
    if attempt is None:
        return None
    receiver, name, other = attempt
    if plain.function is operator.mul and not has_member(other.python_type(), "__index__"):
        kind = message_name(other.python_type())
        raise tx.raises(TypeError, f"can't multiply sequence by non-int of type {kind!r}")
    return tx.calls.special(receiver, name, [other]) if isinstance(receiver, ObjectValue) else None
