"""Unary and binary operators, identity and equality over all kinds of values."""

from __future__ import annotations

import collections
import operator
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.type_names import answers_as_sequence, has_sequence_slots, message_name
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.operators import comparing_containers, comparisons
from dynamo_capture.semantics.operators.comparisons import of_members
from dynamo_capture.semantics.operators.object_operators import by_methods, content_of
from dynamo_capture.semantics.operators.refusals import TEXTS, check_named, naming, refused
from dynamo_capture.values import (
    FALSE,
    TRUE,
    Const,
    DictValue,
    DictView,
    ListValue,
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
    BINARY,
    UNARY,
    check_metaclass,
)
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.floating import RuntimeFloat
from fx_interface.symbols import Expr, Relation

_SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}

_NOT_NUMBERS = (SequenceValue, DictValue, SetValue, ObjectValue, Const)
_SEQUENCES = (list, tuple, str, bytes, bytearray, collections.deque)
_TENSORS = (TensorValue, ChosenValue)
_REMAINDERS = (operator.mod, operator.imod)


class Operators:
    """The operators of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def binary(self, symbol: str, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs``; a symbol ending in ``=`` is the augmented operator."""
        row = BINARY[symbol]
        if lhs.is_open or rhs.is_open:
            computed = floats.binary(self._tx, row.plain or symbol, lhs, rhs)
            if computed is not None:
                return computed
        if isinstance(lhs, ArrayValue) or isinstance(rhs, ArrayValue):
            return self._tx.arrays.binary(symbol, row.function, lhs, rhs)
        if isinstance(lhs, Const) and isinstance(rhs, Const):
            plain = row if row.plain is None else BINARY[row.plain]
            own = of_members(self._tx, lhs, rhs, plain.left, plain.right)
            if own is not None:
                return own
            check_metaclass(self._tx, lhs.value, row.left, row.plain and BINARY[row.plain].left)
            check_metaclass(self._tx, rhs.value, row.right, row.plain and BINARY[row.plain].right)
            return self._tx.known(self._tx.fold(lambda: row.function(lhs.value, rhs.value)))
        if isinstance(lhs, _TENSORS) or isinstance(rhs, _TENSORS):
            in_place = isinstance(lhs, (*_TENSORS, ListValue))
            function = row.function if row.plain is None or in_place else BINARY[row.plain].function
            check_named(symbol, lhs, rhs)
            if not (isinstance(lhs, ObjectValue) or isinstance(rhs, ObjectValue)):
                try:
                    return self._tx.tensors.call_function(function, [lhs, rhs], {})
                except UserRaise as raised:
                    raise naming(self._tx, raised, symbol) from None
        if lhs.expr is not None or rhs.expr is not None:
            found = self._symbolic(row.plain or symbol, lhs, rhs)
            if found is not None:
                return found
        is_first = symbol == "|=" and isinstance(lhs, DictValue)  # takes any mapping
        formats = row.function in _REMAINDERS and issubclass(lhs.python_type(), TEXTS)
        other = rhs
        if (isinstance(lhs, ObjectValue) or isinstance(rhs, ObjectValue)) and not (is_first or formats):
            found = by_methods(self._tx, row, lhs, rhs)
            if found is not None:
                return found
            content = content_of(rhs)
            repeats = row.left in ("__mul__", "__imul__")
            if repeats and not answers_as_sequence(lhs.python_type(), operator.mul):
                raise refused(self._tx, lhs, rhs, symbol)
            if symbol != "+=" and not repeats and content is not None:
                other = content
        if not isinstance(lhs, ObjectValue) or lhs.base is None:
            found = self._containers(symbol, lhs, other)
            if found is not None:
                return found
        raise refused(self._tx, lhs, rhs, symbol)

    def _symbolic(self, symbol: str, lhs: Value, rhs: Value) -> Value | None:
        numbers = [lhs.number(), rhs.number()]
        if None in numbers:
            of_numpy = any(
                isinstance(v, Const) and isinstance(v.value, numpy_types.SCALARS) for v in (lhs, rhs)
            )
            return self._fixed(symbol, lhs, rhs) if of_numpy else None
        combine = _SYMBOLIC.get(symbol)
        if combine is not None and all(
            isinstance(n, (int, Expr)) and not isinstance(n, bool) for n in numbers
        ):
            if symbol in ("//", "%") and not self._positive(numbers[1]):
                return self._fixed(symbol, lhs, rhs)
            return size_value(combine(*numbers))
        power = rhs.known_as(int) if symbol == "**" else None
        if power is not None and 0 < power < 5:
            product = numbers[0]
            for _ in range(power - 1):
                product = product * numbers[0]
            return size_value(product)
        return self._fixed(symbol, lhs, rhs)

    def _positive(self, number: Any) -> bool:
        return self._tx.env.known(Relation("<", 0, number)) is True

    def _fixed(self, symbol: str, lhs: Value, rhs: Value) -> Value:
        """What Python computes from the operands before the graph runs, or else of their values in this call."""
        computed = self._tx.numbers.compute(symbol, [lhs, rhs])
        if computed is not None:
            return computed
        one, other = (v if v.expr is None else Const(self._tx.env.specialize(v.expr)) for v in (lhs, rhs))
        return self.binary(symbol, one, other)

    def _check_repetition(self, lhs: Value, rhs: Value) -> None:
        """``sequence * n`` and ``n * sequence``: n must be an integer."""
        is_sequence = isinstance(lhs, SequenceValue) or lhs.python_type() in (str, bytes)
        times = rhs if is_sequence else lhs
        if not has_member(times.python_type(), "__index__"):
            kind = message_name(times.python_type())
            raise self._tx.raises(TypeError, f"can't multiply sequence by non-int of type {kind!r}")

    def _containers(self, symbol: str, lhs: Value, rhs: Value) -> Value | None:
        lhs, rhs = comparing_containers.as_sequence(lhs), comparing_containers.as_sequence(rhs)
        tx = self._tx
        match symbol:
            case "+" | "+=" if isinstance(lhs, ListValue):
                if symbol == "+=":
                    lhs.extend(tx, rhs)
                    return lhs
                if isinstance(rhs, ListValue) and rhs.cls is lhs.cls:
                    return lhs.like([*lhs.items, *rhs.items])
            case "+" | "+=" if isinstance(lhs, TupleValue) and isinstance(rhs, TupleValue):
                return _joined([*lhs.items, *rhs.items], lhs, rhs)
            case "*" | "*=":
                one, other = (rhs, lhs) if isinstance(rhs, SequenceValue) else (lhs, rhs)
                if symbol == "*=" and one is rhs and has_sequence_slots(lhs.python_type()):
                    return None  # Python does not ask the right operand then
                if isinstance(one, SequenceValue) and isinstance(other, _NOT_NUMBERS):
                    self._check_repetition(lhs, rhs)
                if isinstance(one, SequenceValue) and not isinstance(other, SequenceValue):
                    times = tx.integer(other)
                    items = tx.fold(lambda: one.items * times)
                    if symbol == "*=" and one is lhs and isinstance(one, ListValue):
                        tx.effects.mutates(one)
                        one.items[:] = items
                        return one
                    return one.like(items) if isinstance(one, ListValue) else _joined(items, one)
            case "%" | "%=" if isinstance(lhs, Const) and isinstance(lhs.value, (str, bytes)):
                text = lhs.value
                return Const(tx.fold(lambda: text % tx.calls.python_object(rhs)))
            case "|=" if isinstance(lhs, DictValue):  # takes pairs too
                lhs.call_method(tx, "update", [rhs], {})
                return lhs
            case "|" if isinstance(lhs, DictValue) and isinstance(rhs, DictValue):
                target: Value = tx.calls.copy_dict(lhs)
                for key, value in list(rhs.all_entries(tx).values()):
                    target.set_item(tx, key, value)
                return target
            case "|" | "&" | "-" | "^" | "|=" | "&=" | "-=" | "^=":
                return self._sets(symbol, lhs, rhs)
        return None

    def _sets(self, symbol: str, lhs: Value, rhs: Value) -> Value | None:
        tx = self._tx
        kinds = (SetValue, DictView)
        plain = (set, frozenset)
        if not all(
            isinstance(v, kinds) or (isinstance(v, Const) and isinstance(v.value, plain)) for v in (lhs, rhs)
        ):
            return None
        plain_symbol = symbol.rstrip("=")
        if symbol.endswith("=") and isinstance(lhs, SetValue) and lhs.cls is set:
            lhs.update_with(tx, BINARY[symbol].function, tx.calls.as_set(rhs))
            return lhs
        cls = lhs.python_type() if lhs.python_type() in plain else set
        left = lhs if isinstance(lhs, SetValue) else tx.calls.as_set(lhs, cls)
        right = rhs if isinstance(rhs, SetValue) else tx.calls.as_set(rhs)
        return left.combined(tx, BINARY[plain_symbol].function, right)

    def unary(self, symbol: str, value: Value) -> Value:
        """``-x``, ``+x``, ``~x``."""
        function, name = UNARY[symbol]
        if isinstance(value, ArrayValue):
            return self._tx.arrays.call_function(function, [value], {})
        if isinstance(value, _TENSORS):
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
        for value in (lhs, rhs):
            if isinstance(value, ObjectValue):
                self._tx.attributes.guard_type(value)
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

    def is_(self, lhs: Value, rhs: Value) -> Value:
        """``lhs is rhs`` as a value."""
        return TRUE if self.same(lhs, rhs) else FALSE


def _joined(items: list[Value], *operands: Value) -> TupleValue:
    """What an operator on tuples gives: ``torch.Size`` where one of them is one."""
    if all(value.python_type() is not torch.Size for value in operands):
        for value in operands:  # the others are empty
            if isinstance(value, TupleValue) and value.cls is tuple and len(value.items) == len(items):
                return value
        return TupleValue(items)
    if not all(issubclass(item.python_type(), int) for item in items):
        raise GraphBreak("CAP210", "sizes are put together with what is no integer")
    return TupleValue(items, torch.Size)
