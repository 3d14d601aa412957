"""``match`` statements."""

from __future__ import annotations

import collections.abc
from typing import TYPE_CHECKING

from dynamo_capture.errors import UserRaise
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values import NONE, Const, TupleValue, Value, boolean

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame
    from dynamo_capture.prepared import Step

_SELF_MATCHING = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)


@opcode("MATCH_MAPPING")
def match_mapping(frame: Frame, step: Step) -> None:
    frame.stack.append(boolean(issubclass(frame.stack[-1].python_type(), collections.abc.Mapping)))


@opcode("MATCH_SEQUENCE")
def match_sequence(frame: Frame, step: Step) -> None:
    kind = frame.stack[-1].python_type()
    answer = issubclass(kind, collections.abc.Sequence) and not issubclass(kind, (str, bytes, bytearray))
    frame.stack.append(boolean(answer))


@opcode("MATCH_KEYS")
def match_keys(frame: Frame, step: Step) -> None:
    tx = frame.tx
    keys, subject = frame.stack[-1], frame.stack[-2]
    found: list[Value] = []
    for key in keys.unpack(tx):
        if not subject.contains(tx, key):
            frame.stack.append(NONE)
            return
        found.append(subject.get_item(tx, key))
    frame.stack.append(TupleValue(found))


@opcode("MATCH_CLASS")
def match_class(frame: Frame, step: Step) -> None:
    tx = frame.tx
    subject, cls_value, names = frame.pop_n(3)
    cls = tx.constant(cls_value)
    if not tx.truth(Const(isinstance).call(tx, [subject, cls_value], {})):
        frame.stack.append(NONE)
        return
    attributes = list(names.as_constant())
    if step.arg:
        declared = getattr(cls, "__match_args__", None)
        if declared is None and cls in _SELF_MATCHING:
            frame.stack.append(TupleValue([subject]))
            return
        attributes = [*tuple(declared or ())[: step.arg], *attributes]
    found: list[Value] = []
    for name in attributes:
        try:
            found.append(subject.get_attr(tx, name))
        except UserRaise as raised:
            if not issubclass(raised.value.python_type(), AttributeError):
                raise
            frame.stack.append(NONE)
            return
    frame.stack.append(TupleValue(found))
