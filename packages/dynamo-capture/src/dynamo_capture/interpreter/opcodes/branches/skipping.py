"""A branch that is skipped where a tensor has no rows, and that would do nothing then: the graph goes on with it.

if rows.numel() == 0:      # goes on behind the `continue`
    continue
out.index_add_(0, rows, expert(x[rows]))

Where autograd follows it, it goes on with it too, and checks that there are rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.liveness import SHOW_VARIABLES, reads_and_writes
from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.branches.walking import landing
from dynamo_capture.semantics.regions.steered.assumed_rows import assumes_rows
from dynamo_capture.semantics.regions.steered.decisive_masks import DecisiveMask, mask_that_decides
from dynamo_capture.semantics.regions.steered.empty_branches import rows_that_decide, skippable
from dynamo_capture.values import Const, SymValue, TensorValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.chosen import ChosenValue
from fx_interface.symbols import Symbol

MOST_STEPS: Final = 400
"""Instructions of a branch."""
_PREFIXES: Final = (
    *("LOAD_", "BUILD_", "BINARY_", "CALL", "UNARY_", "COMPARE_", "FORMAT_", "UNPACK_"),
    *("JUMP_", "POP_JUMP_", "STORE_FAST", "STORE_S", "LIST_", "DICT_"),
)
_OTHERS: Final = frozenset(
    {
        *(
            "PUSH_NULL",
            "PRECALL",
            "KW_NAMES",
            "NOP",
            "COPY",
            "SWAP",
            "POP_TOP",
            "GET_ITER",
            "FOR_ITER",
            "END_FOR",
        ),
        *("TO_BOOL", "IS_OP", "CONTAINS_OP", "MAKE_FUNCTION", "CONVERT_VALUE", "POP_ITER"),
    }
)
"""Instructions that stay in the frame, and change nothing in it but the stack and local variables."""
ALWAYS: Final = frozenset({"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT"})
"""Instructions that only jump."""
_HARMLESS: Final = (TensorValue, Const, SymValue, DataCondition)


def not_skipped(frame: Frame, step: Step, following: int, jumps_if: bool) -> int | None:
    """Where the branch begins that the jump ``step`` skips, or that is skipped behind it, where there are no rows; None
    where it is not so. ``following`` is where the jump leads where the value on the stack is not ``jumps_if``."""
    decides = None if frame.is_generator else _decisive(frame.tx, frame.stack[-1])
    if decides is None:
        return None
    by, empty = decides
    skips, first = (step.target, following) if empty is jumps_if else (following, step.target)
    meeting = landing(frame.steps, skips)
    names = stored_names(frame, first, meeting, step.handler)
    if names is None:
        return None
    stack = frame.stack[:-1]

    def run() -> None:
        run_branch(frame, stack, [], first, meeting, names)

    with left_as_it_is(frame):
        branch = skippable(frame.tx, by, run)
    if branch is None:
        return None
    if not branch.is_harmless:
        rounds = frame.rounds[step.index] = frame.rounds.get(step.index, 0) + 1
        if not assumes_rows(frame.tx, branch, rounds):
            return None
    frame.stack.pop()
    return first


def _decisive(tx: Context, condition: Value) -> tuple[Symbol | DecisiveMask, bool] | None:
    """The number of rows, or the mask, of which a value says whether there are any; and its truth where there are
    none."""
    found = rows_that_decide(tx, condition)
    if found is not None:
        return found
    mask = mask_that_decides(tx, condition)
    return None if mask is None else (mask, mask.empty)


@contextmanager
def left_as_it_is(frame: Frame) -> Iterator[None]:
    """What the block makes of the frame is undone."""
    stack, variables = list(frame.stack), dict(frame.variables)
    place, line, operands = frame.next, frame.line, frame.operands
    try:
        yield
    finally:
        frame.variables.clear()
        frame.variables.update(variables)
        frame.stack[:] = stack
        frame.next, frame.line, frame.operands = place, line, operands


def run_branch(
    frame: Frame, stack: list[Value], given: list[Value], first: int, meeting: int, names: frozenset[str]
) -> None:
    """Run the instructions from ``first`` until control comes to ``meeting``, with what is ``given`` to them on top of
    the stack; a graph break where they leave something behind."""
    run_to(frame, [*stack, *given], first, meeting)
    is_as_before = list(map(id, frame.stack)) == list(map(id, stack))
    if not is_as_before or not all(is_harmless(frame.variables.get(name)) for name in names):
        raise GraphBreak(DATA_NUMBER, "a branch leaves something behind")


def run_to(frame: Frame, stack: Sequence[Value], first: int, meeting: int) -> None:
    """Run the instructions from ``first`` until control comes to ``meeting``, beginning with this on the stack."""
    frame.stack[:] = stack
    frame.next = first
    while landing(frame.steps, frame.next) != meeting:
        inner = frame.steps[frame.next]
        frame.next = inner.index + 1
        frame.line = inner.line
        if inner.run(frame, inner) is not None:
            raise GraphBreak(DATA_NUMBER, "a branch leaves the function")


def stored_names(frame: Frame, first: int, meeting: int, handler: int) -> frozenset[str] | None:
    """The local variables that are set from ``first`` until control comes to ``meeting``, of which none is read behind
    that. None: one is, or control may go elsewhere."""
    names = names_set(frame, first, meeting, handler)
    if names is None or names & decoded(frame.code).live[meeting]:
        return None
    return names


def names_set(frame: Frame, first: int, meeting: int, handler: int) -> frozenset[str] | None:
    """The local variables that are set from ``first`` until control comes to ``meeting``. None: somebody could tell
    when one lets go of what it has, or which have a value, or control may go elsewhere."""
    end = _end(frame.steps, first, meeting, handler)
    if end is None:
        return None
    names = {
        name
        for instruction in decoded(frame.code).body.instructions[first:end]
        for name in reads_and_writes(instruction)[1]
    }
    if names and not SHOW_VARIABLES.isdisjoint(frame.code.co_names):
        return None
    return frozenset(names) if all(is_harmless(frame.variables.get(name)) for name in names) else None


def _end(steps: Sequence[Step], first: int, meeting: int, handler: int) -> int | None:
    """Behind the last instruction from ``first`` on that control may come to in front of ``meeting``."""
    furthest = first
    for step in steps[first : first + MOST_STEPS]:
        if step.index == meeting:
            return step.index if furthest <= meeting else None
        known = step.opname.startswith(_PREFIXES) or step.opname in _OTHERS
        if step.handler != handler or not known or step.opname == "STORE_GLOBAL":
            return None
        if step.target >= 0 and landing(steps, step.target) != meeting:
            if step.target < first:
                return None
            furthest = max(furthest, step.target)
        if step.opname in ALWAYS and landing(steps, step.index) == meeting and furthest <= step.index:
            return step.index + 1
    return None


def is_harmless(value: Value | None) -> bool:
    """Whether nobody can tell when a variable lets go of it."""
    if isinstance(value, TupleValue):
        return all(map(is_harmless, value.items))
    if isinstance(value, ChosenValue):
        return all(map(is_harmless, value.candidates()))
    return value is None or isinstance(value, _HARMLESS)
