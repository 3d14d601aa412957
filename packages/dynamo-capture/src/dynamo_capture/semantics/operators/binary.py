"""Binary operators over all kinds of values: who answers for a pair of operands, in order."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.foundation.type_names import answers_as_sequence, has_sequence_slots, message_name
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.operators import open_texts
from dynamo_capture.semantics.operators.comparing_containers import as_sequence
from dynamo_capture.semantics.operators.comparisons import of_members
from dynamo_capture.semantics.operators.object_operators import by_methods, content_of
from dynamo_capture.semantics.operators.pairs import Pairs
from dynamo_capture.semantics.operators.refusals import TEXTS, check_containers, naming, refused
from dynamo_capture.semantics.tensors.arguments import numpy_numbers
from dynamo_capture.semantics.tensors.content import (
    choices,
    conditions,
    data_floats,
    late_floats,
    late_tensors,
)
from dynamo_capture.values import (
    Const,
    DictValue,
    DictView,
    ListValue,
    ObjectValue,
    OpenText,
    SequenceValue,
    SetValue,
    SymValue,
    TensorValue,
    TextValue,
    Value,
    size_value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import RepeatedList
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.operator_methods import BINARY, BinaryOperator, check_metaclass, check_shown
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.late import LateTensor
from fx_interface.symbols import Expr, Relation

_SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}

_NOT_NUMBERS = (SequenceValue, DictValue, SetValue, ObjectValue, Const)
_FORMATTING = ("%", "%=")
_REMAINDERS = (operator.mod, operator.imod)
_IN_PLACE = (TensorValue, ChosenValue, ListValue)
"""What torch is given an augmented operator for, as the left operand."""
_PAIRS = Pairs()


def binary(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    """``lhs symbol rhs``; a symbol ending in ``=`` is the augmented operator."""
    row = BINARY[symbol]
    if symbol in _FORMATTING and isinstance(lhs, Const) and lhs.python_type() is str:
        text = open_texts.by_percent(tx, lhs, rhs)
        if text is not None:
            return text
    if lhs.is_open or rhs.is_open:
        plain = row.plain or symbol
        computed = late_floats.binary(tx, plain, lhs, rhs) or floats.binary(tx, plain, lhs, rhs)
        computed = computed or data_floats.of_integers(tx, plain, lhs, rhs)
        computed = computed or data_floats.by_float(tx, plain, lhs, rhs)
        computed = computed or data_floats.power(tx, plain, lhs, rhs)
        if computed is not None:
            return computed
    found = _PAIRS.answer(tx, row, lhs, rhs)
    if found is None and lhs.base is None:
        found = _containers(tx, symbol, lhs, rhs)
    if found is None:
        raise refused(tx, lhs, rhs, symbol)
    return found


@_PAIRS.either(LateTensor, ChosenValue)
def _of_late(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    """What is computed behind the graph."""
    return late_tensors.binary(tx, row, lhs, rhs)


@_PAIRS.either(ArrayValue)
def _of_arrays(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value:
    numbers = numpy_numbers.beside_tensors(tx, lhs, rhs)
    if numbers is not None:
        return binary(tx, row.symbol, *numbers)
    return tx.arrays.binary(row.symbol, row.function, lhs, rhs)


@_PAIRS.either(TextValue, OpenText)
def _of_texts(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    """Texts that are put together when the code runs, one after the other."""
    if row.symbol not in ("+", "+=") or lhs.python_type() is not str or rhs.python_type() is not str:
        return None
    return open_texts.joined(tx, [lhs, rhs])


@_PAIRS.both(Const)
def _of_constants(tx: Context, row: BinaryOperator, lhs: Const, rhs: Const) -> Value:
    plain = row if row.plain is None else BINARY[row.plain]
    own = of_members(tx, lhs, rhs, plain.left, plain.right)
    if own is not None:
        return own
    check_metaclass(tx, lhs.value, row.left, row.plain and plain.left)
    check_metaclass(tx, rhs.value, row.right, row.plain and plain.right)
    if row.symbol in _FORMATTING:
        check_shown(rhs.value)
    return tx.known(tx.fold(lambda: row.function(lhs.value, rhs.value)))


@_PAIRS.both(DataCondition, Const)
def _of_conditions(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    """Two bools that data answer, or one and a known one."""
    symbol = row.plain or row.symbol
    given = [value for value in (lhs, rhs) if isinstance(value, DataCondition)]
    if symbol == "&" and len(given) == 2 and all(one.is_number for one in given):
        return DataCondition(*(relation for one in given for relation in one.relations))
    return conditions.combined(tx, symbol, lhs, rhs)


@_PAIRS.either(TensorValue, ChosenValue)
def _of_tensors(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    function = row.function if row.plain is None or isinstance(lhs, _IN_PLACE) else BINARY[row.plain].function
    check_containers(tx, row.symbol, lhs, rhs)
    if any(isinstance(value, ObjectValue) for value in (lhs, rhs)):
        return None
    if row.symbol == "+=" and isinstance(lhs, ListValue):
        return None  # the tensor is asked first, and takes no list
    try:
        made = tx.tensors.call_function(function, [lhs, rhs], {})
    except UserRaise as raised:
        raise naming(tx, raised, row.symbol) from None
    if not isinstance(lhs, ChosenValue) and not isinstance(rhs, ChosenValue):
        return made
    return choices.or_number(tx, made, [lhs, rhs], lambda numbers: binary(tx, row.symbol, *numbers))


@_PAIRS.either(SymValue)
def _of_sizes(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    symbol, numbers = row.plain or row.symbol, [lhs.number(), rhs.number()]
    if None in numbers:
        of_numpy = any(isinstance(v, Const) and isinstance(v.value, numpy_types.SCALARS) for v in (lhs, rhs))
        return _fixed(tx, symbol, lhs, rhs) if of_numpy else None
    combine = _SYMBOLIC.get(symbol)
    if combine is not None and all(isinstance(n, (int, Expr)) and not isinstance(n, bool) for n in numbers):
        if symbol in ("//", "%") and not _positive(tx, numbers[1]):
            return _fixed(tx, symbol, lhs, rhs)
        return size_value(combine(*numbers))
    power = rhs.known_as(int) if symbol == "**" else None
    if power is not None and 0 < power < 5:
        product = numbers[0]
        for _ in range(power - 1):
            product = product * numbers[0]
        return size_value(product)
    return _fixed(tx, symbol, lhs, rhs)


def _positive(tx: Context, number: Any) -> bool:
    return tx.env.known(Relation("<", 0, number)) is True


def _fixed(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    """What Python computes from the operands before the graph runs, or else of their values in this call."""
    computed = tx.numbers.compute(symbol, [lhs, rhs]) or data_floats.of_integers(tx, symbol, lhs, rhs)
    if computed is not None:
        return computed
    one, other = (v if v.expr is None else Const(tx.env.specialize(v.expr)) for v in (lhs, rhs))
    return tx.operators.binary(symbol, one, other)


@_PAIRS.either(ObjectValue)
def _of_objects(tx: Context, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
    """What objects of the program say in their classes, and then what they hold."""
    formats = row.function in _REMAINDERS and issubclass(lhs.python_type(), TEXTS)
    if formats or (row.symbol == "|=" and isinstance(lhs, DictValue)):  # which takes any mapping
        return None
    found = by_methods(tx, row, lhs, rhs)
    if found is not None:
        return found
    repeats = row.left in ("__mul__", "__imul__")
    if repeats and not answers_as_sequence(lhs.python_type(), operator.mul):
        raise refused(tx, lhs, rhs, row.symbol)
    if lhs.base is None:
        content = None if row.symbol == "+=" or repeats else content_of(rhs)
        found = _containers(tx, row.symbol, lhs, rhs if content is None else content)
    if found is None:
        raise refused(tx, lhs, rhs, row.symbol)
    return found


def _containers(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    lhs, rhs = as_sequence(lhs), as_sequence(rhs)
    match symbol:
        case "+" | "+=":
            return lhs.concatenated(tx, rhs, in_place=symbol == "+=")
        case "*" | "*=":
            return _repeated(tx, symbol, lhs, rhs)
        case "%" | "%=" if isinstance(lhs, Const) and isinstance(lhs.value, (str, bytes)):
            text, given = lhs.value, tx.calls.python_object(rhs)
            check_shown(given)
            return Const(tx.fold(lambda: text % given))
        case "|=" if isinstance(lhs, DictValue):  # takes pairs too
            lhs.call_method(tx, "update", [rhs], {})
            return lhs
        case "|" if isinstance(lhs, DictValue) and isinstance(rhs, DictValue):
            target: Value = tx.calls.copy_dict(lhs)
            for key, value in list(rhs.all_entries(tx).values()):
                target.set_item(tx, key, value)
            return target
        case "|" | "&" | "-" | "^" | "|=" | "&=" | "-=" | "^=":
            return _sets(tx, symbol, lhs, rhs)
    return None


def _repeated(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """``sequence * n`` and ``n * sequence``."""
    one, other = (rhs, lhs) if isinstance(rhs, SequenceValue) else (lhs, rhs)
    if symbol == "*=" and one is rhs and has_sequence_slots(lhs.python_type()):
        return None  # Python does not ask the right operand then
    if not isinstance(one, SequenceValue):
        return None
    if isinstance(other, _NOT_NUMBERS):
        _check_repetition(tx, lhs, rhs)
    if isinstance(other, SequenceValue):
        return None
    is_new = isinstance(one, ListValue) and one.cls is list and not one.is_unread and symbol == "*"
    if is_new and isinstance(other, SymValue) and all(isinstance(item, Const) for item in one.items):
        return RepeatedList(tx, list(one.items), other)
    return one.repeated(tx, tx.integer(other), in_place=symbol == "*=" and one is lhs)


def _check_repetition(tx: Context, lhs: Value, rhs: Value) -> None:
    """``sequence * n`` and ``n * sequence``: n must be an integer."""
    is_sequence = isinstance(lhs, SequenceValue) or lhs.python_type() in (str, bytes)
    times = rhs if is_sequence else lhs
    if not has_member(times.python_type(), "__index__"):
        kind = message_name(times.python_type())
        raise tx.raises(TypeError, f"can't multiply sequence by non-int of type {kind!r}")


def _sets(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
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
