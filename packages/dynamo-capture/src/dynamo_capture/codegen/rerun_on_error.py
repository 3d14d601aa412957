"""What happens when a compiled graph raises: the frame runs once more as it is.

A graph holds the operations of a whole frame. If one of them fails on its data, the program's own handlers, and the
effects that come before it, are none of the graph's business:

    try: y = torch.linalg.cholesky(x)      the graph raises  ->  the frame runs in Python, where the
    except RuntimeError: y = x             handler catches what is raised, at its line

That is possible where the graph that raises leaves no trace behind (decision 0031): it writes into no tensor and draws
no random numbers, or the compiled graph promises to take that back, or is made to (``fx_interface.execution.undo``).
What the replacement itself draws from the generators of ``random`` is taken back. An exception that nobody may run
the frame again for is raised where the frame begins: the blocks that it is in are left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any

import torch

from dynamo_capture.bytecode.decode import free_variables
from dynamo_capture.bytecode.emit import Emitter
from dynamo_capture.bytecode.instruction import CO_VARARGS, CO_VARKEYWORDS
from dynamo_capture.bytecode.resume.analysis import Parameter, parameter_name
from dynamo_capture.bytecode.resume.code import ResumeCodes
from dynamo_capture.frames.frame import Frame
from dynamo_capture.runtime.second_runs import AssumedBranches, run_again, run_unseen
from dynamo_capture.semantics.modes.modes import Block, GradMode, Switches
from dynamo_capture.values.base import Context
from dynamo_capture.values.functions import BuiltinMethod
from fx_interface.source import LocalSource

_ERROR = ".error"


def nothing_raises() -> None:
    """No code raises where the frame begins: nothing handles it there."""


def runs_again(tx: Context) -> Callable[..., Any]:
    """What runs a frame again whose graph has raised; it is noted where the graph states that branches are taken."""
    runs = run_again if tx.output.saving else run_unseen
    assuming = tx.tensors.state.assuming
    if not assuming:
        return runs
    made = AssumedBranches(
        runs, assuming, None if tx.policy.is_fullgraph else tx.policy.functions.not_assumed
    )
    tx.tensors.state.assumed = made
    return made


@contextmanager
def second_run(
    emitter: Emitter,
    code: CodeType,
    namespace: dict[str, Any],
    cells: Collection[str],
    states: str | None = None,
    before: Callable[[], None] = lambda: None,
    raising: Callable[[], CodeType | None] = nothing_raises,
    runs: Callable[..., Any] = run_again,
) -> Iterator[None]:
    """Protect the instructions that are emitted inside. The stack must be empty before them. ``states``: the
    variable with the states of the generators of ``random`` before the replacement drew from them. ``before`` emits
    what is done before the frame runs. ``raising`` gives code that raises its last argument where the frame begins, if
    that is in a block. ``runs``: what then runs the frame, or ``leave_blocks``."""
    failed, done = emitter.label(), emitter.label()
    first = len(emitter.instructions)
    with emitter.protected(failed, 0):
        yield
    if len(emitter.instructions) == first:
        return
    emitter.jump(done)
    emitter.place(failed)
    emitter.emit("PUSH_EXC_INFO")
    emitter.store_fast(_ERROR)
    emitter.emit("POP_EXCEPT")
    before()
    emitter.begin_call()
    emitter.load_const(runs)
    emitter.end_callable()
    emitter.load_fast(_ERROR)
    emitter.delete_fast(_ERROR)  # its traceback leads to this frame
    emitter.load_const(code)
    emitter.load_const(namespace)
    for name in free_variables(code):
        emitter.load_closure(name)
    emitter.build_tuple(len(code.co_freevars))
    _arguments(emitter, code, cells)
    if states is None:
        emitter.load_const(())
    else:
        emitter.load_fast(states)
    emitter.load_const(raising)
    emitter.call(8)
    emitter.return_value()
    emitter.place(done)


def _arguments(emitter: Emitter, code: CodeType, cells: Collection[str]) -> None:
    """The positional arguments as a list, the others as a dict; the frame's variables give them up."""

    def load(name: str) -> None:
        if name in cells:
            emitter.load_deref(name)
        else:
            emitter.load_fast(name)
            emitter.delete_fast(name)

    names = code.co_varnames
    keywords = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    stars = iter(names[code.co_argcount + code.co_kwonlyargcount :])
    for name in names[: code.co_argcount]:
        load(name)
    emitter.build_list(code.co_argcount)
    if code.co_flags & CO_VARARGS:
        load(next(stars))
        emitter.list_extend()
    for name in keywords:
        emitter.load_const(name)
        load(name)
    emitter.build_map(len(keywords))
    if code.co_flags & CO_VARKEYWORDS:
        load(next(stars))
        emitter.dict_update()


def handler_at_beginning(frame: Frame, resumes: ResumeCodes) -> int:
    """The step that handles what is raised where a frame, the rest of a function, begins: at a call that goes on, or
    where it jumps to. -1 if there is none."""
    if not resumes.is_resume_function(frame.code):
        return -1
    first = next((step for step in frame.steps if step.handler >= 0 or step.target >= 0), None)
    if first is None or first.handler >= 0:
        return -1 if first is None else first.handler
    return frame.steps[first.target].handler


def is_handled_by(frame: Frame, end: int, handler: int) -> bool:
    """Whether what is raised at a step comes to a handler, directly or through inner ones."""
    passed: set[int] = set()
    while handler >= 0 and end >= 0 and end not in passed:
        passed.add(end)
        end = frame.steps[end].handler
        if end == handler:
            return True
    return False


def is_in_all_blocks(frame: Frame, handler: int) -> bool:
    """Whether a frame which begins in the ``with`` block that ``handler`` ends has that still to leave: its stack holds
    the manager's method, as at its beginning, though nothing handles what the call of that raises."""
    if handler < 0 or [step.opname for step in frame.steps[handler : handler + 2]] != _ENDS_WITH_BLOCK:
        return False
    place = next(step.depth for step in frame.steps if step.handler == handler) - 1
    return 0 <= place < len(frame.stack) and frame.stack[place].source == LocalSource(
        parameter_name(Parameter("stack", place))
    )


def outside_of_blocks(frame: Frame, blocks: Collection[Block], left: Switches) -> Switches:
    """The modes around the blocks that a graph has entered and ends in, which leaves the modes ``left``."""
    modes = dict(left)
    for value in reversed(frame.stack):
        manager = value.receiver if isinstance(value, BuiltinMethod) else None
        if isinstance(manager, GradMode) and manager.previous:
            modes[torch._C._set_grad_enabled] = manager.previous[0][0]
        elif any(manager is block for block in blocks):
            assert isinstance(manager, Block)
            modes = dict(manager.around)
    return modes


_ENDS_WITH_BLOCK = ["PUSH_EXC_INFO", "WITH_EXCEPT_START"]
