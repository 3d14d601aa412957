"""Functions that are left to Python as a whole, and those around them are not.

    def positions(grid):                    # grid: the sizes of now more and now fewer images
        found = []
        for h, w in grid.tolist():          # each number of images is another loop, and so another graph
            found.append(torch.arange(h * w))
        return torch.cat(found)

A graph that followed such a loop would have to be made again for each number of items. The call of the function is
where the graph ends instead, Python runs it, and what comes after has one graph for all (decision 0085).
"""

from __future__ import annotations

import operator
from types import CodeType

from dynamo_capture.foundation.break_kinds import VARYING_ITERATION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.skip_rules import is_torchs, is_worth_capturing
from dynamo_capture.frames.frame import Frame
from dynamo_capture.values import Lazy, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.late_sequences import NumberList


def note_module_call(tx: Context) -> None:
    """A module that has others inside is called."""
    tx.policy.functions.note_module_call(frame.code for frame in tx.frames)


def functions_around(tx: Context, argument: TensorValue | None = None) -> list[CodeType]:
    """The functions whose calls are where a graph could end instead of in the instruction that is being traced, the one
    to be asked first in front: the innermost function of the program that has a name, then a comprehension in it, if
    that is a function. None where the graph must not end, or would be one of the frame that is compiled.

    Functions that are called for a row of ``argument`` do not count: who calls them goes through it."""
    if tx.policy.is_fullgraph:
        return []
    found: list[Frame] = []
    is_of_row = False
    for frame in reversed(tx.frames[1:]):
        if not is_worth_capturing(frame.code, frame.globals.real) or is_torchs(frame.code):
            continue
        if argument is not None and _takes_row(frame, argument):
            found, is_of_row = [], True
        elif not frame.code.co_name.startswith("<"):
            found.insert(0, frame)
            break
        elif not found and not is_of_row:
            found.append(frame)
    return [
        frame.code
        for frame in found
        if not frame.is_generator and not tx.resumes.is_resume_function(frame.code)
    ]


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


def function_around(tx: Context) -> CodeType | None:
    """The first of these that is known to be a small part of the program."""
    return next(filter(tx.policy.functions.is_small, functions_around(tx)), None)


def leave_loop(tx: Context, what: str) -> None:
    """The number of items of ``what`` is about to be fixed, and differs from call to call: a graph break that leaves to
    Python the function that goes through them, if there is one."""
    code = function_around(tx)
    if code is not None:
        raise GraphBreak(VARYING_ITERATION, f"{code.co_qualname} goes through {what}", leaves=code)


def check_not_left(tx: Context, code: CodeType) -> None:
    """A graph break at a call of a function that is left to Python."""
    if tx.policy.is_left(code):
        raise GraphBreak(
            VARYING_ITERATION, f"{code.co_qualname} goes through now more and now fewer items", opens=True
        )
