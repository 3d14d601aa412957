"""Instructions that build containers, strings and functions, and unpack them."""

from __future__ import annotations

import sys
import types
from typing import TYPE_CHECKING, Any

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values.base import Value, class_attribute
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import DictValue, SequenceValue, SetValue, SliceValue
from dynamo_capture.values.functions import CellValue, ClosureValue
from dynamo_capture.values.objects import NewObject, ObjectValue

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame


@opcode("BUILD_TUPLE")
def _tuple(frame: Frame, instruction: Instruction) -> None:
    frame.push(SequenceValue(frame.popn(instruction.arg), tuple))


@opcode("BUILD_LIST")
def _list(frame: Frame, instruction: Instruction) -> None:
    frame.push(SequenceValue(frame.popn(instruction.arg), list))


@opcode("BUILD_SET")
def _set(frame: Frame, instruction: Instruction) -> None:
    items = frame.popn(instruction.arg)
    frame.push(SetValue({frame.tracer.key_of(item): item for item in items}))


@opcode("BUILD_MAP")
def _map(frame: Frame, instruction: Instruction) -> None:
    flat = frame.popn(2 * instruction.arg)
    frame.push(DictValue({frame.tracer.key_of(k): v for k, v in zip(flat[::2], flat[1::2], strict=True)}))


@opcode("BUILD_CONST_KEY_MAP")
def _const_map(frame: Frame, instruction: Instruction) -> None:
    keys = frame.pop()
    values = frame.popn(instruction.arg)
    names = [frame.tracer.key_of(key) for key in keys.iterate(frame.tracer)]
    frame.push(DictValue(dict(zip(names, values, strict=True))))


@opcode("BUILD_STRING")
def _string(frame: Frame, instruction: Instruction) -> None:
    frame.push(ConstantValue("".join(part.as_python() for part in frame.popn(instruction.arg))))


@opcode("BUILD_SLICE")
def _slice(frame: Frame, instruction: Instruction) -> None:
    bounds = frame.popn(instruction.arg)
    if len(bounds) == 2:
        bounds.append(ConstantValue(None))
    frame.push(SliceValue(bounds))


@opcode("LIST_APPEND")
def _list_append(frame: Frame, instruction: Instruction) -> None:
    item = frame.pop()
    target = frame.stack[-instruction.arg]
    assert isinstance(target, SequenceValue)
    target.touch(frame.tracer)
    target.items.append(item)


@opcode("SET_ADD")
def _set_add(frame: Frame, instruction: Instruction) -> None:
    item = frame.pop()
    target = frame.stack[-instruction.arg]
    assert isinstance(target, SetValue)
    target.touch(frame.tracer)
    target.items[frame.tracer.key_of(item)] = item


@opcode("MAP_ADD")
def _map_add(frame: Frame, instruction: Instruction) -> None:
    key, value = frame.popn(2)
    target = frame.stack[-instruction.arg]
    assert isinstance(target, DictValue)
    target.touch(frame.tracer)
    target.items[frame.tracer.key_of(key)] = value


@opcode("LIST_EXTEND")
def _list_extend(frame: Frame, instruction: Instruction) -> None:
    added = list(frame.pop().iterate(frame.tracer))
    target = frame.stack[-instruction.arg]
    assert isinstance(target, SequenceValue)
    target.touch(frame.tracer)
    target.items.extend(added)


@opcode("SET_UPDATE")
def _set_update(frame: Frame, instruction: Instruction) -> None:
    added = list(frame.pop().iterate(frame.tracer))
    target = frame.stack[-instruction.arg]
    assert isinstance(target, SetValue)
    target.touch(frame.tracer)
    target.items.update({frame.tracer.key_of(item): item for item in added})


@opcode("DICT_UPDATE", "DICT_MERGE")
def _dict_update(frame: Frame, instruction: Instruction) -> None:
    added = frame.pop()
    target = frame.stack[-instruction.arg]
    assert isinstance(target, DictValue)
    target.touch(frame.tracer)
    merging = instruction.opname == "DICT_MERGE"
    before = set(target.items)
    pairs = frame.tracer.mapping_items(added)
    for key, value in pairs:
        if merging and key in before:
            raise frame.tracer.raise_type(TypeError, f"got multiple values for keyword argument '{key}'")
        target.items[key] = value


@opcode("LIST_TO_TUPLE")
def _list_to_tuple(frame: Frame, instruction: Instruction) -> None:
    items = frame.pop()
    assert isinstance(items, SequenceValue)
    frame.push(SequenceValue(list(items.items), tuple))


@opcode("UNPACK_SEQUENCE")
def _unpack(frame: Frame, instruction: Instruction) -> None:
    items = list(frame.pop().iterate(frame.tracer))
    if len(items) != instruction.arg:
        if len(items) < instruction.arg:
            message = f"not enough values to unpack (expected {instruction.arg}, got {len(items)})"
        else:
            message = f"too many values to unpack (expected {instruction.arg})"
        raise frame.tracer.raise_type(ValueError, message)
    frame.stack.extend(reversed(items))


@opcode("UNPACK_EX")
def _unpack_ex(frame: Frame, instruction: Instruction) -> None:
    before, after = instruction.arg & 0xFF, instruction.arg >> 8
    items = list(frame.pop().iterate(frame.tracer))
    if len(items) < before + after:
        raise frame.tracer.raise_type(
            ValueError, f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        )
    end = len(items) - after
    parts = [*items[:before], SequenceValue(items[before:end], list), *items[end:]]
    frame.stack.extend(reversed(parts))


@opcode("FORMAT_VALUE")
def _format(frame: Frame, instruction: Instruction) -> None:
    spec = frame.pop() if instruction.arg & 4 else ConstantValue("")
    frame.push(_formatted(frame, frame.pop(), instruction.arg & 3, spec))


@opcode("FORMAT_SIMPLE", since=(3, 13))
def _format_simple(frame: Frame, instruction: Instruction) -> None:
    frame.push(_formatted(frame, frame.pop(), 0, ConstantValue("")))


@opcode("FORMAT_WITH_SPEC", since=(3, 13))
def _format_with_spec(frame: Frame, instruction: Instruction) -> None:
    spec = frame.pop()
    frame.push(_formatted(frame, frame.pop(), 0, spec))


@opcode("CONVERT_VALUE", since=(3, 13))
def _convert(frame: Frame, instruction: Instruction) -> None:
    frame.push(_formatted(frame, frame.pop(), instruction.arg, ConstantValue("")))


_CONVERSIONS: dict[int, Any] = {0: lambda value: value, 1: str, 2: repr, 3: ascii}


def _formatted(frame: Frame, value: Value, conversion: int, spec: Value) -> Value:
    if isinstance(value, (ObjectValue, NewObject)):
        text = frame.tracer.text_of(value, conversion)
        own = class_attribute(value.python_type(), "__format__")
        if text is not None and (conversion or not isinstance(own, types.FunctionType)):
            return frame.tracer.fold(format, [text, spec])
    plain = frame.tracer.snapshot(value)
    return frame.tracer.fold(lambda v, s: format(_CONVERSIONS[conversion](v), s), [plain, spec])


@opcode("MAKE_FUNCTION")
def _make_function(frame: Frame, instruction: Instruction) -> None:
    code = frame.pop().as_python()
    cells: list[CellValue] = []
    defaults: list[Value] = []
    kwdefaults: dict[str, Value] = {}
    if sys.version_info < (3, 13):
        if instruction.arg & 8:
            cells = list(frame.pop().items)  # type: ignore[attr-defined]
        if instruction.arg & 4:
            frame.pop()
        if instruction.arg & 2:
            kwdefaults = dict(frame.pop().items)  # type: ignore[attr-defined]
        if instruction.arg & 1:
            defaults = list(frame.pop().iterate(frame.tracer))
    frame.push(
        ClosureValue(code, code.co_qualname, defaults, kwdefaults, cells, (frame.namespace, frame.globals_source))
    )


@opcode("SET_FUNCTION_ATTRIBUTE", since=(3, 13))
def _set_function_attribute(frame: Frame, instruction: Instruction) -> None:
    function, value = frame.pop(), frame.pop()
    assert isinstance(function, ClosureValue)
    if instruction.arg & 8:
        function.cells = list(value.items)  # type: ignore[attr-defined]
    elif instruction.arg & 2:
        function.kwdefaults = dict(value.items)  # type: ignore[attr-defined]
    elif instruction.arg & 1:
        function.defaults = list(value.iterate(frame.tracer))
    frame.push(function)
