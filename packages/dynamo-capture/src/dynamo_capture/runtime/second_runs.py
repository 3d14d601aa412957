"""The frame whose graph raised: it runs once more as it is, or leaves the blocks that it begins in."""

from __future__ import annotations

import functools
import logging
import types
from collections.abc import Callable, Mapping
from typing import Any

from dynamo_capture import _eval_frame
from dynamo_capture.hook.frame_hook import region
from dynamo_capture.runtime.tracebacks import set_traceback
from fx_interface.execution.undo import has_left_something
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched

_log = logging.getLogger("dynamo_capture")


def run_again(
    error: BaseException,
    code: types.CodeType,
    namespace: dict[str, Any],
    closure: tuple[types.CellType, ...],
    args: list[Any],
    kwargs: Mapping[str, Any],
    states: tuple[Callable[[], object], ...] = (),
    raising: Callable[[], types.CodeType | None] = lambda: None,
    *,
    has_run: bool = False,
    saves: bool = True,
) -> Any:
    """The frame whose graph raised, as it is; it will raise at its own line, or catch what it raises. Where it must not
    run again (its graph ``has_run``, or ``saves`` tensors that hooks have seen), or was interrupted, it is the code
    that ``raising`` gives, if any, which raises ``error`` at once.

    ``args`` move into it: the list is empty afterwards, so that they die where that frame drops them.
    """
    interrupted = not isinstance(error, Exception) or isinstance(error, RecursionError)
    is_seen = saves and saved_tensors_are_watched()
    if has_run or interrupted or is_seen or has_left_something(error):
        found = raising()
        if found is None:
            raise error
        code = found
        args.append(error)
    else:
        set_traceback(error, None)  # whose frames hold the program's values
        for restore in states:
            restore()
    plain = types.FunctionType(code, namespace, code.co_name, None, closure or None)
    rest = _eval_frame.rest(functools.partial(plain, **kwargs) if kwargs else plain, *args)
    args.clear()
    try:
        with region(None):
            result = _eval_frame.go_on(rest)
    finally:
        del plain, rest, kwargs  # frames that tracebacks refer to lead to this one
    _log.info("%s: its compiled graph raised %r; it was run in Python", code.co_qualname, error)
    return result


run_unseen = functools.partial(run_again, saves=False)
"""Autograd saves nothing for the graph, so that no hook has been called."""
leave_blocks = functools.partial(run_again, has_run=True)
"""What is raised behind a frame's graph is raised where the frame begins, under the handlers that there are."""
