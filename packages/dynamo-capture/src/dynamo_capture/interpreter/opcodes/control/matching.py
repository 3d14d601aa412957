"""``match`` statements."""

from __future__ import annotations

import sys

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.class_members import flags_of, is_looked_up_by_program
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import NONE, Const, TupleValue, Value, boolean
from dynamo_capture.values.base import Context
from fx_interface.python_runtime.own_builtins import PROGRAMS_ISINSTANCE

_SEQUENCE, _MAPPING, _MATCHES_ITSELF = 1 << 5, 1 << 6, 1 << 22
"""Flags of classes that patterns ask about (Py_TPFLAGS_SEQUENCE, _MAPPING, _Py_TPFLAGS_MATCH_SELF)."""
_ABSENT = Const(object())
_NO_CLASS = f"called match pattern must be a {'type' if sys.version_info < (3, 12) else 'class'}"


@opcode("MATCH_MAPPING")
def match_mapping(frame: Frame, step: Step) -> None:
    frame.stack.append(boolean(bool(flags_of(frame.stack[-1].python_type()) & _MAPPING)))


@opcode("MATCH_SEQUENCE")
def match_sequence(frame: Frame, step: Step) -> None:
    frame.stack.append(boolean(bool(flags_of(frame.stack[-1].python_type()) & _SEQUENCE)))


@opcode("MATCH_KEYS")
def match_keys(frame: Frame, step: Step) -> None:
    tx = frame.tx
    keys, subject = frame.stack[-1].unpack(tx), frame.stack[-2]
    seen = [tx.hash_key(key) for key in keys]
    for place, key in enumerate(seen):
        if key in seen[:place]:
            raise tx.raises(ValueError, f"mapping pattern checks duplicate key ({key!r})")
    found: list[Value] = []
    for key in keys:
        value = subject.call_method(tx, "get", [key, _ABSENT], {})
        if value is _ABSENT:
            frame.stack.append(NONE)
            return
        found.append(value)
    frame.stack.append(TupleValue(found))


@opcode("MATCH_CLASS")
def match_class(frame: Frame, step: Step) -> None:
    tx = frame.tx
    subject, cls_value, names = frame.pop_n(3)
    cls = tx.constant(cls_value)
    if not isinstance(cls, type):
        raise tx.raises(TypeError, _NO_CLASS)
    if not tx.truth(Const(PROGRAMS_ISINSTANCE).call(tx, [subject, cls_value], {})):
        frame.stack.append(NONE)
        return
    found: list[Value] = []
    attributes = _positional(tx, cls, step.arg)
    if attributes is None:
        found, attributes = [subject], []
    wanted = [*attributes, *names.as_constant()]
    for place, name in enumerate(wanted):
        if name in wanted[:place]:
            raise tx.raises(TypeError, f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}")
        try:
            found.append(subject.get_attr(tx, name))
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), AttributeError):
                raise
            frame.stack.append(NONE)
            return
    frame.stack.append(TupleValue(found))


def _positional(tx: Context, cls: type, count: int) -> list[str] | None:
    """The attributes that positional sub-patterns look at; None: the object itself. Without such patterns nothing is
    asked."""
    if not count:
        return []
    if is_looked_up_by_program(type(cls)):
        raise GraphBreak(OBJECT_OPERATION, "a pattern asks a class, which has code for that, what it matches")
    declared = getattr(cls, "__match_args__", None)
    matches_itself = declared is None and bool(flags_of(cls) & _MATCHES_ITSELF)
    if declared is not None and not isinstance(declared, tuple):
        raise tx.raises(
            TypeError, f"{cls.__name__}.__match_args__ must be a tuple (got {type(declared).__name__})"
        )
    allowed = 1 if matches_itself else len(declared or ())
    if count > allowed:
        plural = "" if allowed == 1 else "s"
        text = f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)"
        raise tx.raises(TypeError, text)
    if matches_itself:
        return None
    return list((declared or ())[:count])
