"""Whether the program may catch what an operation raises, in the frames that are traced.

    try: y = x.sin()                       a hook that packs ``x`` may raise
    except Refused: y = x

Only what torch's own blocks (``no_grad``, ``autocast``) do passes an exception on: they put their modes back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any

from dynamo_capture.foundation.break_kinds import AUTOGRAD_STATE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.modes.contexts import ContextValue
from dynamo_capture.semantics.modes.settings import read
from dynamo_capture.values.base import Context
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched_by_program


def may_be_caught(tx: Context) -> bool:
    """Whether code of the program, a handler or the end of a block, meets what the current instruction raises."""
    return any(_is_met(tx, frame, frame.steps[frame.next - 1]) for frame in tx.frames)


def check_packing(tx: Context, may_save: bool) -> None:
    """A graph break where hooks on saved tensors, which are called for an operation, may raise what the program
    catches: they are not to be called again for the operations before."""
    if may_save and may_be_caught(tx) and read(tx, saved_tensors_are_watched_by_program):
        what = "hooks on saved tensors are called where the program may catch what they raise"
        raise GraphBreak(AUTOGRAD_STATE, what, as_written=True)


def _is_met(tx: Context, frame: Any, step: Any) -> bool:
    steps = frame.steps
    while step.handler >= 0:
        first = steps[step.handler]
        if first.opname == "COPY":  # the end of a handler: COPY, POP_EXCEPT, RERAISE
            step = steps[step.handler + 2]
        elif first.opname == "PUSH_EXC_INFO" and steps[step.handler + 1].opname == "WITH_EXCEPT_START":
            if not _only_passes_on(tx, frame.stack[step.depth - 1]):
                return True
            step = first
        else:
            return True
    return False


def _only_passes_on(tx: Context, leave: Any) -> bool:
    """Whether a manager's bound ``__exit__`` is torch's own."""
    try:
        manager = tx.force(leave).get_attr(tx, "__self__")
    except GraphBreak:
        return False
    if isinstance(manager, ContextValue):
        return True
    real = getattr(manager, "real", None)
    if isinstance(real, contextlib._GeneratorContextManager):
        frame = getattr(real.gen, "gi_frame", None)
        return frame is not None and _is_of_torch(frame.f_globals.get("__name__"))
    classes: Iterable[type] = manager.python_type().__mro__
    return _is_of_torch(next((cls for cls in classes if "__exit__" in vars(cls)), object).__module__)


def _is_of_torch(module: Any) -> bool:
    return str(module).partition(".")[0] == "torch"
