"""Operations, attributes and methods of tensors that data choose (``content/choices.py``)."""

from __future__ import annotations

import types

import torch

from dynamo_capture.semantics.tensors.content import choices
from dynamo_capture.semantics.tensors.methods import METHODS
from dynamo_capture.semantics.tensors.operations import Operation
from dynamo_capture.values import BuiltinMethod, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.tensors.chosen import ChosenValue


def by_choices(tx: Context, call: Operation) -> Value | None:
    """An operation that only reads chosen tensors."""
    if not tx.tensors.chooses or not choices.has_choice(tx, [*call.args, *call.kwargs.values()]):
        return None
    count = len(call.args)
    if not call.kwargs:
        run = lambda args: tx.tensors.operation(call.op, call.target, call.function, args, {})  # noqa: E731
        each = choices.for_each(tx, call.name, call.args, run)
        if each is None:
            each = choices.of_each(tx, call.name, call.args, run)
        if each is not None:
            return each
    values, made = choices.with_contents(tx, call.name, [*call.args, *call.kwargs.values()])
    tx.tensors.stand_ins += made
    kwargs = dict(zip(call.kwargs, values[count:], strict=True))
    result = tx.tensors.operation(call.op, call.target, call.function, values[:count], kwargs)
    choices.check_result(tx, made, result)
    return result


def method_beside(
    tx: Context, owner: TensorValue, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value | None:
    """``tensor.name(...)``, where data choose one of the arguments."""
    if not tx.tensors.chooses or not choices.has_choice(tx, [*args, *kwargs.values()]):
        return None
    if not kwargs:
        run = lambda values: tx.tensors.call_method(values[0], name, values[1:], {})  # noqa: E731
        each = choices.of_each(tx, name, [owner, *args], run)
        if each is not None:
            return each
    values, made = choices.with_contents(tx, name, [owner, *args, *kwargs.values()])
    tx.tensors.stand_ins += made
    given = dict(zip(kwargs, values[1 + len(args) :], strict=True))
    result = tx.tensors.call_method(values[0], name, values[1 : 1 + len(args)], given)
    choices.check_result(tx, made, result)
    return result


def stand_in(tx: Context, chosen: ChosenValue) -> TensorValue:
    """A tensor equal to the chosen one at this point."""
    found = choices.content(tx, chosen)
    tx.tensors.stand_ins.append(found)
    return found


def attribute(tx: Context, chosen: ChosenValue, name: str) -> Value:
    """``chosen.name``: what the candidates have in common."""
    if not issubclass(chosen.python_type(), torch.Tensor):
        raise chosen.unknown(f"the attribute {name!r}")
    if name in choices.ATTRIBUTES:
        return tx.tensors.get_attr(stand_in(tx, chosen), name)
    if isinstance(getattr(torch.Tensor, name, None), (types.FunctionType, types.MethodDescriptorType)):
        return BuiltinMethod(chosen, name)
    raise chosen.unknown(f"the attribute {name!r}")


def method(tx: Context, chosen: ChosenValue, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``chosen.name(...)``: a fact, or an operation."""
    function = getattr(torch.Tensor, name, None)
    if not issubclass(chosen.python_type(), torch.Tensor) or function is None:
        raise chosen.unknown(f"the method {name!r}")
    if name in choices.FACTS:
        return tx.tensors.call_method(stand_in(tx, chosen), name, args, kwargs)
    if name in METHODS or not isinstance(function, types.MethodDescriptorType):
        raise chosen.unknown(f"the method {name!r}")
    return tx.tensors.operation("call_method", name, function, [chosen, *args], kwargs)
