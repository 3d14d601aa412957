"""Errors of the capture layer: those a caller may see, and the signals that the translator uses inside."""

from __future__ import annotations

import threading
from types import CodeType
from typing import Any

from dynamo_capture.foundation.graph_breaks import BreakReport
from dynamo_capture.foundation.texts.users_words import in_users_words
from fx_interface.errors import StackError, UnsupportedProgramError, UserLocation

NOT_ONE_GRAPH = "CAP250"
"""A function that is exported has graph breaks."""
RECOMPILES = "CAP251"
"""A function would be compiled again where the stance forbids it."""
TOO_MANY_VERSIONS = "CAP252"
"""A function has as many versions as it may have, under ``fullgraph=True``."""
VERSIONS_FOR_ONE_CALL = "CAP253"
"""A function is left alone for a while: its versions compare with objects that each call makes."""
BACKEND_RAISED = "CAP301"
BACKEND_RESULT = "CAP302"
"""What the backend returned cannot be called."""
TRACED_TENSOR = "CAP401"
"""An operator ran on a tensor that belongs to a trace."""
OUT_ARGUMENT = "CAP403"
"""A form of ``out=``, or a change of form in place, that no graph expresses."""
NO_SHAPE_RULE = "CAP404"
"""No rule says what an operator returns, and it is too large for a trial run."""
UNUSUAL_RESULT = "CAP405"
"""An operator returns a nested, quantized or otherwise unusual tensor."""
OPERATOR_REFUSES = "CAP406"
"""An operator refuses the made-up content of a trial run."""
GUARD_FAILS = "CAP410"
"""A guard does not hold for the call it was made from."""
GUARD_FILTER = "CAP411"
"""``guard_filter_fn`` raised, or did not answer for each guard."""


class CaptureError(UnsupportedProgramError, RuntimeError):
    """The program cannot be captured in one graph, and ``fullgraph=True`` forbids breaking it (codes CAP2xx). A
    ``RuntimeError``, as what torch's compiler raises then is."""

    propagates_from_hook = True


class ExportError(CaptureError):
    """The function is not one graph (code CAP250). ``breaks`` are all its graph breaks, in the order they were met."""

    def __init__(self, what: str, breaks: tuple[BreakReport, ...], where: UserLocation | None) -> None:
        super().__init__(
            NOT_ONE_GRAPH,
            what,
            where=where,
            action="change the lines named, or use optimize(), which breaks there",
        )
        self.breaks = breaks


class BackendError(StackError, RuntimeError):
    """The backend raised while compiling a captured graph (code CAP301). A ``RuntimeError``, as torch's is."""

    propagates_from_hook = True


class GraphBreak(Exception):
    """Inside: the instruction being traced cannot be captured. ``code`` names an entry of the catalogue; ``trail``
    (of ``break_positions.Standing``) tells where the inlined frames that it left stood, innermost first.
    ``as_written``: the frame that it comes up in is to run in Python as a whole; ``leaves``: what is to be captured
    again with this function or loop (a ``known_functions.Part``) left to Python; ``opens``: what the instruction gives
    has other sizes in each call. ``apart``: a function of arrays that it came up in, which may be called instead."""

    def __init__(
        self,
        code: str,
        reason: str,
        where: UserLocation | None = None,
        *,
        as_written: bool = False,
        leaves: Any = None,
        opens: bool = False,
    ) -> None:
        reason = in_users_words(reason)
        self.as_written = as_written
        self.leaves = leaves
        self.opens = opens
        self.apart: CodeType | None = None
        self.code = code
        self.reason = reason
        self.where = where
        self.trail: list[Any] = []
        super().__init__(code, reason)


class UserRaise(Exception):
    """Inside: the traced program raised. ``value`` is the symbolic exception object."""

    def __init__(self, value: Any) -> None:
        self.value = value
        super().__init__(value)


class NotConstant(Exception):
    """Inside: a value is not known while tracing."""


class DataDependent(Exception):
    """Inside: an operator would turn a tensor's content into a Python value; ``tensor`` is the one, where its only
    element would do."""

    def __init__(self, what: str, tensor: object = None) -> None:
        super().__init__(what)
        self.tensor = tensor


class CapturedAnew(Exception):
    """The trace has changed what it has read, as eager would have by now: it begins again."""


class _Handled(threading.local):
    """The exception of the program that is being handled where a frame is compiled: those of the translator come from
    it, as Python sees it."""

    error: BaseException | None = None


HANDLED = _Handled()


def forget_frames(error: BaseException) -> None:
    """Drop the tracebacks of an exception of the translator and of those that it came from, but for the program's.

    Their frames hold values of the program, often in a cycle with the exception: the program's objects would live until
    Python searches for cycles.
    """
    known = {id(None), id(HANDLED.error)}
    pending: list[BaseException | None] = [error]
    while pending:
        found = pending.pop()
        if id(found) not in known:
            assert found is not None
            known.add(id(found))
            found.__traceback__ = None
            pending += (found.__cause__, found.__context__)
