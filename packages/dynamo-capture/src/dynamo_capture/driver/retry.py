"""When a frame is captured once more, in another way, instead of ending its graph where it first would."""

from __future__ import annotations

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.content.small_buffers import decisive
from dynamo_capture.values.base import Context
from fx_interface.errors import UserLocation

_BY_DATA = frozenset({"CAP201", "CAP202", "CAP211", "CAP217"})
"""The breaks where numbers of tensors decide."""


def knows_other_contents(tx: Context, reason: GraphBreak, where: UserLocation | None) -> bool:
    """Whether the graph does not end there for a version that knows what is in small arguments, or knows less."""
    found = decisive(tx) if reason.code in _BY_DATA else []
    return tx.policy.decide_by(found, tx.tensors.state.relied, where)


def gives_other_sizes(reason: GraphBreak) -> bool:
    """Whether the result of an instruction that Python runs is of another size in each call, or another number."""
    return reason.opens or reason.code in _BY_DATA


def leaves_modes(tx: Context, reason: GraphBreak) -> bool:
    """Whether a graph ends while modes of the program are entered: Python is to enter them, and to go on there."""
    if not tx.tensors.modes.entered:
        return False
    tx.policy.leave_modes(reason.reason)
    return True
