"""The frame that is compiled, as it is interpreted: it stops before any of its steps, and says where it broke."""

from __future__ import annotations

from collections.abc import Iterable

from dynamo_capture.foundation.break_kinds import NESTED_TOO_DEEPLY
from dynamo_capture.foundation.break_positions import Stop
from dynamo_capture.foundation.errors import (
    DataDependent,
    GraphBreak,
    NotConstant,
    UserRaise,
    forget_frames,
)
from dynamo_capture.foundation.part_options import part_option
from dynamo_capture.foundation.skip_rules import is_worth_capturing
from dynamo_capture.frames.frame import MOST_STEPS, Frame, Return, break_of, too_long
from dynamo_capture.interpreter.break_depth import deepest
from dynamo_capture.values import Value
from fx_interface.errors import UnbackedSymbolError, UserLocation


class Broken(Exception):
    """The graph has to end: before step number ``count`` of the outermost frame, or deeper in it at ``stop``.
    ``handled``: the exception that is being handled there."""

    def __init__(self, count: int, stop: Stop | None, reason: GraphBreak, where: UserLocation | None) -> None:
        self.count = count
        self.stop = stop
        self.reason = reason
        self.where = where
        self.as_written = False
        self.is_error = bool(part_option("error_on_graph_break", False))
        self.handled: Value | None = None


class RootFrame(Frame):
    """The frame that is compiled: counts its steps, so that a second run can stop exactly before one of them."""

    __slots__ = ("count", "stop")

    def run_until(self, stop: int | None) -> Return | None:
        """Up to the return, or None: stopped before step number ``stop``. A break leaves as ``Broken``."""
        self.tx.frames.append(self)
        count = 0
        while True:
            step = self.steps[self.next]
            if count == stop:
                return None
            count += 1
            self.next = step.index + 1
            self.line = step.line
            try:
                if count > MOST_STEPS and stop is None:
                    raise too_long()
                done = step.run(self, step)
            except UserRaise as raised:
                self.unwind(step, raised)
                continue
            except (GraphBreak, NotConstant, DataDependent, UnbackedSymbolError) as error:
                reason = break_of(error)
                forget_frames(error)  # which lead to this frame
                forget_frames(reason)
                reason.where = reason.where or self.tx.line_of_user()
                is_deep = reason.code == NESTED_TOO_DEEPLY  # so many calls are not to be gone through twice
                is_own = reason.as_written and not reason.trail
                trail = [] if is_deep or reason.as_written else reason.trail
                deep = deepest(self, step, trail, _is_own)
                broken = Broken(count - 1, deep.stop if deep else None, reason, reason.where)
                broken.handled = _handled([*(standing.frame for standing in trail), self])
                # What went on with the variable's value would break there again.
                broken.as_written = is_own or (deep is None and step.opname.startswith("LOAD_FAST"))
                try:
                    raise broken from None
                finally:
                    del broken  # its traceback leads to this frame, which must not lead back to it
            if done is not None:
                assert isinstance(done, Return)
                return done


def _handled(frames: Iterable[Frame]) -> Value | None:
    """The exception that is handled in the first of the frames that handles one."""
    return next((frame.exceptions[-1] for frame in frames if frame.exceptions), None)


def _is_own(frame: Frame) -> bool:
    return is_worth_capturing(frame.code, frame.globals.real)
