"""Unary and binary operators, identity and equality over all kinds of values."""

from __future__ import annotations

import types

from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.operators import comparing_containers, comparisons
from dynamo_capture.semantics.operators.binary import binary
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    FALSE,
    TRUE,
    Const,
    DictValue,
    FunctionValue,
    ObjectValue,
    SequenceValue,
    SetValue,
    TensorValue,
    TupleValue,
    Value,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.operator_methods import (
    UNARY,
    check_metaclass,
)
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.floating import RuntimeFloat


class Operators:
    """The operators of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def binary(self, symbol: str, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs``; a symbol ending in ``=`` is the augmented operator."""
        return binary(self._tx, symbol, lhs, rhs)

    def unary(self, symbol: str, value: Value) -> Value:
        """``-x``, ``+x``, ``~x``."""
        function, name = UNARY[symbol]
        if isinstance(value, ArrayValue):
            return self._tx.arrays.call_function(function, [value], {})
        if isinstance(value, (TensorValue, ChosenValue)):
            return self._tx.tensors.call_function(function, [value], {})
        if isinstance(value, RuntimeFloat) and value.is_unread and symbol != "~":
            return value if symbol == "+" else floats.negated(self._tx, value)
        if value.expr is not None and symbol == "-":
            return size_value(-value.expr)
        if value.expr is not None and symbol == "+":
            return value
        if isinstance(value, ObjectValue):
            return self._tx.calls.special(value, name, [])
        cls = value.python_type()
        if isinstance(value, (SequenceValue, DictValue, SetValue)) and not has_member(cls, name):
            raise self._tx.raises(TypeError, f"bad operand type for unary {symbol}: {message_name(cls)!r}")
        computed = self._tx.numbers.compute(symbol, [value]) if value.expr is not None else None
        if computed is not None:
            return computed
        constant = self._tx.index(value) if value.expr is not None else self._tx.constant(value)
        check_metaclass(self._tx, constant, name)
        return self._tx.known(self._tx.fold(lambda: function(constant)))

    def compare(self, symbol: str, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs`` for ``<``, ``==`` and so on."""
        return comparisons.compare(self._tx, symbol, lhs, rhs)

    def equal_or_same(self, lhs: Value, rhs: Value) -> bool:
        """``lhs is rhs or lhs == rhs``, as containers compare; tuples that are one are equal, too."""
        if isinstance(lhs, TupleValue) and isinstance(rhs, TupleValue):
            return comparing_containers.equal(self._tx, lhs, rhs)
        return self.same(lhs, rhs) or self._tx.truth(self.compare("==", lhs, rhs))

    def same(self, lhs: Value, rhs: Value) -> bool:
        """``lhs is rhs``."""
        if lhs is rhs:
            return True
        for value, another in ((lhs, rhs), (rhs, lhs)):
            if isinstance(value, ChosenValue):
                answers = {self.same(one, another) for one in (value.yes, value.no)}
                if len(answers) > 1:
                    raise value.unknown("comparing with `is`")
                return answers.pop()
        for value, another in ((lhs, rhs), (rhs, lhs)):
            if isinstance(value, ObjectValue):
                self._tx.attributes.guard_type(value)
            elif isinstance(value, FunctionValue) and value.real is not None:
                return self._is_function(value, another)
        one, other = lhs.identity(), rhs.identity()
        if lhs.is_mutable and rhs.is_mutable:
            if lhs.source is not None and rhs.source is not None and one is not other:
                self._tx.guards.distinct([lhs.source, rhs.source])
            if isinstance(lhs, TensorValue):
                return False
        elif (
            type(lhs) is type(rhs) and lhs.is_read_again and lhs.source is not None and rhs.source is not None
        ):
            if one is other:
                self._tx.guards.same(lhs.source, rhs.source)
            else:
                self._tx.guards.distinct([lhs.source, rhs.source])
        if one is other:
            return True
        if isinstance(lhs, Const) and isinstance(rhs, Const) and type(one) is type(other):
            return isinstance(one, (int, str, bytes)) and one == other
        return False

    def _is_function(self, function: FunctionValue, another: Value) -> bool:
        """Whether a function that is known by its code alone is another object. A guard says which objects are the same
        and which are not, where both are functions that existed before."""
        source, found = function.source, another.identity()
        if source is None or not isinstance(found, types.FunctionType):
            return False
        is_same = function.real is found
        place = another.source if another.source is not None else known_object(found)
        if is_same:
            self._tx.guards.same(place, source)
        else:
            self._tx.guards.distinct([place, source])
        return is_same

    def is_(self, lhs: Value, rhs: Value) -> Value:
        """``lhs is rhs`` as a value."""
        return TRUE if self.same(lhs, rhs) else FALSE
