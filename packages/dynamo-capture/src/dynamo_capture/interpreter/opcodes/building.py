"""Building containers, slices, strings and functions; unpacking."""

from __future__ import annotations

from typing import Any, TypeVar

from dynamo_capture.bytecode.versions.running import RULES
from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.class_members import has_member, member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.type_names import has_sequence_slots
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.semantics.operators import open_texts
from dynamo_capture.semantics.operators.mappings import spread_entries
from dynamo_capture.values import (
    NONE,
    CellValue,
    Const,
    DictValue,
    FunctionValue,
    IteratorStop,
    IteratorValue,
    ListValue,
    ObjectValue,
    SequenceValue,
    SetValue,
    SliceValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context

V = TypeVar("V", bound=Value)


@opcode("BUILD_TUPLE")
def build_tuple(frame: Frame, step: Step) -> None:
    frame.stack.append(TupleValue(frame.pop_n(step.arg)))


@opcode("BUILD_LIST")
def build_list(frame: Frame, step: Step) -> None:
    frame.stack.append(ListValue(frame.pop_n(step.arg)))


@opcode("BUILD_SET")
def build_set(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.tx.calls.set_of(frame.pop_n(step.arg)))


@opcode("BUILD_MAP")
def build_map(frame: Frame, step: Step) -> None:
    flat = frame.pop_n(2 * step.arg)
    made = DictValue({})
    for key, value in zip(flat[::2], flat[1::2], strict=True):
        made.set_item(frame.tx, key, value)
    frame.stack.append(made)


@opcode("BUILD_CONST_KEY_MAP")
def build_const_key_map(frame: Frame, step: Step) -> None:
    keys = frame.stack.pop().as_constant()
    values = frame.pop_n(step.arg)
    entries: dict[Any, list[Value]] = {}
    for key, value in zip(keys, values, strict=True):  # of equal keys the first stays, with the last value
        entries.setdefault(key, [Const(key), value])[1] = value
    frame.stack.append(DictValue(entries))


@opcode("BUILD_STRING")
def build_string(frame: Frame, step: Step) -> None:
    frame.stack.append(open_texts.joined(frame.tx, frame.pop_n(step.arg)))


@opcode("BUILD_SLICE")
def build_slice(frame: Frame, step: Step) -> None:
    bounds = frame.pop_n(step.arg)
    frame.stack.append(SliceValue((bounds[0], bounds[1], bounds[2] if step.arg == 3 else NONE)))


@opcode("LIST_TO_TUPLE", until=(3, 11))
def list_to_tuple(frame: Frame, step: Step) -> None:
    frame.stack.append(TupleValue(frame.stack.pop().unpack(frame.tx)))


def _display(frame: Frame, step: Step, kind: type[V]) -> V:
    """What a display or comprehension adds to."""
    owner = frame.stack[-step.arg]
    if not isinstance(owner, kind):  # of before the trace, with members that cannot be followed
        raise owner.unsupported("adding to the display")
    return owner


@opcode("LIST_APPEND")
def list_append(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    owner = _display(frame, step, ListValue)
    owner.append(frame.tx, [value])


@opcode("LIST_EXTEND")
def list_extend(frame: Frame, step: Step) -> None:
    tx, value = frame.tx, frame.stack.pop()
    owner = _display(frame, step, ListValue)
    if not is_iterable(value):
        kind = value.class_name(tx)
        raise tx.raises(TypeError, f"Value after * must be an iterable, not {kind}")
    tx.effects.mutates(owner)
    owner.items.extend(value.items_for_list(tx))


def is_iterable(value: Value) -> bool:
    """Whether the value's class says how to iterate over it."""
    if isinstance(value, IteratorValue):
        return True
    kind = value.python_type()
    return member(kind, "__iter__", None) is not None or has_member(kind, "__getitem__")


@opcode("SET_ADD")
def set_add(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    owner = _display(frame, step, SetValue)
    owner.add(frame.tx, value)


@opcode("SET_UPDATE")
def set_update(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    owner = _display(frame, step, SetValue)
    for item in value.unpack(frame.tx):
        owner.add(frame.tx, item)


@opcode("MAP_ADD")
def map_add(frame: Frame, step: Step) -> None:
    key, value = frame.pop_n(2)
    frame.stack[-step.arg].set_item(frame.tx, key, value)


@opcode("DICT_UPDATE")
def dict_update(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    owner = frame.stack[-step.arg]
    for key, item in spread_entries(frame.tx, value):
        owner.set_item(frame.tx, key, item)


@opcode("DICT_MERGE")
def dict_merge(frame: Frame, step: Step) -> None:
    """Stack: callable and NULL (in the version's order), arguments, dict, other values, mapping."""
    tx, value = frame.tx, frame.stack.pop()
    owner = frame.stack[-step.arg]
    called = frame.stack[-step.arg - (2 if RULES.null_before_callable else 3)]

    def refusal(kind: str) -> str:
        return f"{name_of_callable(tx, called)} argument after ** must be a mapping, not {kind}"

    for key, item in spread_entries(tx, value, refusal):
        if owner.contains(tx, key):
            name = name_of_callable(tx, called)
            raise tx.raises(
                TypeError, f"{name} got multiple values for keyword argument {tx.constant(key)!r}"
            )
        owner.set_item(tx, key, item)


def name_of_callable(tx: Context, called: Value) -> str:
    """How error messages call a function."""
    if not tx.attributes.has(called, "__qualname__"):
        raise GraphBreak(UNKNOWN_VALUE, f"{called.describe()} is called with wrong arguments")
    name = tx.constant(called.get_attr(tx, "__qualname__"))
    module = tx.constant(called.get_attr(tx, "__module__"))
    return f"{name}()" if module in (None, "builtins") else f"{module}.{name}()"


@opcode("UNPACK_SEQUENCE")
def unpack_sequence(frame: Frame, step: Step) -> None:
    items = unpack_exactly(frame.tx, frame.stack.pop(), step.arg)
    frame.stack.extend(reversed(items))


def unpack_exactly(tx: Context, value: Value, count: int) -> list[Value]:
    """``a, b = value``."""
    _check_iterable(tx, value)
    if isinstance(value, (IteratorValue, ObjectValue)):
        items = _at_most(tx, value.iterate(tx), count + 1)  # a program's iterator may never end
    else:
        items = value.unpack(tx)
    if len(items) < count:
        raise tx.raises(ValueError, f"not enough values to unpack (expected {count}, got {len(items)})")
    if len(items) > count:
        raise tx.raises(ValueError, f"too many values to unpack (expected {count})")
    return items


def _check_iterable(tx: Context, value: Value) -> None:
    kind = value.python_type()
    by_index = has_member(kind, "__getitem__") and has_sequence_slots(kind)
    if not has_member(kind, "__iter__") and not by_index:
        raise tx.raises(TypeError, f"cannot unpack non-iterable {value.class_name(tx)} object")


def _at_most(tx: Context, iterator: IteratorValue, count: int) -> list[Value]:
    items: list[Value] = []
    tx.effects.advances(iterator)
    while len(items) < count:
        try:
            items.append(iterator.next(tx))
        except IteratorStop:
            break
    return items


@opcode("UNPACK_EX")
def unpack_ex(frame: Frame, step: Step) -> None:
    before, after = step.arg & 0xFF, step.arg >> 8
    value = frame.stack.pop()
    _check_iterable(frame.tx, value)
    items = value.unpack(frame.tx)
    if len(items) < before + after:
        raise frame.tx.raises(
            ValueError, f"not enough values to unpack (expected at least {before + after}, got {len(items)})"
        )
    middle = items[before : len(items) - after]
    tail = items[len(items) - after :]
    frame.stack.extend(reversed([*items[:before], ListValue(middle), *tail]))


@opcode("FORMAT_VALUE", until=(3, 12))
def format_value(frame: Frame, step: Step) -> None:
    spec = frame.tx.constant(frame.stack.pop()) if step.arg & 4 else ""
    _format(frame, frame.stack.pop(), step.arg & 3, spec)


@opcode("CONVERT_VALUE", since=(3, 13))
def convert_value(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    frame.stack.append(open_texts.text(frame.tx, value, step.arg) or _converted(frame, value, step.arg))


@opcode("FORMAT_SIMPLE", since=(3, 13))
def format_simple(frame: Frame, step: Step) -> None:
    _format(frame, frame.stack.pop(), 0, "")


@opcode("FORMAT_WITH_SPEC", since=(3, 13))
def format_with_spec(frame: Frame, step: Step) -> None:
    spec = frame.tx.constant(frame.stack.pop())
    _format(frame, frame.stack.pop(), 0, spec)


def _format(frame: Frame, value: Value, conversion: int, spec: str) -> None:
    tx = frame.tx
    text = open_texts.text(tx, value, conversion, spec)
    if text is None:
        if conversion:
            value = _converted(frame, value, conversion)
        text = Const(format).call(tx, [value, Const(spec)], {})
    frame.stack.append(text)


def _converted(frame: Frame, value: Value, conversion: int) -> Value:
    return Const((None, str, repr, ascii)[conversion]).call(frame.tx, [value], {})


@opcode("MAKE_FUNCTION")
def make_function(frame: Frame, step: Step) -> None:
    code = frame.stack.pop().as_constant()
    made = FunctionValue(code, frame.globals)
    flags = step.arg
    if flags & 8:
        _set_function_part(frame, made, 8, frame.stack.pop())
    for flag in (4, 2, 1):
        if flags & flag:
            _set_function_part(frame, made, flag, frame.stack.pop())
    frame.stack.append(made)


@opcode("SET_FUNCTION_ATTRIBUTE", since=(3, 13))
def set_function_attribute(frame: Frame, step: Step) -> None:
    made = frame.stack.pop()
    assert isinstance(made, FunctionValue)
    _set_function_part(frame, made, step.arg, frame.stack.pop())
    frame.stack.append(made)


def _set_function_part(frame: Frame, made: FunctionValue, flag: int, value: Value) -> None:
    tx = frame.tx
    if flag == 8:
        cells = value.unpack(tx)
        made.closure = [cell for cell in cells if isinstance(cell, CellValue)]
    elif flag == 4:
        parts = value.unpack(tx)
        names = [name.as_constant() for name in parts[::2]]
        made.attrs["__annotations__"] = DictValue(
            {name: [Const(name), part] for name, part in zip(names, parts[1::2], strict=True)}
        )
    elif flag == 2:
        made.given_kwdefaults = {key.as_constant(): item for key, item in spread_entries(tx, value)}
    elif flag == 1:
        made.defaults = value.unpack(tx)


@opcode("GET_LEN")
def get_len(frame: Frame, step: Step) -> None:
    owner = frame.stack[-1]
    frame.stack.append(Const(owner.length(frame.tx)))


__all__ = ["SequenceValue", "unpack_exactly"]
