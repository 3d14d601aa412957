"""Functions and loops that are left to Python as a whole, and what is around them is not.

    def positions(grid):                    # grid: the sizes of now more and now fewer images
        found = []
        for h, w in grid.tolist():          # each number of images is another loop, and so another graph
            found.append(torch.arange(h * w))
        return torch.cat(found)

A graph that followed such a loop would have to be made again for each number of items. The call of the function is
where the graph ends instead, Python runs it, and what comes after has one graph for all. Where the function does much
more than that, it is the loop alone that Python runs (decision 0085).
"""

from __future__ import annotations

import operator
from types import CodeType

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.bytecode.loops import head_behind, loop_around
from dynamo_capture.foundation.break_kinds import VARYING_ITERATION, VARYING_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.skip_rules import is_torchs, is_worth_capturing, looks_up_module
from dynamo_capture.frames.frame import Frame
from dynamo_capture.session.known_functions import Loop, Part, key_of
from dynamo_capture.values import Lazy, SymValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import NumberList

_MOST_LOOKUPS = 3
"""Modules of one container for which there is a version each."""


def note_module_call(tx: Context) -> None:
    """A module that has others inside is called."""
    tx.policy.functions.note_module_call(frame.code for frame in tx.frames)


def note_number_taken(tx: Context) -> None:
    """Python is given a number of a tensor."""
    loop = _innermost_loop(tx)
    if loop is not None:
        tx.policy.functions.loops_of_data[key_of(loop)] = loop


def parts_around(tx: Context, argument: TensorValue | None = None) -> list[Part]:
    """What Python could run as a whole, so that the graph ends there instead of in the instruction that is being
    traced, that to be asked first in front: the call of the innermost function of the program that has a name, then
    that of a comprehension in it, if that is a function, then the loop of the function that is gone through. None where
    the graph must not end.

    Functions that are called for a row of ``argument`` do not count: who calls them goes through it."""
    if tx.policy.is_fullgraph:
        return []
    found: list[Frame] = []
    around: Frame | None = None
    for frame in reversed(tx.frames):
        if not _is_of_program(frame):
            continue
        around = frame
        if argument is not None and _takes_row(frame, argument):
            found = []
        elif not frame.code.co_name.startswith("<"):
            found.insert(0, frame)
            break
        elif not found:
            found.append(frame)
    parts: list[Part] = [frame.code for frame in found if frame is not tx.frames[0] and _can_be_called(frame)]
    loop = None if around is None else _loop_in(around)
    return parts if loop is None else [*parts, loop]


def limit_lookups(tx: Context, number: SymValue) -> None:
    """``experts[n]``: which module that is decides what is traced, so that each number has a version. After some the
    graph ends there, and what comes after has one version for all modules of one form."""
    if not looks_up_module(tx.frames[-1].code):
        return
    value = tx.env.hint(number.expr)
    if tx.policy.has_too_many_values(f"lookup: {number.expr}", value, _MOST_LOOKUPS):
        raise GraphBreak(VARYING_NUMBER, f"{number.expr} says which module of a container it is")


def _innermost_loop(tx: Context) -> Loop | None:
    found = next((frame for frame in reversed(tx.frames) if _is_of_program(frame)), None)
    return None if found is None else _loop_in(found)


def _is_of_program(frame: Frame) -> bool:
    return is_worth_capturing(frame.code, frame.globals.real) and not is_torchs(frame.code)


def _can_be_called(frame: Frame) -> bool:
    return not frame.is_generator and not frame.tx.resumes.is_resume_function(frame.code)


def _loop_in(frame: Frame) -> Loop | None:
    """The loop that a frame is in; None where the graph cannot end at it."""
    if frame.is_generator or frame.exceptions:
        return None
    head = loop_around(decoded(frame.code).flow, max(frame.next - 1, 0))
    return None if head is None else Loop(*frame.tx.resumes.origin(frame.code, head))


def _takes_row(frame: Frame, argument: TensorValue) -> bool:
    names = frame.code.co_varnames[: frame.code.co_argcount + frame.code.co_kwonlyargcount]
    values = [frame.variables.get(name) for name in names]
    values = [value.value if isinstance(value, Lazy) else value for value in values]
    return any(_is_row(value, argument) for value in values)


def _is_row(value: Value | None, argument: TensorValue) -> bool:
    """Whether a value is a part of a tensor that one index has taken, or a list of its numbers."""
    if isinstance(value, NumberList):
        value = value.tensor
    if not isinstance(value, TensorValue) or value.meta.spec.sizes != argument.meta.spec.sizes[1:]:
        return False
    return value.node.target is operator.getitem and argument in value.follows_from


def part_around(tx: Context) -> Part | None:
    """The first of these that can be left, and is not yet."""
    functions = tx.policy.functions
    found = filter(functions.can_leave, parts_around(tx))
    return next((part for part in found if not functions.has_left(part)), None)


def leave_loop(tx: Context, what: str) -> None:
    """The number of items of ``what`` is about to be fixed, and differs from call to call: a graph break that leaves to
    Python what goes through them, if that can be left."""
    part = part_around(tx)
    if part is not None:
        raise GraphBreak(VARYING_ITERATION, f"{_described(part)} goes through {what}", leaves=part)


def leave_loop_of_data(tx: Context) -> None:
    """As ``leave_loop``, for rounds that a size counts, if in each of them Python was given numbers of tensors."""
    known = tx.policy.functions.loops_of_data
    loop = _innermost_loop(tx) if known else None
    if loop is not None and key_of(loop) in known:
        leave_loop(tx, "now more and now fewer items")


def _described(part: Part) -> str:
    return f"a loop in {part.code.co_qualname}" if isinstance(part, Loop) else part.co_qualname


def check_not_left(tx: Context, code: CodeType) -> None:
    """A graph break at a call of a function that is left to Python."""
    if tx.policy.is_left(code):
        raise GraphBreak(
            VARYING_ITERATION, f"{code.co_qualname} goes through now more and now fewer items", opens=True
        )


def left_loop(frame: Frame, index: int) -> int | None:
    """The FOR_ITER of a loop that is left to Python, if that, or its GET_ITER, is instruction ``index`` of a frame."""
    functions = frame.tx.policy.functions
    if not functions.loops_left:
        return None
    head = head_behind(decoded(frame.code).flow, index)
    if head is None:
        head = index
    if frame.steps[head].opname != "FOR_ITER":
        return None
    loop = Loop(*frame.tx.resumes.origin(frame.code, head))
    return head if frame.tx.policy.is_loop_left(loop) else None


def check_loop_not_left(frame: Frame, index: int) -> None:
    """A graph break at the beginning of a loop that is left to Python: instruction ``index`` of a frame."""
    if left_loop(frame, index) is not None:
        what = f"a loop in {frame.code.co_qualname} goes through now more and now fewer items"
        raise GraphBreak(VARYING_ITERATION, what)
