"""How deep a graph break goes: which of the inlined frames are left one by one, each to be resumed where it stood.

A break passes through the frames of the calls that were inlined; each leaves in ``GraphBreak.trail`` where it stood.
``deepest`` follows the trail from the outside for as long as a frame's instruction is answered by the next frame, and
comes to the innermost frame of the program's own code.
The trace is then run once more and stopped at that place, before the instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from dynamo_capture.foundation.break_positions import Standing
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.result_frames import answer


def deepest(
    root: Frame, step: Step, trail: list[Standing], is_own: Callable[[Frame], bool]
) -> Standing | None:
    """The innermost frame at which the graph can end, or None: the outermost frame ``root``, in ``step``.

    ``trail`` is innermost first; ``is_own`` says whether a frame is the program's, not a library's.
    """
    caller, calling = root, step
    found: Standing | None = None
    for standing in reversed(trail):
        frame = standing.frame
        if root.exceptions or frame.exceptions or frame.is_generator:
            break
        if not any(code is frame.code for code in answer(caller, calling).codes):
            break
        caller, calling = frame, standing.step
        if is_own(frame):
            found = standing
    return found
