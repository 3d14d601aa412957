"""``or`` and ``and`` of bools that only data can answer: both operands are computed, and the graph goes on with one.

if g.isnan().any() or g.isinf().any():          # two jumps, of which the second decides by both answers
    found = True
found = found or bool(g.isnan().any())          # one value, the bool of either
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.walking import end_of, landing, run_steps
from dynamo_capture.semantics.regions.steered.needless_operands import may_be_computed
from dynamo_capture.semantics.tensors.content.choices import is_open
from dynamo_capture.semantics.tensors.content.conditions import as_tensor, asked, combined, is_bool, negated
from dynamo_capture.values import TensorValue, Value
from dynamo_capture.values.numbers.condition import DataCondition

_LONGEST: Final = 48
_OTHERS: Final = frozenset(
    {
        *("PUSH_NULL", "PRECALL", "KW_NAMES", "COMPARE_OP", "IS_OP", "CONTAINS_OP", "NOP"),
        *("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE", "GET_ITER"),
    }
)
"""Instructions that bind no name and go nowhere else."""
_JUMPS: Final = {
    **dict.fromkeys(("POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE", "POP_JUMP_IF_TRUE"), True),
    **dict.fromkeys(("POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE", "POP_JUMP_IF_FALSE"), False),
}


def joined_jumps(frame: Frame, step: Step, following: int, jumps_if: bool) -> int | None:
    """The next jump, which decides by its own answer and that on the stack, once their answer is on the stack: None
    where it is not so. ``step`` is the jump, taken where the truth is ``jumps_if``; ``following`` is where it leads
    otherwise."""
    if not isinstance(frame.stack[-1], (DataCondition, TensorValue)):
        return None
    end = _end(frame.steps, following, step)
    if end is None:
        return None
    second = frame.steps[end + (frame.steps[end].opname == "TO_BOOL")]
    second_if = _JUMPS.get(second.opname)
    target = landing(frame.steps, step.target)
    is_same = second_if is not None and landing(frame.steps, second.target) == target
    if second_if is None or not (is_same or landing(frame.steps, second.index + 1) == target):
        return None
    is_either = is_same is second_if
    return (
        end if _joined(frame, following, end, asks_for=jumps_if is is_either, is_either=is_either) else None
    )


def joined_values(frame: Frame, step: Step, is_either: bool) -> int | None:
    """Where ``a or b`` (``is_either``) or ``a and b`` has its value, once that is on the stack; None where it is not a
    bool that data answer."""
    if not isinstance(frame.stack[-1], DataCondition):
        return None
    end = _end(frame.steps, frame.next, step)
    if end is None:
        return None
    ends = end == step.target or (
        frame.steps[end].opname == step.opname and frame.steps[end].target == step.target
    )
    return end if ends and _joined(frame, frame.next, end, asks_for=True, is_either=is_either) else None


def joined_copies(frame: Frame, step: Step, is_either: bool) -> int | None:
    """``joined_values`` as CPython 3.12 has it: ``step`` jumps by a copy of the value, which is dropped otherwise."""
    steps, copy = frame.steps, step.index - 1
    if steps[copy].opname == "TO_BOOL":
        copy -= 1
    if steps[copy].opname != "COPY" or steps[copy].arg != 1 or steps[step.index + 1].opname != "POP_TOP":
        return None
    if not isinstance(frame.stack[-2], DataCondition):
        return None

    def ends(place: int) -> bool:
        if place == step.target or steps[place].opname != "COPY":
            return place == step.target
        jump = steps[place + 1 + (steps[place + 1].opname == "TO_BOOL")]
        return jump.opname == step.opname and jump.target == step.target

    first = step.index + 2
    end = end_of(steps[first : first + _LONGEST], step, _OTHERS, ends)
    if end is None:
        return None
    copied = frame.stack.pop()
    if _joined(frame, first, end, asks_for=True, is_either=is_either):
        return end
    frame.stack.append(copied)
    return None


def _end(steps: Sequence[Step], first: int, jump: Step) -> int | None:
    """The instruction with which the second operand has been computed; None: it is computed otherwise."""

    def ends(place: int) -> bool:
        name = steps[place].opname
        return name == "TO_BOOL" or name in _JUMPS or name == jump.opname or place == jump.target

    return end_of(steps[first : first + _LONGEST], jump, _OTHERS, ends)


def _joined(frame: Frame, first: int, end: int, *, asks_for: bool, is_either: bool) -> bool:
    """Put on the stack whether the value on it is ``asks_for``, and the operand that the instructions from ``first`` to
    ``end`` compute: either of them, or both."""
    tx, stack, value = frame.tx, list(frame.stack[:-1]), frame.stack[-1]
    place, line = frame.next, frame.line
    condition = asked(tx, value)
    if condition is None:
        return False
    as_tensor(tx, condition)

    def run() -> Value:
        run_steps(frame, stack, first, end)
        return frame.stack[-1]

    kinds: list[bool] = []

    def tried() -> Value:
        found = run()
        kinds.append(len(frame.stack) == len(stack) + 1 and (is_bool(found) or is_open(found)))
        return found

    if may_be_computed(tx, tried) and kinds == [True]:
        other = run()
        known = other if is_bool(other) else asked(tx, other)
        first_answer = condition if asks_for else negated(tx, condition)
        if known is not None and first_answer is not None:
            found = combined(tx, "|" if is_either else "&", first_answer, known)
            if found is not None:
                frame.stack[:] = [*stack, found]
                return True
    frame.stack[:] = [*stack, value]
    frame.next, frame.line = place, line
    return False
