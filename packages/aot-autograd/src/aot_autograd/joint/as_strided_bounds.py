"""Inputs of which the program shows memory by numbers (``as_strided``): what must hold of them for that to be right."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from aot_autograd.recording.storage import Storage
from aot_autograd.recording.trace import Trace
from fx_interface.errors import UnsupportedProgramError


def check_reach(trace: Trace, storages: Mapping[int, Storage], gradients: Collection[int]) -> None:
    """AOT121 for strided views of inputs that show memory which is not the input's own.

    That only matters where a value takes the place of that memory: when an input was written, or for its gradient.
    """
    written = any(storage.value is not storage.first for storage in storages.values())
    if any(written or index in gradients for index in trace.shown_beyond):
        raise UnsupportedProgramError(
            "AOT121",
            "a strided view shows memory outside of the input that it is taken of",
            action="pass the whole memory as an argument",
        )


def places_named(trace: Trace, storages: Mapping[int, Storage]) -> tuple[tuple[int, int, int], ...]:
    """For each of these inputs where it must begin, and how much memory it must have; see ``JointPlan.placed``."""
    return tuple(
        (index, storages[index].begin if index in trace.placed else -1, trace.shown_beyond.get(index, 0))
        for index in sorted(trace.placed | set(trace.shown_beyond))
    )
