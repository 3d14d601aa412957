"""Names of bodies of classes and of text that ``eval`` runs: looked up in a namespace, then where functions look."""

from __future__ import annotations

from dynamo_capture.foundation.break_kinds import EMPTY_CELL, UNSUPPORTED_INSTRUCTION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import DictValue, Value


def _names(frame: Frame) -> dict[str, Value]:
    if frame.names is None:
        raise GraphBreak(UNSUPPORTED_INSTRUCTION, "a name is looked up in a namespace")
    return frame.names


@opcode("LOAD_NAME")
def load_name(frame: Frame, step: Step) -> None:
    found = _names(frame).get(step.argval)
    frame.stack.append(frame.globals.read(step.argval) if found is None else frame.tx.force(found))


@opcode("STORE_NAME")
def store_name(frame: Frame, step: Step) -> None:
    _names(frame)[step.argval] = frame.stack.pop()


@opcode("DELETE_NAME")
def delete_name(frame: Frame, step: Step) -> None:
    if _names(frame).pop(step.argval, None) is None:
        raise frame.tx.undefined(step.argval, f"name {step.argval!r} is not defined")


@opcode("LOAD_CLASSDEREF", until=(3, 11))
def load_class_variable(frame: Frame, step: Step) -> None:
    found = _names(frame).get(step.argval)
    if found is None:
        cell = frame.cell(step.argval)
        cell.must_stay_empty()
        found = cell.content
        if found is None:
            raise GraphBreak(EMPTY_CELL, f"the variable {step.argval!r} has no value yet")
    frame.stack.append(frame.tx.force(found))


@opcode("SETUP_ANNOTATIONS", until=(3, 13))
def set_up_annotations(frame: Frame, step: Step) -> None:
    _names(frame).setdefault("__annotations__", DictValue({}))
