"""What Python raises for operands that an operator does not take: the real operator is asked, with samples of their
classes."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.class_members import has_member, member
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.runtime.replacement_calls import builtin_base
from dynamo_capture.values import (
    Const,
    DictValue,
    FunctionValue,
    ObjectValue,
    SequenceValue,
    SetValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.operator_methods import (
    BINARY,
)
from dynamo_capture.values.tensors.chosen import ChosenValue

TEXTS = (str, bytes, bytearray)
_EMPTY = (list, tuple, dict, set, frozenset)
_SHOWN = {"**": "** or pow()"}
"""What errors call an operator, where that is not as it is written."""


def refused(tx: Context, lhs: Value, rhs: Value, symbol: str) -> Exception:
    """What Python raises for operands of these classes, whose special methods have been asked, if it does for any
    content; else a graph break."""
    unknown = GraphBreak(OBJECT_OPERATION, f"{symbol} between {lhs.describe()} and {rhs.describe()}")
    of_numpy = any(issubclass(value.python_type(), numpy_types.SCALARS) for value in (lhs, rhs))
    formats = symbol in ("%", "%=") and issubclass(lhs.python_type(), TEXTS)
    is_repetition = symbol in ("*", "*=")
    one, other = _sample(lhs, is_repetition), _sample(rhs, is_repetition)
    if isinstance(lhs, ObjectValue) and lhs.python_type() is rhs.python_type():
        other = one  # the right operand of an operator between objects of one class is not asked
    repeats = is_repetition and any(
        isinstance(value, ObjectValue) and tx.attributes.has_special(value, "__index__")
        for value in (lhs, rhs)
    )
    if of_numpy or formats or repeats:
        return unknown
    if one is not None and other is not None:
        tx.fold(lambda: BINARY[symbol].function(one[0], other[0]))
        return unknown
    known = (Const, SequenceValue, DictValue, SetValue, ObjectValue, FunctionValue)
    computes = any(  # the class that it is made from may answer, in C
        sample is None and isinstance(value, ObjectValue) and builtin_base(value.python_type()) is not object
        for value, sample in ((lhs, one), (rhs, other))
    )
    if computes or not (isinstance(lhs, known) and isinstance(rhs, known)):
        return unknown
    names = lhs.class_name(tx), rhs.class_name(tx)
    text = f"unsupported operand type(s) for {_SHOWN.get(symbol, symbol)}: {names[0]!r} and {names[1]!r}"
    return tx.raises(TypeError, text)


def refuse(tx: Context, function: Callable[..., Any], lhs: Value, rhs: Value) -> None:
    """Raise what Python raises for operands of these classes, if it does for any content."""
    one, other = _sample(lhs), _sample(rhs)
    if one is not None and other is not None:
        tx.fold(lambda: function(one[0], other[0]))


def _sample(value: Value, as_index: bool = True) -> tuple[Any] | None:
    """An object of a value's class, as far as the operators of Python's own classes tell; None if there is none.
    ``as_index``: what can be an index is not like others."""
    if isinstance(value, Const):
        return (value.value,)
    if isinstance(value, FunctionValue):
        return (_sample,)
    cls = value.python_type()
    if isinstance(value, ObjectValue):
        base = builtin_base(cls)
        if (base is object or issubclass(base, BaseException)) and not (
            as_index and has_member(cls, "__index__")
        ):
            return (type(message_name(cls), (), {})(),)
        return (_declining(cls, base),) if base in _EMPTY else None
    if isinstance(value, TupleValue) and cls not in (tuple, torch.Size) and builtin_base(cls) is tuple:
        return (type(message_name(cls), (tuple,), {})(),)
    return (cls(),) if cls in (*_EMPTY, torch.Size, collections.deque) else None


def _declining(cls: type, base: type) -> Any:
    """An empty container of a class of this name, whose operators' methods in Python, which have been asked, decline:
    one of these takes the place of what the container's own class does, or words, where all decline."""
    own = {name: _declines for name in _METHODS if member(cls, name) is not member(base, name)}
    return type(message_name(cls), (base,), own)()


def _declines(*_: object) -> Any:
    return NotImplemented


_METHODS = frozenset(name for row in BINARY.values() for name in (row.left, row.right) if name is not None)


def check_containers(tx: Context, symbol: str, *operands: Value) -> None:
    """End the graph where torch is given a container of another class than Python's: its refusal names the class. Or
    one of any class, beside a tensor of which a ``__torch_function__`` is asked: what that is asked about is then one
    step of what Python does with the container (``items += tensor`` asks for the tensor's dimension first)."""
    asked = any(isinstance(one, TensorValue) and one.is_overridden(tx) for one in operands)
    for operand in operands:
        if isinstance(operand, ChosenValue):  # whose candidates' forms are compared
            continue
        cls = operand.python_type()
        plain = (tuple, list, dict, set)
        is_container = isinstance(operand, (SequenceValue, DictValue, SetValue)) or issubclass(cls, plain)
        if (is_container and cls not in plain) or (asked and (is_container or issubclass(cls, TEXTS))):
            raise GraphBreak(OBJECT_OPERATION, f"{symbol} between a tensor and {operand.describe()}")


def naming(tx: Context, raised: UserRaise, symbol: str) -> UserRaise:
    """A refusal of the plain operator as one of the augmented operator for which it stands."""
    given = raised.value.attrs.get("args") if isinstance(raised.value, ObjectValue) else None
    text = given.items[0] if isinstance(given, TupleValue) and given.items else None
    plain = symbol.removesuffix("=")
    refusal = f"unsupported operand type(s) for {_SHOWN.get(plain, plain)}:"
    if symbol == plain or not (isinstance(text, Const) and str(text.value).startswith(refusal)):
        return raised
    return tx.raises(
        TypeError, f"unsupported operand type(s) for {symbol}:{text.value.removeprefix(refusal)}"
    )
