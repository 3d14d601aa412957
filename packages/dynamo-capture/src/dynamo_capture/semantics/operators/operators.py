"""Unary and binary operators, comparisons, identity and equality over all kinds of values."""

from __future__ import annotations

import collections
import enum
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.runtime.replacement_calls import builtin_base
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.numbers.floats import is_open
from dynamo_capture.semantics.operators import comparing_containers
from dynamo_capture.values import (
    FALSE,
    TRUE,
    BuiltinMethod,
    Const,
    DictValue,
    DictView,
    FunctionValue,
    ListValue,
    MethodValue,
    ObjectValue,
    OpaqueValue,
    PartialValue,
    SequenceValue,
    SetValue,
    SliceValue,
    SymRange,
    SymValue,
    TensorValue,
    TupleValue,
    Value,
    boolean,
    is_none,
    size_value,
)
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.operator_methods import (
    BINARY,
    COMPARE,
    UNARY,
    BinaryOperator,
    are_alike,
    can_meet,
    check_metaclass,
    own_method,
)
from dynamo_capture.values.tensors.array import ArrayValue
from dynamo_capture.values.tensors.floating import RuntimeFloat
from fx_interface.symbols import Expr, Relation, RelationOp

if TYPE_CHECKING:
    from dynamo_capture.values.base import Context

_SYMBOLIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
}
_RELATIONS: dict[str, tuple[RelationOp, bool]] = {
    "==": ("==", False),
    "!=": ("!=", False),
    "<": ("<", False),
    "<=": ("<=", False),
    ">": ("<", True),
    ">=": ("<=", True),
}
_PLAIN = (int, float, bool, complex, str, bytes, type(None))

_READ_AGAIN = (TupleValue, MethodValue, BuiltinMethod, PartialValue)
"""What is a value of its own for each path that leads to it, while nobody asks whether it is one object."""
_HEAP_TYPE = 1 << 9
_NOT_NUMBERS = (SequenceValue, DictValue, SetValue, ObjectValue, Const)
_EMPTY = (list, tuple, dict, set, frozenset)
_SEQUENCES = (list, tuple, str, bytes, bytearray, collections.deque)
_TEXTS = (str, bytes, bytearray)
_REMAINDERS = (operator.mod, operator.imod)
_SHOWN = {"**": "** or pow()"}
"""What errors call an operator, where that is not as it is written."""


class Operators:
    """The operators of one trace."""

    def __init__(self, tx: Context) -> None:
        self._tx = tx

    def binary(self, symbol: str, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs``; a symbol ending in ``=`` is the augmented operator."""
        row = BINARY[symbol]
        if is_open(lhs) or is_open(rhs):
            computed = floats.binary(self._tx, row.plain or symbol, lhs, rhs)
            if computed is not None:
                return computed
        if isinstance(lhs, ArrayValue) or isinstance(rhs, ArrayValue):
            return self._tx.arrays.binary(symbol, row.function, lhs, rhs)
        if isinstance(lhs, Const) and isinstance(rhs, Const):
            plain = row if row.plain is None else BINARY[row.plain]
            own = self._of_members(lhs, rhs, plain.left, plain.right)
            if own is not None:
                return own
            check_metaclass(self._tx, lhs.value, row.left, row.plain and BINARY[row.plain].left)
            check_metaclass(self._tx, rhs.value, row.right, row.plain and BINARY[row.plain].right)
            return self._tx.known(self._tx.fold(lambda: row.function(lhs.value, rhs.value)))
        if isinstance(lhs, TensorValue) or isinstance(rhs, TensorValue):
            in_place = isinstance(lhs, (TensorValue, ListValue))
            function = row.function if row.plain is None or in_place else BINARY[row.plain].function
            _check_named(symbol, lhs, rhs)
            if not (isinstance(lhs, ObjectValue) or isinstance(rhs, ObjectValue)):
                try:
                    return self._tx.tensors.call_function(function, [lhs, rhs], {})
                except UserRaise as raised:
                    raise _naming(self._tx, raised, symbol) from None
        if isinstance(lhs, SymValue) or isinstance(rhs, SymValue):
            found = self._symbolic(row.plain or symbol, lhs, rhs)
            if found is not None:
                return found
        is_first = symbol == "|=" and isinstance(lhs, DictValue)  # takes any mapping
        formats = row.function in _REMAINDERS and issubclass(lhs.python_type(), _TEXTS)
        other = rhs
        if (isinstance(lhs, ObjectValue) or isinstance(rhs, ObjectValue)) and not (is_first or formats):
            found = self._by_methods(row, lhs, rhs)
            if found is not None:
                return found
            content = _content(rhs)
            repeats = row.left in ("__mul__", "__imul__") and issubclass(lhs.python_type(), _SEQUENCES)
            if symbol != "+=" and not repeats and content is not None:
                other = content
        if not isinstance(lhs, ObjectValue) or lhs.base is None:
            found = self._containers(symbol, lhs, other)
            if found is not None:
                return found
        raise self._refused(lhs, rhs, symbol)

    def _of_members(self, lhs: Const, rhs: Const, left: str, right: str | None) -> Value | None:
        """What members of the program's enumerations make of an operator; None where they do not say."""
        tx = self._tx
        for receiver, name, other in ((lhs, left, rhs), (rhs, right, lhs)):
            if not isinstance(receiver.value, enum.Enum):
                continue
            method = own_method(tx, receiver.value, name)
            if method is not None:
                answer = tx.inliner.call_function(Const(method), [receiver, other], {})
                if not (isinstance(answer, Const) and answer.value is NotImplemented):
                    return answer
        return None

    def _symbolic(self, symbol: str, lhs: Value, rhs: Value) -> Value | None:
        numbers = [_number(lhs), _number(rhs)]
        if None in numbers:
            return None
        combine = _SYMBOLIC.get(symbol)
        if combine is not None and all(
            isinstance(n, (int, Expr)) and not isinstance(n, bool) for n in numbers
        ):
            if symbol in ("//", "%") and not self._positive(numbers[1]):
                return self._fixed(symbol, lhs, rhs)
            return size_value(combine(*numbers))
        if symbol == "**" and isinstance(rhs, Const) and type(rhs.value) is int and 0 < rhs.value < 5:
            product = numbers[0]
            for _ in range(rhs.value - 1):
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
        one, other = (Const(v.specialize(self._tx)) if isinstance(v, SymValue) else v for v in (lhs, rhs))
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
                if symbol == "*=" and one is rhs and _may_be_sequence(lhs.python_type()):
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

    def _by_methods(self, row: BinaryOperator, lhs: Value, rhs: Value) -> Value | None:
        """Special methods, in Python's order; None where all give NotImplemented. A container's own in C are not asked
        of the right operand: they come after all others."""
        tx = self._tx
        plain = BINARY[row.plain] if row.plain else row
        attempts: list[tuple[Value, str, Value]] = [(lhs, plain.left, rhs)]
        one, other_one = lhs.python_type(), rhs.python_type()
        in_class = tx.attributes.in_class
        right = plain.right
        if right is not None and one is not other_one:
            own = in_class(other_one, right)
            if _content(rhs) is None or not isinstance(own, types.WrapperDescriptorType):
                goes_first = issubclass(other_one, one) and own is not in_class(one, right)
                attempts.insert(0 if goes_first else 1, (rhs, right, lhs))
        if row.plain:
            attempts.insert(0, (lhs, row.left, rhs))
        for receiver, name, other in attempts:
            if isinstance(receiver, ObjectValue) and tx.attributes.has_special(receiver, name):
                found = tx.calls.special(receiver, name, [other])
                if not (isinstance(found, Const) and found.value is NotImplemented):
                    return found
            elif isinstance(receiver, TensorValue):
                return tx.tensors.call_function(plain.function, [lhs, rhs], {})
        return None

    def _refused(self, lhs: Value, rhs: Value, symbol: str) -> Exception:
        """What Python raises for operands of these classes, whose special methods have been asked, if it does for any
        content; else a graph break."""
        tx = self._tx
        unknown = GraphBreak("CAP210", f"{symbol} between {lhs.describe()} and {rhs.describe()}")
        of_numpy = any(issubclass(value.python_type(), numpy_types.SCALARS) for value in (lhs, rhs))
        formats = symbol in ("%", "%=") and issubclass(lhs.python_type(), _TEXTS)
        is_repetition = symbol in ("*", "*=")
        one, other = _sample(lhs, is_repetition), _sample(rhs, is_repetition)
        if of_numpy or formats:
            return unknown
        if one is not None and other is not None:
            tx.fold(lambda: BINARY[symbol].function(one[0], other[0]))
            return unknown
        repeats = is_repetition and any(
            isinstance(value, ObjectValue) and tx.attributes.has_special(value, "__index__")
            for value in (lhs, rhs)
        )
        known = (Const, SequenceValue, DictValue, SetValue, ObjectValue, FunctionValue)
        if repeats or not (isinstance(lhs, known) and isinstance(rhs, known)):
            return unknown
        names = message_name(lhs.python_type()), message_name(rhs.python_type())
        text = f"unsupported operand type(s) for {_SHOWN.get(symbol, symbol)}: {names[0]!r} and {names[1]!r}"
        return tx.raises(TypeError, text)

    def _refuse(self, function: Callable[..., Any], lhs: Value, rhs: Value) -> None:
        """Raise what Python raises for operands of these classes, if it does for any content."""
        one, other = _sample(lhs), _sample(rhs)
        if one is not None and other is not None:
            self._tx.fold(lambda: function(one[0], other[0]))

    def unary(self, symbol: str, value: Value) -> Value:
        """``-x``, ``+x``, ``~x``."""
        function, name = UNARY[symbol]
        if isinstance(value, ArrayValue):
            return self._tx.arrays.call_function(function, [value], {})
        if isinstance(value, TensorValue):
            return self._tx.tensors.call_function(function, [value], {})
        if isinstance(value, RuntimeFloat) and value.is_unread and symbol != "~":
            return value if symbol == "+" else floats.negated(self._tx, value)
        if isinstance(value, SymValue) and symbol == "-":
            return size_value(-value.expr)
        if isinstance(value, SymValue) and symbol == "+":
            return value
        if isinstance(value, ObjectValue):
            return self._tx.calls.special(value, name, [])
        cls = value.python_type()
        if isinstance(value, (SequenceValue, DictValue, SetValue)) and not has_member(cls, name):
            raise self._tx.raises(TypeError, f"bad operand type for unary {symbol}: {message_name(cls)!r}")
        computed = self._tx.numbers.compute(symbol, [value]) if isinstance(value, SymValue) else None
        if computed is not None:
            return computed
        constant = self._tx.index(value) if isinstance(value, SymValue) else self._tx.constant(value)
        check_metaclass(self._tx, constant, name)
        return self._tx.known(self._tx.fold(lambda: function(constant)))

    def compare(self, symbol: str, lhs: Value, rhs: Value) -> Value:
        """``lhs symbol rhs`` for ``<``, ``==`` and so on."""
        lhs, rhs = self._with_fixed_bounds(lhs), self._with_fixed_bounds(rhs)
        function, left, right = COMPARE[symbol]
        tx = self._tx
        if is_open(lhs) or is_open(rhs):
            answer = floats.compare(tx, symbol, lhs, rhs)
            if answer is not None:
                return boolean(answer)
        if isinstance(lhs, ArrayValue) or isinstance(rhs, ArrayValue):
            return tx.arrays.binary(symbol, function, lhs, rhs)
        if isinstance(lhs, Const) and isinstance(rhs, Const):
            own = self._of_members(lhs, rhs, left, right)
            if own is not None:
                return own
            check_metaclass(tx, lhs.value, left, "__eq__")
            check_metaclass(tx, rhs.value, right, "__eq__")
            return tx.known(tx.fold(lambda: function(lhs.value, rhs.value)))
        if (
            isinstance(rhs, TensorValue)
            and isinstance(lhs, ObjectValue)
            and tx.attributes.overrides(lhs, left)
        ):
            own = tx.calls.special(lhs, left, [rhs])
            if not (isinstance(own, Const) and own.value is NotImplemented):
                return own
        if isinstance(lhs, TensorValue) or isinstance(rhs, TensorValue):
            other = rhs if isinstance(lhs, TensorValue) else lhs
            if isinstance(other, ObjectValue) and tx.attributes.overrides(other, right):
                raise GraphBreak("CAP210", f"{symbol} between a tensor and {other.describe()}")
            if symbol in ("==", "!=") and _is_no_operand(other):
                return boolean(symbol == "!=")
            _check_named(symbol, lhs, rhs)
            return tx.tensors.call_function(function, [lhs, rhs], {})
        if isinstance(lhs, ObjectValue) or isinstance(rhs, ObjectValue):
            return self._compare_objects(symbol, lhs, rhs, left, right)
        if isinstance(lhs, SymValue) or isinstance(rhs, SymValue):
            found = self._compare_symbolic(symbol, lhs, rhs)
            if found is not None:
                return found
        if symbol in ("==", "!="):
            return boolean(comparing_containers.equal(tx, lhs, rhs) == (symbol == "=="))
        answered = comparing_containers.ordered(tx, symbol, function, lhs, rhs)
        if answered is not None:
            return answered
        self._refuse(function, lhs, rhs)
        raise GraphBreak("CAP210", f"{symbol} between {lhs.describe()} and {rhs.describe()}")

    def _with_fixed_bounds(self, value: Value) -> Value:
        """Ranges and slices with symbolic bounds, fixed to their values."""
        if isinstance(value, SymRange):
            return Const(value.fixed(self._tx))
        return Const(value.as_slice(self._tx)) if isinstance(value, SliceValue) else value

    def _compare_symbolic(self, symbol: str, lhs: Value, rhs: Value) -> Value | None:
        one, other = _number(lhs), _number(rhs)
        if one is None or other is None:
            if symbol in ("==", "!="):
                return boolean(symbol == "!=")
            return None
        if isinstance(one, float) or isinstance(other, float):
            answer = self._tx.numbers.compare(symbol, lhs, rhs)
            return boolean(answer) if answer is not None else None
        relation, swap = _RELATIONS[symbol]
        one, other = (other, one) if swap else (one, other)
        asked, env = Relation(relation, one, other), self._tx.env
        if env.is_from_data(asked) and env.known(asked) is None:
            return DataCondition(asked)
        return boolean(self._tx.decide(asked))

    def _compare_objects(self, symbol: str, lhs: Value, rhs: Value, left: str, right: str) -> Value:
        tx = self._tx
        attempts = [(lhs, left, rhs), (rhs, right, lhs)]
        if rhs.python_type() is not lhs.python_type() and issubclass(rhs.python_type(), lhs.python_type()):
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
                if not (isinstance(answer, Const) and answer.value is NotImplemented):
                    return answer
            elif found is object.__ne__ and hasattr(
                tx.attributes.in_class(receiver.cls, "__eq__"), "__code__"
            ):
                eq = tx.attributes.in_class(receiver.cls, "__eq__")
                answer = tx.inliner.call_function(Const(eq), [receiver, other], {})
                if not (isinstance(answer, Const) and answer.value is NotImplemented):
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
                    return self.compare(symbol, one, two)
            elif found is not getattr(object, name):  # in C, of what the class is made from
                raise receiver.unsupported(f"the comparison {symbol}")
        if symbol in ("==", "!="):
            return boolean(self.same(lhs, rhs) == (symbol == "=="))
        names = message_name(lhs.python_type()), message_name(rhs.python_type())
        raise tx.raises(
            TypeError, f"{symbol!r} not supported between instances of {names[0]!r} and {names[1]!r}"
        )

    def equal_or_same(self, lhs: Value, rhs: Value) -> bool:
        """``lhs is rhs or lhs == rhs``, as containers compare; tuples that are one are equal, too."""
        if isinstance(lhs, TupleValue) and isinstance(rhs, TupleValue):
            return comparing_containers.equal(self._tx, lhs, rhs)
        return self.same(lhs, rhs) or self._tx.truth(self.compare("==", lhs, rhs))

    def same(self, lhs: Value, rhs: Value) -> bool:
        """``lhs is rhs``."""
        if lhs is rhs:
            return True
        for value in (lhs, rhs):
            if isinstance(value, ObjectValue):
                self._tx.attributes.guard_type(value)
        one, other = lhs.identity(), rhs.identity()
        if is_mutable(lhs) and is_mutable(rhs):
            if lhs.source is not None and rhs.source is not None and one is not other:
                self._tx.guards.distinct([lhs.source, rhs.source])
            if isinstance(lhs, TensorValue):
                return False
        elif (
            type(lhs) is type(rhs)
            and isinstance(lhs, _READ_AGAIN)
            and lhs.source is not None
            and rhs.source is not None
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


def _check_named(symbol: str, *operands: Value) -> None:
    """End the graph where torch is given a container of another class than Python's: its refusal names the class."""
    for operand in operands:
        cls = operand.python_type()
        plain = (tuple, list, dict, set)
        is_container = isinstance(operand, (SequenceValue, DictValue, SetValue)) or issubclass(cls, plain)
        if is_container and cls not in plain:
            raise GraphBreak("CAP210", f"{symbol} between a tensor and {operand.describe()}")


def _naming(tx: Context, raised: UserRaise, symbol: str) -> UserRaise:
    """A refusal of the plain operator as one of the augmented operator for which it stands."""
    given = raised.value.attrs.get("args") if isinstance(raised.value, ObjectValue) else None
    text = given.items[0] if isinstance(given, TupleValue) and given.items else None
    plain = symbol.removesuffix("=")
    refusal = f"unsupported operand type(s) for {_SHOWN.get(plain, plain)}:"
    if symbol == plain or not (isinstance(text, Const) and str(text.value).startswith(refusal)):
        return raised
    return tx.raises(TypeError, f"unsupported operand type(s) for {symbol}:{text.value.removeprefix(refusal)}")


def _joined(items: list[Value], *operands: Value) -> TupleValue:
    """What an operator on tuples gives: ``torch.Size`` where one of them is one."""
    if all(value.python_type() is not torch.Size for value in operands):
        return TupleValue(items)
    if not all(issubclass(item.python_type(), int) for item in items):
        raise GraphBreak("CAP210", "sizes are put together with what is no integer")
    return TupleValue(items, torch.Size)


def _may_be_sequence(cls: type) -> bool:
    """Whether a class has slots for a sequence's operations: its own in C, and any class made at run time."""
    return bool(cls.__flags__ & _HEAP_TYPE) or has_member(cls, "__len__") or has_member(cls, "__contains__")


def _content(value: Value) -> Value | None:
    """What an object of a class made from a container holds."""
    kinds = (SequenceValue, DictValue, SetValue)
    return value.base if isinstance(value, ObjectValue) and isinstance(value.base, kinds) else None


def _sample(value: Value, as_index: bool = True) -> tuple[Any] | None:
    """An object of a value's class, as far as the operators of Python's own classes tell; None if there is none.
    ``as_index``: what can be an index is not like others."""
    if isinstance(value, Const):
        return (value.value,)
    cls = value.python_type()
    if isinstance(value, ObjectValue):
        base = builtin_base(cls)
        if (base is object or issubclass(base, BaseException)) and not (
            as_index and has_member(cls, "__index__")
        ):
            return (type(message_name(cls), (), {})(),)
        return (type(message_name(cls), (base,), {})(),) if base in _EMPTY else None
    return (cls(),) if cls in (*_EMPTY, torch.Size, collections.deque) else None


def is_mutable(value: Value) -> bool:
    """Whether two paths to such an object could turn out to lead to one."""
    kinds = (TensorValue, ObjectValue, ListValue, DictValue, SetValue, ArrayValue, OpaqueValue)
    return isinstance(value, kinds)


def _is_no_operand(value: Value) -> bool:
    """Whether comparing a tensor with the value is left to identity."""
    if isinstance(value, Const):
        return is_none(value)
    return isinstance(value, (SequenceValue, DictValue, ObjectValue))


def _number(value: Value) -> Any:
    if isinstance(value, SymValue):
        return value.expr
    if isinstance(value, Const) and isinstance(value.value, (int, float)):
        return int(value.value) if isinstance(value.value, bool) else value.value
    return None
