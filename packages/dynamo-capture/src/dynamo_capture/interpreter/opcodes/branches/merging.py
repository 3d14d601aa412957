"""A branch that only data decide, whose sides do nothing but give variables constants: the graph goes on behind it.

    for p in parameters:
        if not torch.isfinite(p.grad).all():
            found = True                # found = True if <the graph's answer> else found

Which of the constants a variable has, the replacement code finds out when the graph has run (``ChosenValue``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import torch

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.semantics.numbers import floats
from dynamo_capture.semantics.tensors.content import conditions
from dynamo_capture.semantics.tensors.content.choices import choose, is_open
from dynamo_capture.semantics.tensors.content.conditions import as_tensor
from dynamo_capture.values import Const, TensorValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.floating import RuntimeFloat

_LONGEST: Final = 16
"""Instructions of one side."""
_JUMPS: Final = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})


def merged(frame: Frame, step: Step, following: int, jumps_if: bool) -> int | None:
    """Where both sides of a jump come together, once the variables that they set have been; None where it is not so.

    The value that decides is on the stack. ``step`` is the jump, taken where its truth is ``jumps_if``; ``following``
    is where it leads otherwise.
    """
    condition = frame.stack[-1]
    if not (isinstance(condition, DataCondition) or is_open(condition)) or frame.is_generator:
        return None
    jumping, passing = _side(frame.steps, step.target), _side(frame.steps, following)
    place = next((place for place in passing if place in jumping), None)
    if place is None:
        return None
    yes, no = (jumping[place], passing[place]) if jumps_if else (passing[place], jumping[place])
    values: dict[str, Value] = {}
    for name in {**yes, **no}:
        known = frame.variables.get(name)
        one, other = (side.get(name, known) for side in (yes, no))
        if one is None or other is None or not all(map(_is_constant, (one, other, known or one))):
            return None
        held = as_tensor(frame.tx, condition) if isinstance(condition, DataCondition) else condition
        assert isinstance(held, TensorValue)
        chosen = chosen_value(frame.tx, held, one, other)
        if chosen is None:
            return None
        values[name] = chosen
    frame.variables.update(values)
    frame.stack.pop()
    return place


def _side(steps: Sequence[Step], place: int) -> dict[int, dict[str, Value]]:
    """Where one side leads, in order, as long as it only stores constants: the variables that are set by then."""
    found: dict[int, dict[str, Value]] = {}
    stores: dict[str, Value] = {}
    for _ in range(_LONGEST):
        if place in found or place >= len(steps):
            break
        found[place] = dict(stores)
        step = steps[place]
        if step.opname in _JUMPS:
            place = step.target
        elif step.opname == "NOP":
            place += 1
        elif step.opname == "LOAD_CONST" and steps[place + 1].opname == "STORE_FAST":
            stores[steps[place + 1].argval] = step.argval
            place += 2
        else:
            break
    return found


def _is_constant(value: Value | None) -> bool:
    """Whether a variable has a constant, or one of some: nothing that could tell when it is dropped."""
    if isinstance(value, ChosenValue):
        return all(map(_is_constant, value.candidates()))
    if isinstance(value, (RuntimeFloat, DataCondition)):
        return True
    return type(value) is Const and type(value.value) in _PLAIN


_PLAIN: Final = (bool, int, float, str, type(None))


def chosen_value(tx: Context, condition: TensorValue, yes: Value, no: Value) -> Value | None:
    """``yes if condition else no``; None where there is no such value."""
    if _are_same(yes, no):
        return no
    if (of_bools := conditions.chosen(tx, condition, yes, no)) is not None:
        return of_bools
    if (of_floats := floats.chosen(tx, condition, yes, no)) is not None:
        return of_floats
    if isinstance(no, ChosenValue) and _are_same(yes, no.yes) and _join(condition, no.condition):
        condition, no = _of_both(tx, torch.logical_or, condition, no.condition), no.no
    elif isinstance(yes, ChosenValue) and _are_same(yes.no, no) and _join(condition, yes.condition):
        condition, yes = _of_both(tx, torch.logical_and, condition, yes.condition), yes.yes
    return choose(tx, _kept(tx, condition), yes, no)


def _kept(tx: Context, condition: TensorValue) -> TensorValue:
    """The truth of a tensor as it is now, which is read when the graph has run: the program may write to the tensor."""
    if condition.meta.spec.dtype is torch.bool:
        return one_tensor(condition.call_method(tx, "clone", [], {}))
    return one_tensor(tx.tensors.call_function(torch.ne, [condition, Const(0)], {}))


def _of_both(tx: Context, function: Any, one: TensorValue, other: TensorValue) -> TensorValue:
    return one_tensor(tx.tensors.call_function(function, [one, other], {}))


def _join(one: TensorValue, other: TensorValue) -> bool:
    """Whether the graph can compute one answer of two."""
    specs = [one.meta.spec, other.meta.spec]
    return not any(spec.sizes for spec in specs) and specs[0].device == specs[1].device


def _are_same(one: Value, other: Value) -> bool:
    if type(one) is not Const or type(other) is not Const:
        return False
    return type(one.value) is type(other.value) and repr(one.value) == repr(other.value)


def as_condition(value: Value) -> Value:
    """The tensor whose truth is that of a constant which it has chosen, if there is one; else the value."""
    if type(value) is ChosenValue and type(value.yes) is Const and type(value.no) is Const:
        return value.condition if value.yes.value and not value.no.value else value
    return value
