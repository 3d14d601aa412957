"""``if`` that data alone decide, with or without ``else``, around instructions that write to tensors or give variables
values: both sides are done, and the variables have what the answer chooses.

if a != 0:                          # ratio = r if a != 0 else ratio, which the replacement code finds out, or
    ratio = (b / a).item()          # torch.where where nobody can tell which object it is
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

import torch

from dynamo_capture.foundation.errors import CapturedAnew
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.merging import chosen_value
from dynamo_capture.interpreter.opcodes.branches.sides import Outcome, Side, read_behind, sides_of
from dynamo_capture.interpreter.opcodes.branches.skipping import is_harmless
from dynamo_capture.semantics.regions.steered.written_branches import done_and_taken_back, may_be_written
from dynamo_capture.semantics.tensors.content.conditions import is_bool
from dynamo_capture.semantics.tensors.content.small_buffers import may_be_known
from dynamo_capture.values import Const, TensorValue, Value, one_tensor
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.chosen import ChosenValue
from dynamo_capture.values.tensors.floating import LateFloat, RuntimeFloat
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES

_MOST_CANDIDATES: Final = 8
_PLAIN: Final = (bool, int, float, str, type(None))
_TOP: Final = "<top of the stack>"


def branched(frame: Frame, step: Step, following: int, jumps_if: bool) -> bool:
    """Do both sides of the jump ``step``, which is taken where the truth of the value on the stack is ``jumps_if``, and
    goes to ``following`` otherwise; go on where they come together. False: it is another kind of branch, or its answer
    is known."""
    tx, condition = frame.tx, frame.stack[-1]
    if frame.is_generator or not may_be_written(tx, condition):
        return False
    found = sides_of(frame, step, following, jumps_if)
    if found is None:
        return False
    place, sides = found
    names = frozenset[str]().union(*(read_behind(frame, side) for side in sides))
    done = done_and_taken_back(tx, condition, sides, partial(_fits, frame, sides, names))
    if done is None:
        return False
    answer, outcomes = done
    merged = {}
    for name, pair in _pairs(frame, sides, names, outcomes).items():
        merged[name] = _merged(tx, answer, pair, outcomes)
    stack = list(sides[0].stack)
    if _TOP in merged:
        stack.append(merged.pop(_TOP))
    frame.variables.update(merged)
    frame.stack[:] = stack
    frame.next = place
    return True


def _pairs(
    frame: Frame, sides: Sequence[Side], names: frozenset[str], outcomes: Sequence[Outcome]
) -> dict[str, tuple[Value | None, Value | None]]:
    """What each variable, and the top of the stack, has where the answer is yes, and where it is no."""
    by_answer = {side.holds: outcome for side, outcome in zip(sides, outcomes, strict=True)}
    yes, no = (by_answer.get(answer, Outcome({}, None, [])) for answer in (True, False))
    found: dict[str, tuple[Value | None, Value | None]] = {}
    for name in sorted(names):
        before = frame.variables.get(name)
        found[name] = (yes.sets.get(name, before), no.sets.get(name, before))
    if yes.top is not None or no.top is not None:
        found[_TOP] = (yes.top, no.top)
    return found


def _fits(frame: Frame, sides: Sequence[Side], names: frozenset[str], outcomes: Sequence[Outcome]) -> bool:
    """Whether the graph can go on with what both sides leave behind, and nobody can tell what else they let go of."""
    if (names or any(outcome.top for outcome in outcomes)) and _may_be_known(frame):
        return False
    others = [value for outcome in outcomes for name, value in outcome.sets.items() if name not in names]
    pairs = _pairs(frame, sides, names, outcomes).values()
    return all(map(is_harmless, others)) and all(_may_be_chosen(*pair) for pair in pairs)


def _may_be_known(frame: Frame) -> bool:
    """Whether the answer follows from a table of an object: a version of the code for each content knows it."""
    condition = frame.stack[-1]
    tensor = condition.tensor if isinstance(condition, DataCondition) else condition
    return isinstance(tensor, TensorValue) and may_be_known(frame.tx, tensor)


def _may_be_chosen(yes: Value | None, no: Value | None) -> bool:
    if yes is None or no is None:
        return False
    if yes is no:
        return True
    candidates = [*_candidates(yes), *_candidates(no)]
    return len(candidates) <= _MOST_CANDIDATES and all(map(_is_plain, candidates))


def _candidates(value: Value) -> list[Value]:
    return list(value.candidates()) if isinstance(value, ChosenValue) else [value]


def _is_plain(value: Value) -> bool:
    """Whether it is a tensor, a number or a constant, which a variable may have by choice of data."""
    if isinstance(value, (RuntimeFloat, DataCondition)):
        return not isinstance(value, LateFloat)
    if type(value) is TensorValue:
        return value.meta.cls in PLAIN_CLASSES
    return type(value) is Const and type(value.value) in _PLAIN


def _merged(
    tx: Context, answer: TensorValue, pair: tuple[Value | None, Value | None], outcomes: Sequence[Outcome]
) -> Value:
    """What a variable has behind both sides."""
    yes, no = pair
    assert yes is not None
    assert no is not None
    if yes is no:
        return yes
    made = _new(tx, answer, yes, no, outcomes)
    if made is not None:
        return made
    found = chosen_value(tx, answer, yes, no)
    if found is None or (is_bool(yes) and is_bool(no) and not is_bool(found)):
        tx.policy.functions.not_done.add(tx.where())
        raise CapturedAnew
    return found


def _new(
    tx: Context, answer: TensorValue, yes: Value, no: Value, outcomes: Sequence[Outcome]
) -> TensorValue | None:
    """A new tensor in the place of two that the sides have made; None where it may be told which one it is."""
    if not isinstance(yes, TensorValue) or not isinstance(no, TensorValue) or yes.meta != no.meta:
        return None
    if not (_is_own(yes, outcomes) and _is_own(no, outcomes)):
        return None
    made = one_tensor(tx.tensors.call_function(torch.where, [answer, yes, no], {}))
    return made if made.meta == yes.meta else None


def _is_own(value: TensorValue, outcomes: Sequence[Outcome]) -> bool:
    """Whether it is a tensor that a side has made, and that nothing else has or shows."""
    if type(value) is not TensorValue or value.content is not None or value.meta.cls is not torch.Tensor:
        return False
    is_alone = value.root is value and value.memory is value and not value.views and not value.is_shown
    held = [one for outcome in outcomes for one in outcome.values() if one is value]
    return (
        is_alone and not value.attrs and len(held) == 1 and any(value in outcome.made for outcome in outcomes)
    )
