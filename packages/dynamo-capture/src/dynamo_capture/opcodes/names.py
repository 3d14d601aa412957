"""Instructions on variables and attributes."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values.base import NULL, Value
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.functions import BoundMethod, CellValue, SuperValue
from dynamo_capture.values.objects import ObjectValue

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame

_LOADS_FLAG = sys.version_info >= (3, 12)


def _local(frame: Frame, name: object) -> Value:
    found = frame.slots.get(str(name)) if not isinstance(name, str) else frame.slots.get(name)
    if found is None:
        raise frame.tracer.raise_type(
            UnboundLocalError, f"cannot access local variable '{name}' where it is not associated with a value"
        )
    return found


@opcode("LOAD_FAST", "LOAD_FAST_CHECK")
def _load_fast(frame: Frame, instruction: Instruction) -> None:
    frame.stack.append(_local(frame, instruction.argval))


@opcode("LOAD_FAST_LOAD_FAST", since=(3, 13))
def _load_two(frame: Frame, instruction: Instruction) -> None:
    for name in instruction.argval:  # type: ignore[attr-defined]
        frame.push(_local(frame, name))


@opcode("LOAD_FAST_AND_CLEAR", since=(3, 12))
def _load_and_clear(frame: Frame, instruction: Instruction) -> None:
    frame.push(frame.slots.pop(instruction.argval, NULL))  # type: ignore[arg-type]


@opcode("STORE_FAST")
def _store_fast(frame: Frame, instruction: Instruction) -> None:
    value = frame.stack.pop()
    if value is NULL:
        frame.slots.pop(instruction.argval, None)  # type: ignore[arg-type]
    else:
        frame.slots[instruction.argval] = value  # type: ignore[index]


@opcode("STORE_FAST_STORE_FAST", since=(3, 13))
def _store_two(frame: Frame, instruction: Instruction) -> None:
    first, second = instruction.argval  # type: ignore[misc]
    frame.slots[first] = frame.pop()
    frame.slots[second] = frame.pop()


@opcode("STORE_FAST_LOAD_FAST", since=(3, 13))
def _store_load(frame: Frame, instruction: Instruction) -> None:
    first, second = instruction.argval  # type: ignore[misc]
    frame.slots[first] = frame.pop()
    frame.push(_local(frame, second))


@opcode("DELETE_FAST")
def _delete_fast(frame: Frame, instruction: Instruction) -> None:
    _local(frame, instruction.argval)
    del frame.slots[instruction.argval]  # type: ignore[arg-type]


@opcode("MAKE_CELL")
def _make_cell(frame: Frame, instruction: Instruction) -> None:
    name = instruction.argval
    frame.slots[name] = CellValue(frame.slots.get(name))  # type: ignore[index,arg-type]


@opcode("LOAD_CLOSURE")
def _load_closure(frame: Frame, instruction: Instruction) -> None:
    frame.push(frame.slots[instruction.argval])  # type: ignore[index]


@opcode("LOAD_DEREF")
def _load_deref(frame: Frame, instruction: Instruction) -> None:
    cell = frame.slots[instruction.argval]  # type: ignore[index]
    assert isinstance(cell, CellValue)
    if cell.content is None:
        raise frame.tracer.raise_type(
            NameError, f"cannot access free variable '{instruction.argval}' where it is not associated with a value"
        )
    frame.push(cell.content)


@opcode("STORE_DEREF")
def _store_deref(frame: Frame, instruction: Instruction) -> None:
    cell = frame.slots[instruction.argval]  # type: ignore[index]
    assert isinstance(cell, CellValue)
    frame.tracer.set_cell(cell, frame.pop())


@opcode("DELETE_DEREF")
def _delete_deref(frame: Frame, instruction: Instruction) -> None:
    cell = frame.slots[instruction.argval]  # type: ignore[index]
    assert isinstance(cell, CellValue)
    if cell.source is not None:
        raise GraphBreak("side-effect", "a variable of an enclosing function is deleted")
    cell.content = None


@opcode("LOAD_GLOBAL")
def _load_global(frame: Frame, instruction: Instruction) -> None:
    if instruction.arg & 1:
        frame.push(NULL)
    frame.push(frame.load_global(str(instruction.argval)))


@opcode("STORE_GLOBAL")
def _store_global(frame: Frame, instruction: Instruction) -> None:
    frame.tracer.set_global(frame, str(instruction.argval), frame.pop())


@opcode("LOAD_ATTR")
def _load_attr(frame: Frame, instruction: Instruction) -> None:
    receiver = frame.pop()
    name = str(instruction.argval)
    if _LOADS_FLAG and instruction.arg & 1:
        _push_method(frame, receiver, name)
    else:
        frame.push(frame.tracer.getattr(receiver, name))


@opcode("LOAD_METHOD")
def _load_method(frame: Frame, instruction: Instruction) -> None:
    _push_method(frame, frame.pop(), str(instruction.argval))


def _push_method(frame: Frame, receiver: Value, name: str) -> None:
    found = frame.tracer.getattr(receiver, name)
    frame.push(NULL)
    frame.push(found)


@opcode("STORE_ATTR")
def _store_attr(frame: Frame, instruction: Instruction) -> None:
    receiver, value = frame.pop(), frame.pop()
    receiver.setattr(frame.tracer, str(instruction.argval), value)


@opcode("DELETE_ATTR")
def _delete_attr(frame: Frame, instruction: Instruction) -> None:
    frame.pop().delattr(frame.tracer, str(instruction.argval))


@opcode("LOAD_SUPER_ATTR", since=(3, 12))
def _load_super_attr(frame: Frame, instruction: Instruction) -> None:
    _, cls, receiver = frame.popn(3)
    found = SuperValue(cls.as_python(), receiver).getattr(frame.tracer, str(instruction.argval))
    if instruction.arg & 1:
        frame.push(NULL)
    frame.push(found)


@opcode("LOAD_ASSERTION_ERROR")
def _load_assertion_error(frame: Frame, instruction: Instruction) -> None:
    frame.push(frame.tracer.wrap(AssertionError, None))


@opcode("IMPORT_NAME")
def _import_name(frame: Frame, instruction: Instruction) -> None:
    fromlist, level = frame.pop(), frame.pop()
    name = str(instruction.argval)
    try:
        module = __import__(
            name, frame.namespace, {}, fromlist_of(fromlist), level.as_python()
        )
    except ImportError as error:
        raise Raised(frame.tracer.exception(error)) from None
    frame.push(frame.tracer.wrap(module, None))


def fromlist_of(value: Value) -> tuple[str, ...]:
    """The names of ``from m import names``."""
    if value.constant:
        return value.as_python() or ()
    return tuple(item.as_python() for item in value.items)  # type: ignore[attr-defined]


@opcode("IMPORT_FROM")
def _import_from(frame: Frame, instruction: Instruction) -> None:
    module = frame.stack[-1]
    name = str(instruction.argval)
    obj = module.as_python()
    found = getattr(obj, name, None)
    if found is None and isinstance(obj, types.ModuleType):
        found = sys.modules.get(f"{obj.__name__}.{name}")
    if found is None:
        raise frame.tracer.raise_type(ImportError, f"cannot import name {name!r}")
    frame.push(frame.tracer.wrap(found, None))


__all__ = ["BoundMethod", "ConstantValue", "ObjectValue"]
