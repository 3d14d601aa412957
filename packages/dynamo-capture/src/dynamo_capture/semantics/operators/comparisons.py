"""Comparisons over all kinds of values: ``<``, ``==`` and so on."""

from __future__ import annotations

import enum

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.class_members import is_subtype
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.operators import comparing_containers
from dynamo_capture.semantics.operators.pairs import Pairs
from dynamo_capture.semantics.operators.refusals import check_containers, refuse
from dynamo_capture.semantics.tensors.arguments import numpy_numbers
from dynamo_capture.semantics.tensors.content import choices, conditions, data_floats
from dynamo_capture.values import (
    Const,
    DictValue,
    KeyValue,
    ObjectValue,
    SequenceValue,
    SliceValue,
    SymRange,
    SymValue,
    TensorValue,
    Value,
    boolean,
    is_none,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.operator_methods import (
    COMPARE,
    are_alike,
    can_meet,
    check_metaclass,
    own_method,
)
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.nested import RaggedSize
from fx_interface.symbols import Relation, RelationOp

_RELATIONS: dict[str, tuple[RelationOp, bool]] = {
    "==": ("==", False),
    "!=": ("!=", False),
    "<": ("<", False),
    "<=": ("<=", False),
    ">": ("<", True),
    ">=": ("<=", True),
}


_PAIRS = Pairs()
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def compare(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    """``lhs symbol rhs`` for ``<``, ``==`` and so on."""
    lhs, rhs = _with_fixed_bounds(tx, lhs), _with_fixed_bounds(tx, rhs)
    if lhs.is_open or rhs.is_open:
        asked = data_floats.compare(tx, symbol, lhs, rhs)
        if asked is not None:
            return asked
        answer = floats.compare(tx, symbol, lhs, rhs)
        if answer is not None:
            return boolean(answer)
    found = _PAIRS.answer(tx, symbol, lhs, rhs)
    if found is not None:
        return found
    if symbol in ("==", "!="):
        return boolean(comparing_containers.equal(tx, lhs, rhs) == (symbol == "=="))
    function = COMPARE[symbol][0]
    answered = comparing_containers.ordered(tx, symbol, function, lhs, rhs)
    if answered is not None:
        return answered
    refuse(tx, function, lhs, rhs)
    raise GraphBreak(OBJECT_OPERATION, f"{symbol} between {lhs.describe()} and {rhs.describe()}")


def _with_fixed_bounds(tx: Context, value: Value) -> Value:
    """Ranges and slices with symbolic bounds, fixed to their values."""
    if isinstance(value, SymRange):
        return Const(value.fixed(tx))
    return Const(value.as_slice(tx)) if isinstance(value, SliceValue) else value


@_PAIRS.either(RaggedSize)
def _compare_ragged(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    """A ragged size equals itself alone, and is at least 2."""
    if symbol in ("==", "!="):
        equal = (
            isinstance(lhs, RaggedSize)
            and isinstance(rhs, RaggedSize)
            and lhs.factor == rhs.factor
            and tx.operators.same(lhs.origin, rhs.origin)
        )
        return boolean(equal == (symbol == "=="))
    if isinstance(rhs, RaggedSize) and not isinstance(lhs, RaggedSize):
        return _compare_ragged(tx, _MIRRORED[symbol], rhs, lhs)
    known = rhs.known_as(int)
    if known is not None and known < (2 if symbol in (">", "<=") else 3):
        return boolean(symbol in (">", ">="))
    raise GraphBreak(OBJECT_OPERATION, f"{symbol} between a ragged size and {rhs.describe()}")


@_PAIRS.left(KeyValue)
def _compare_keys(tx: Context, symbol: str, lhs: KeyValue, rhs: Value) -> Value:
    return lhs.compare(tx, symbol, rhs)


@_PAIRS.either(ArrayValue)
def _compare_arrays(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    numbers = numpy_numbers.beside_tensors(tx, lhs, rhs)
    if numbers is not None:
        return compare(tx, symbol, *numbers)
    return tx.arrays.binary(symbol, COMPARE[symbol][0], lhs, rhs)


@_PAIRS.both(Const)
def _compare_constants(tx: Context, symbol: str, lhs: Const, rhs: Const) -> Value:
    function, left, right = COMPARE[symbol]
    own = of_members(tx, lhs, rhs, left, right)
    if own is not None:
        return own
    check_metaclass(tx, lhs.value, left, "__eq__")
    check_metaclass(tx, rhs.value, right, "__eq__")
    return tx.known(tx.fold(lambda: function(lhs.value, rhs.value)))


@_PAIRS.both(DataCondition, Const)
def _compare_conditions(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    """Whether two bools that data answer, or one and a known one, are equal."""
    if symbol not in ("==", "!="):
        return None
    differ = conditions.combined(tx, "^", lhs, rhs)
    if symbol == "!=" or differ is None:
        return differ
    return conditions.opposite(tx, differ)


@_PAIRS.either(ChosenValue)
def _compare_chosen(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    made = tx.tensors.call_function(COMPARE[symbol][0], [lhs, rhs], {})
    return choices.or_number(tx, made, [lhs, rhs], lambda numbers: compare(tx, symbol, *numbers))


@_PAIRS.either(TensorValue)
def _compare_tensors(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    function, left, right = COMPARE[symbol]
    if isinstance(lhs, ObjectValue) and tx.attributes.overrides(lhs, left):
        own = tx.calls.special(lhs, left, [rhs])
        if not own.stands_for(NotImplemented):
            return own
    elif isinstance(lhs, ObjectValue) and _differs_by_equality(tx, symbol, lhs):
        own = tx.calls.special(lhs, "__eq__", [rhs])
        if not own.stands_for(NotImplemented):
            return boolean(not tx.truth(own))
    other = rhs if isinstance(lhs, TensorValue) else lhs
    if isinstance(other, ObjectValue) and (
        tx.attributes.overrides(other, right) or _differs_by_equality(tx, symbol, other)
    ):
        raise GraphBreak(OBJECT_OPERATION, f"{symbol} between a tensor and {other.describe()}")
    asked = tx.tensors.modes or (not tx.tensors.disabled and tx.tensors.overriding([lhs, rhs]))
    if symbol in ("==", "!=") and _is_no_operand(other) and not asked:
        return boolean(symbol == "!=")
    check_containers(tx, symbol, lhs, rhs)
    return tx.tensors.call_function(function, [lhs, rhs], {})


def _differs_by_equality(tx: Context, symbol: str, value: ObjectValue) -> bool:
    """Whether ``!=`` asks the object's own ``__eq__``, as ``object.__ne__`` does."""
    if symbol != "!=" or tx.attributes.in_class(value.cls, "__ne__") is not object.__ne__:
        return False
    return tx.attributes.overrides(value, "__eq__")


@_PAIRS.either(ObjectValue)
def _compare_objects(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value:
    _, left, right = COMPARE[symbol]
    attempts = [(lhs, left, rhs), (rhs, right, lhs)]
    if rhs.python_type() is not lhs.python_type() and is_subtype(rhs.python_type(), lhs.python_type()):
        attempts.reverse()
    for receiver, name, other in attempts:
        if not isinstance(receiver, ObjectValue):
            continue
        tx.attributes.guard_type(receiver)
        found = tx.attributes.in_class(receiver.cls, name)
        if not hasattr(found, "__code__"):
            found = substitute_for(found) or found
        if hasattr(found, "__code__"):
            answer = tx.inliner.call_function(Const(found), [receiver, other], {})
            if not answer.stands_for(NotImplemented):
                return answer
        elif found is object.__ne__ and hasattr(tx.attributes.in_class(receiver.cls, "__eq__"), "__code__"):
            eq = tx.attributes.in_class(receiver.cls, "__eq__")
            answer = tx.inliner.call_function(Const(eq), [receiver, other], {})
            if not answer.stands_for(NotImplemented):
                return boolean(not tx.truth(answer))
        elif found is object.__ne__ and tx.attributes.withdraws(receiver, "__eq__"):
            raise receiver.unsupported(f"the comparison {symbol}")
        elif receiver.base is not None:
            against = other.base if isinstance(other, ObjectValue) else other
            if against is None:
                continue
            one, two = (receiver.base, against) if receiver is lhs else (against, receiver.base)
            kinds = one.python_type(), two.python_type()
            if can_meet(*kinds, left) and (against is other or are_alike(*kinds)):
                return tx.operators.compare(symbol, one, two)
        elif found is not getattr(object, name):  # in C, of what the class is made from
            raise receiver.unsupported(f"the comparison {symbol}")
    if symbol in ("==", "!="):
        return boolean(tx.operators.same(lhs, rhs) == (symbol == "=="))
    names = lhs.class_name(tx), rhs.class_name(tx)
    raise tx.raises(TypeError, f"{symbol!r} not supported between instances of {names[0]!r} and {names[1]!r}")


@_PAIRS.either(SymValue)
def _compare_symbolic(tx: Context, symbol: str, lhs: Value, rhs: Value) -> Value | None:
    one, other = lhs.number(), rhs.number()
    if one is None or other is None:
        if symbol in ("==", "!="):
            return boolean(symbol == "!=")
        return None
    if isinstance(one, float) or isinstance(other, float):
        answer = tx.numbers.compare(symbol, lhs, rhs)
        return boolean(answer) if answer is not None else None
    relation, swap = _RELATIONS[symbol]
    one, other = (other, one) if swap else (one, other)
    asked, env = Relation(relation, one, other), tx.env
    if env.is_from_data(asked) and env.known(asked) is None:
        return DataCondition(asked)
    return boolean(tx.decide(asked))


def of_members(tx: Context, lhs: Const, rhs: Const, left: str, right: str | None) -> Value | None:
    """What members of the program's enumerations make of an operator; None where they do not say."""
    for receiver, name, other in ((lhs, left, rhs), (rhs, right, lhs)):
        if not isinstance(receiver.value, enum.Enum):
            continue
        method = own_method(tx, receiver.value, name)
        if method is not None:
            answer = tx.inliner.call_function(Const(method), [receiver, other], {})
            if not answer.stands_for(NotImplemented):
                return answer
    return None


def _is_no_operand(value: Value) -> bool:
    """Whether comparing a tensor with the value is left to identity."""
    if isinstance(value, Const):
        return is_none(value)
    return isinstance(value, (SequenceValue, DictValue, ObjectValue))
