"""Names of bodies of classes and of text that ``eval`` runs: looked up in a namespace, then where functions look."""

from __future__ import annotations

from dynamo_capture.foundation.break_kinds import EMPTY_CELL, UNSUPPORTED_INSTRUCTION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import Const, DictValue, Value


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


@opcode("LOAD_LOCALS", since=(3, 12))
def load_locals(frame: Frame, step: Step) -> None:
    """What the next instruction looks a name up in: a body that reads its names otherwise calls ``locals``."""
    frame.stack.append(DictValue({name: [Const(name), value] for name, value in _names(frame).items()}))


@opcode("LOAD_FROM_DICT_OR_DEREF", since=(3, 12))
def load_from_names_or_variable(frame: Frame, step: Step) -> None:
    names = frame.stack.pop()
    assert isinstance(names, DictValue)
    found = names.all_entries(frame.tx).get(step.argval)
    _push_class_variable(frame, step.argval, None if found is None else found[1])


@opcode("LOAD_CLASSDEREF", until=(3, 11))
def load_class_variable(frame: Frame, step: Step) -> None:
    _push_class_variable(frame, step.argval, _names(frame).get(step.argval))


def _push_class_variable(frame: Frame, name: str, found: Value | None) -> None:
    """A variable of a function around a class, in the class's body: ``found`` there, or the function's."""
    if found is None:
        cell = frame.cell(name)
        cell.must_stay_empty()
        found = cell.content
        if found is None:
            raise GraphBreak(EMPTY_CELL, f"the variable {name!r} has no value yet")
    frame.stack.append(frame.tx.force(found))


@opcode("SETUP_ANNOTATIONS", until=(3, 13))
def set_up_annotations(frame: Frame, step: Step) -> None:
    _names(frame).setdefault("__annotations__", DictValue({}))
