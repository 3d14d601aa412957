"""The codes under which this package reports what it cannot compile."""

from __future__ import annotations

from fx_interface.errors import UnsupportedProgramError, UserLocation

CODES = {
    "IND101": "a call target that is neither a primitive, a library operator nor size arithmetic",
    "IND102": "a dtype that the loop IR has no arithmetic for",
    "IND103": "a library operator that mutates its arguments",
    "IND104": "a result or argument that is neither tensor, number nor None",
    "IND105": "the graph's values lie on several GPUs, or on a device that no generator serves",
    "IND107": "the graph is for a GPU, and Triton is not installed",
    "IND108": "indices that come from data decide about each other",
    "IND109": "kernels for a GPU, compiled ahead of time, would have too many forms: sizes vary widely",
    "IND120": "a kernel that breaks a rule of the loop IR (a defect of this package)",
    "IND121": "a primitive that has no Triton text",
    "IND122": "attention that no kernel is written for",
}
"""Every code with its meaning, for the README and for ``fxstack doctor``."""


def unsupported(
    code: str, what: str, where: UserLocation | None, action: str = ""
) -> UnsupportedProgramError:
    """The error to raise for a program that cannot be compiled."""
    assert code in CODES, code
    return UnsupportedProgramError(code, what, where=where, action=action or "the graph runs eagerly instead")
