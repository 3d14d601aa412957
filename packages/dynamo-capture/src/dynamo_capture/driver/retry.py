"""When a frame is captured once more, in another way, instead of ending its graph where it first would."""

from __future__ import annotations

import logging
from types import CodeType

from dynamo_capture.bytecode.errors import UnsupportedBytecodeError
from dynamo_capture.foundation.break_kinds import (
    CONTENT_DECIDES,
    DATA_NUMBER,
    NOT_RESUMABLE,
    TENSOR_AS_INDEX,
    UNKNOWN_VALUE,
)
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.tensors.content.small_buffers import decisive
from dynamo_capture.session.is_compiling_answers import Place
from dynamo_capture.values.base import Context
from fx_interface.errors import UserLocation

_log = logging.getLogger("dynamo_capture")
_BY_DATA = frozenset({CONTENT_DECIDES, TENSOR_AS_INDEX, UNKNOWN_VALUE, DATA_NUMBER})
"""The breaks where numbers of tensors decide."""


def goes_otherwise(tx: Context, reason: GraphBreak, where: UserLocation | None) -> bool:
    """Whether the graph does not end there once more: it ends at the call of a function of arrays, or knows other
    contents."""
    apart = not tx.policy.is_fullgraph and tx.policy.functions.set_apart(reason.apart)
    return apart or knows_other_contents(tx, reason, where)


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


def leaves_levels(tx: Context, code: CodeType) -> bool:
    """Whether a graph ends in a level of dual tensors: Python is to enter that, and to go on there."""
    if tx.tensors.duals is None:
        return False
    tx.policy.functions.without_levels[id(code)] = code
    return True


def as_break(error: UnsupportedBytecodeError | GraphBreak) -> GraphBreak:
    """The reason for which a frame cannot be replaced."""
    return error if isinstance(error, GraphBreak) else GraphBreak(NOT_RESUMABLE, str(error))


class InParts(Exception):
    """Inside: a graph cannot be finished, or its backend raises; the frame is captured again, and breaks at what may be
    the reason: sizes and numbers from data, or tensors that the program makes and asks for gradients of."""


class RaisesOnlyCompiled(Exception):
    """Inside: the program raises an exception after it was told, at ``place``, that it is compiled."""

    def __init__(self, place: Place) -> None:
        self.place = place


def tell_no(place: Place | None, code: CodeType) -> None:
    """Trace again, if that may avoid an exception."""
    if place is not None:
        _log.info("%s raises an exception where it is told that it is compiled", code.co_qualname)
        raise RaisesOnlyCompiled(place) from None
