"""The frame whose graph raised: it runs once more as it is, or leaves the blocks that it begins in."""

from __future__ import annotations

import functools
import logging
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from dynamo_capture import _eval_frame
from dynamo_capture._eval_frame import Entry
from dynamo_capture.hook.frame_hook import region
from dynamo_capture.runtime.tracebacks import set_traceback
from fx_interface.errors import UserLocation
from fx_interface.execution.undo import has_left_something
from fx_interface.torch_internals.torch_state import saved_tensors_are_watched

_log = logging.getLogger("dynamo_capture")
_CALLS_FOR_ONE: Final = 32
"""Calls that make up for one in which the graph fails, and the frame runs in Python."""


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


class AssumedBranches:
    """Runs a frame again whose graph raised (``run``), and counts. From the second failure on for which there have not
    been enough calls its entry goes, and the lines of its branches become ``refused``: there graphs end."""

    def __init__(
        self,
        run: Callable[..., Any],
        places: Iterable[UserLocation | None],
        refused: set[UserLocation | None] | None,
    ) -> None:
        self._run = run
        self._places = frozenset(places)
        self._refused = refused
        self._failures = 0
        self._entry: weakref.ref[Entry] | None = None

    def belongs_to(self, entry: Entry) -> None:
        """The entry that is dropped."""
        self._entry = weakref.ref(entry)

    def __call__(self, error: BaseException, *args: Any) -> Any:
        """As ``run_again``."""
        entry = None if self._entry is None else self._entry()
        self._failures += 1
        is_rare = entry is None or self._failures <= 1 + entry.hits // _CALLS_FOR_ONE
        if self._refused is not None and entry is not None and not is_rare:
            self._refused |= self._places
            entry.invalidate()
        return self._run(error, *args)
