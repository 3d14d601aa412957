"""Which inlined frame gives an instruction its result, and what Python makes of what that frame returns.

    x + y       the frame of type(x).__add__; where it returns NotImplemented, y is asked
    obj.name    the frame of the property's getter; where it raises AttributeError, __getattr__ is asked
    if obj:     the frame of type(obj).__bool__ or __len__, of which the truth counts

A graph that breaks in such a frame can leave the frames around it one by one: the caller goes on with the frame's
answer. What is done to it is a function of ``suspension``, which runs in Python where the break is, and is traced
after it.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import torch

from dynamo_capture.bytecode.versions.running import RULES
from dynamo_capture.foundation.class_members import has_member, is_subtype, member
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.runtime import suspension
from dynamo_capture.semantics.attributes.lookup import goes_first
from dynamo_capture.values import (
    Const,
    FunctionValue,
    MapIterator,
    MethodValue,
    ObjectIterator,
    ObjectValue,
    PartialValue,
    Value,
)
from dynamo_capture.values.operator_methods import BINARY, COMPARE, UNARY


class Answer(NamedTuple):
    """The code of which a frame answers an instruction, and ``finish(frame's call, *arguments)``, if its result is not
    the instruction's own."""

    codes: list[CodeType]
    finish: Callable[..., Any] | None = None
    arguments: tuple[Value, ...] = ()


_NONE = Answer([])


def answer(caller: Frame, step: Step) -> Answer:
    """What answers the instruction that ``caller`` is in; without codes where that is not known."""
    find = _FINDERS.get(step.opname)
    return _NONE if find is None else find(caller, step)


def _of_call(caller: Frame, step: Step) -> Answer:
    function = caller.callee
    if function is None:
        return _NONE
    known = _BUILTINS.get(function.value) if type(function) is Const and callable(function.value) else None
    if known is not None and len(caller.operands) == 1:
        name, finish = known
        codes = _special(caller.operands[0], name)
        return Answer(codes, suspension.answered, (Const(finish),)) if finish else Answer(codes)
    if (cls := function.known_class()) is not None:
        codes = _codes_of(getattr(cls, "__init__", None))
        return (
            Answer(codes, suspension.answered, (Const(suspension.instance), caller.made))
            if caller.made is not None
            else _NONE
        )
    return Answer(direct_codes(function))


def direct_codes(function: Value) -> list[CodeType]:
    """The code of which a frame runs when ``function`` is called, with the call's result as its own."""
    match function:
        case FunctionValue():
            return [function.code]
        case MethodValue() | PartialValue():
            return direct_codes(function.function)
        case Const():
            return [*_codes_of(function.value), *_codes_of(substitute_for(function.value))]
        case ObjectValue():
            named = ("__call__", "forward") if issubclass(function.cls, torch.nn.Module) else ("__call__",)
            return [code for name in named for code in _codes_of(member(function.cls, name, None))]
    return []


def _codes_of(function: object) -> list[CodeType]:
    return [function.__code__] if isinstance(function, types.FunctionType) else []


def _special(value: Value, *names: str) -> list[CodeType]:
    """The code of special methods of an object of the program."""
    if not isinstance(value, ObjectValue):
        return []
    return [code for name in names for code in _codes_of(member(value.cls, name, None))]


def _of_binary(caller: Frame, step: Step) -> Answer:
    lhs, rhs = caller.operands
    row = BINARY[step.argval]
    plain = BINARY[row.plain] if row.plain else row
    one, other = lhs.python_type(), rhs.python_type()
    if row.plain and hasattr(one, row.left):
        return _NONE
    if one is not other and is_subtype(other, one):
        return _NONE
    codes = _special(lhs, plain.left)
    if codes and plain.right is not None:
        symbol = Const(step.argval)
        return Answer(
            codes,
            suspension.answered,
            (Const(suspension.of_left_operand), Const(plain.right), symbol, lhs, rhs),
        )
    return _NONE


def _of_comparison(caller: Frame, step: Step) -> Answer:
    lhs, rhs = caller.operands
    if step.arg & RULES.compare_bool:
        return _NONE
    _, left, right = COMPARE[step.argval]
    one, other = lhs.python_type(), rhs.python_type()
    if one is not other and is_subtype(other, one):
        return _NONE
    return Answer(
        _special(lhs, left),
        suspension.answered,
        (Const(suspension.of_comparison), Const(right), Const(step.argval), lhs, rhs),
    )


def _of_unary(caller: Frame, step: Step) -> Answer:
    symbols = {"UNARY_NEGATIVE": "-", "UNARY_POSITIVE": "+", "UNARY_INVERT": "~"}
    return Answer(_special(caller.operands[0], UNARY[symbols[step.opname]][1]))


def _of_attribute(caller: Frame, step: Step) -> Answer:
    owner = caller.operands[0]
    if not isinstance(owner, ObjectValue) or (step.opname == "LOAD_ATTR" and step.arg & 1):
        return _NONE
    if isinstance(member(owner.cls, "__getattribute__", None), types.FunctionType):
        return _NONE
    found = next(
        (base.__dict__[step.argval] for base in owner.cls.__mro__ if step.argval in base.__dict__), None
    )
    arguments = (owner, Const(step.argval))
    if isinstance(found, property):
        return Answer(_codes_of(found.fget), suspension.attribute_answered, arguments)
    if found is not None and goes_first(found):
        return Answer(
            _codes_of(member(type(found), "__get__", None)), suspension.attribute_answered, arguments
        )
    return Answer(_codes_of(member(owner.cls, "__getattr__", None)))


def _of_stored_attribute(caller: Frame, step: Step) -> Answer:
    owner = caller.operands[0]
    if not isinstance(owner, ObjectValue):
        return _NONE
    setter = member(owner.cls, "__setattr__", None)
    if isinstance(setter, types.FunctionType):
        return Answer([setter.__code__])
    found = next(
        (base.__dict__[step.argval] for base in owner.cls.__mro__ if step.argval in base.__dict__), None
    )
    if isinstance(found, property):
        return Answer(_codes_of(found.fset))
    return Answer(_codes_of(member(type(found), "__set__", None)))


def _of_special(name: str) -> Callable[[Frame, Step], Answer]:
    return lambda caller, step: Answer(_special(caller.operands[0], name))


def _of_entering(caller: Frame, step: Step) -> Answer:
    return Answer(_special(caller.operands[0], "__enter__"))


def _of_membership(caller: Frame, step: Step) -> Answer:
    return Answer(
        _special(caller.operands[0], "__contains__"),
        suspension.answered,
        (Const(suspension.of_membership), Const(bool(step.arg))),
    )


def _of_iteration(caller: Frame, step: Step) -> Answer:
    return Answer(
        _special(caller.operands[0], "__iter__"), suspension.answered, (Const(suspension.of_iteration),)
    )


def _of_next(caller: Frame, step: Step) -> Answer:
    (iterator,) = caller.operands
    if isinstance(iterator, ObjectIterator):
        return Answer(_special(iterator.value, "__next__"), suspension.next_answered)
    if isinstance(iterator, MapIterator) and not iterator.keeps:
        return Answer(direct_codes(iterator.function), suspension.next_answered)
    return _NONE


def _of_truth(caller: Frame, step: Step) -> Answer:
    tested = caller.operands[0]
    is_own = isinstance(tested, ObjectValue) and has_member(tested.cls, "__bool__")
    name, finish = ("__bool__", suspension.of_truth) if is_own else ("__len__", suspension.of_size)
    negated = Const(step.opname == "UNARY_NOT")
    return Answer(_special(tested, name), suspension.answered, (Const(finish), negated))


_BUILTINS: dict[Any, tuple[str, Callable[..., Any] | None]] = {
    len: ("__len__", suspension.of_length),
    iter: ("__iter__", suspension.of_iteration),
    next: ("__next__", None),
    abs: ("__abs__", None),
}
_BRANCHES = ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE")
_FINDERS: dict[str, Callable[[Frame, Step], Answer]] = {
    **dict.fromkeys(("CALL", "CALL_KW", "CALL_FUNCTION_EX"), _of_call),
    **dict.fromkeys(("UNARY_NEGATIVE", "UNARY_POSITIVE", "UNARY_INVERT"), _of_unary),
    **dict.fromkeys(("UNARY_NOT", "TO_BOOL", *_BRANCHES), _of_truth),
    **dict.fromkeys(("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_FORWARD_IF_FALSE"), _of_truth),
    **dict.fromkeys(("POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_FALSE"), _of_truth),
    "BINARY_OP": _of_binary,
    "COMPARE_OP": _of_comparison,
    "CONTAINS_OP": _of_membership,
    "LOAD_ATTR": _of_attribute,
    "STORE_ATTR": _of_stored_attribute,
    "BINARY_SUBSCR": _of_special("__getitem__"),
    "STORE_SUBSCR": _of_special("__setitem__"),
    "DELETE_SUBSCR": _of_special("__delitem__"),
    "FOR_ITER": _of_next,
    "GET_ITER": _of_iteration,
    "BEFORE_WITH": _of_entering,
}
