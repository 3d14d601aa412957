"""Texts that numbers which vary, or the content of tensors, are part of: f-strings, ``str.format``, ``%``, ``join``.

    f"lr {lr:.2e}, loss {loss:.3f}"    ->    OpenText, TextValue: put together when the code runs

A text that only numbers of the program are part of fixes them as soon as somebody asks for it. A specification that
Python refuses for the kind of number, or may refuse for another number, makes no such text: the number is asked for.
"""

from __future__ import annotations

import re
import string
from collections.abc import Sequence
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import OBJECT_OPERATION
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.replacement_calls import BY_PERCENT, formatted
from dynamo_capture.values import Const, OpenText, Piece, SymValue, TensorValue, TextValue, TupleValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.numbers.condition import DataCondition
from dynamo_capture.values.tensors.floating import RuntimeFloat
from dynamo_capture.values.tensors.tensor import PLAIN_CLASSES
from fx_interface.symbols import Expr

_FIELD = re.compile(r"%(?:%|[#0\- +]*\d*(?:\.\d+)?[diouxXeEfFgGrsa])")
"""What ``%`` replaces: without a name, and without a width that is an argument too."""
_OF_INTEGERS = frozenset("diouxXc")


def text(tx: Context, value: Value, conversion: int, spec: str = "") -> Value | None:
    """What an f-string writes for a value, if that is known only when the code runs; None for anything else. CPython
    3.13 formats a text once more, as it is."""
    if isinstance(value, (TextValue, OpenText)) and conversion < 2:
        return None if spec else value
    tx.tensors.check_special(value, "__format__", "__str__", "__repr__")
    if type(value) is TensorValue and value.meta.cls not in PLAIN_CLASSES:
        raise GraphBreak(OBJECT_OPERATION, f"the text of a {value.meta.cls.__name__}, a class of tensors")
    if isinstance(value, TensorValue) and tx.tensors.modes:  # which are asked for the text
        return None
    if not _takes(value, conversion, spec):
        return None
    if isinstance(value, TensorValue):
        if not _has_plain_text(value, conversion):
            return None
        if (number := _known_number(value)) is not None and not conversion:
            return Const(tx.fold(lambda: format(number, spec)))
        kept = value.call_method(tx, "detach", [], {}).call_method(tx, "clone", [], {})
        return TextValue([Piece(kept, conversion, spec)])
    if _is_from_data(tx, value):
        return TextValue([Piece(value, conversion, spec)])
    return OpenText(tx, [Piece(value, conversion, spec)]) if _is_left_open(tx, value) else None


def _known_number(value: TensorValue) -> Any:
    """The integer in a tensor without dimensions that is the same in each call; None for any other tensor."""
    content = value.content
    if not isinstance(content, torch.Tensor) or value.follows_from or value.meta.spec.sizes:
        return None
    return content.item() if value.meta.spec.dtype is torch.int64 else None


def _is_left_open(tx: Context, value: Value) -> bool:
    """Whether nothing depends on a number of the program so far."""
    if value.expr is not None:
        return isinstance(tx.env.simplify(value.expr), Expr)
    return isinstance(value, RuntimeFloat) and value.is_open


def _is_from_data(tx: Context, value: Value) -> bool:
    """Whether a number, or a bool, is known only when the graph has run, or is drawn."""
    if value.expr is not None:
        return tx.env.is_from_data(value.expr)
    if isinstance(value, RuntimeFloat):
        return value.is_open and not value.can_be_fixed
    return isinstance(value, DataCondition)


def _takes(value: Value, conversion: int, spec: str) -> bool:
    """Whether Python surely writes a number by this specification."""
    if not spec:
        return True
    if isinstance(value, TensorValue) and value.meta.spec.sizes:
        return False
    kind = value.meta.spec.dtype.to_real().is_floating_point if isinstance(value, TensorValue) else None
    is_float = kind if kind is not None else isinstance(value, RuntimeFloat)
    if isinstance(value, TensorValue) and value.meta.spec.dtype.is_complex:
        return False
    if spec[-1] in _OF_INTEGERS and (
        is_float or spec[-1] == "c"
    ):  # ``%d`` refuses infinite floats, "c" large integers
        return False
    try:
        formatted(1.0 if is_float else 1, conversion, spec)
    except (TypeError, ValueError):
        return False
    return True


def _has_plain_text(tensor: TensorValue, conversion: int) -> bool:
    """Whether the text says nothing of the tensor's history."""
    return not tensor.meta.requires_grad or (not conversion and not tensor.meta.spec.sizes)


def is_open(value: Value) -> bool:
    """Whether it is a text that is put together when the code runs."""
    return isinstance(value, TextValue) or (isinstance(value, OpenText) and value.is_unread)


def joined(tx: Context, parts: Sequence[Value]) -> Value:
    """Texts one after the other."""
    if not any(map(is_open, parts)):
        return Const("".join([tx.constant(part) for part in parts]))
    pieces = [piece for part in parts for piece in _pieces(part)]
    return TextValue(pieces) if any(isinstance(part, TextValue) for part in parts) else OpenText(tx, pieces)


def _pieces(value: Value) -> list[Piece]:
    if isinstance(value, (TextValue, OpenText)) and is_open(value):
        return value.pieces
    return [Piece(value)]


def joined_by(tx: Context, separator: Value, parts: Sequence[Value]) -> Value | None:
    """``separator.join(parts)``; None where all is known, or Python refuses a part."""
    if not any(map(is_open, parts)) or any(part.python_type() is not str for part in (separator, *parts)):
        return None
    return joined(
        tx, [part for pair in zip([separator] * len(parts), parts, strict=True) for part in pair][1:]
    )


def by_percent(tx: Context, given: Const, operand: Value) -> Value | None:
    """``given % operand``; None where all is known, or there are other fields than those of numbers and texts."""
    items = [tx.force(item) for item in operand.items] if isinstance(operand, TupleValue) else [operand]
    if not any(map(_may_be_open, items)):
        return None
    template = given.value
    literals, fields = _FIELD.split(template), _FIELD.findall(template)
    if any("%" in literal for literal in literals) or sum(field != "%%" for field in fields) != len(items):
        return None
    parts: list[Value] = [Const(literals[0])]
    following = iter(items)
    for field, literal in zip(fields, literals[1:], strict=True):
        part = Const("%") if field == "%%" else _field(tx, next(following), BY_PERCENT, field)
        if part is None:
            return None
        parts += [part, Const(literal)]
    return joined(tx, parts)


def by_format(tx: Context, template: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``template.format(*args, **kwargs)``; None as for ``by_percent``."""
    if not any(map(_may_be_open, (*args, *kwargs.values()))):
        return None
    parts: list[Value] = []
    counted = 0
    try:
        fields = list(string.Formatter().parse(template))
    except ValueError:
        return None
    for literal, name, spec, letter in fields:
        parts.append(Const(literal))
        if name is None:
            continue
        if not name:
            name, counted = str(counted), counted + 1
        elif name.isdecimal() and counted:
            return None
        given = args[int(name)] if name.isdecimal() and int(name) < len(args) else kwargs.get(name)
        conversion = {None: 0, "s": 1, "r": 2, "a": 3}.get(letter)
        if given is None or conversion is None or "{" in (spec or ""):
            return None
        part = _field(tx, given, conversion, spec or "")
        if part is None:
            return None
        parts.append(part)
    return joined(tx, parts)


def _may_be_open(value: Value) -> bool:
    return isinstance(value, (SymValue, DataCondition, TensorValue)) or value.is_open or is_open(value)


def _field(tx: Context, value: Value, conversion: int, spec: str) -> Value | None:
    """What stands for one field; None where it is neither a number nor a plain constant."""
    value = tx.force(value)
    if is_open(value) and spec in ("", "%s") and conversion in (0, 1, BY_PERCENT):
        return value
    made = text(tx, value, conversion, spec) if _may_be_open(value) and not is_open(value) else None
    if made is not None:
        return made
    known = value.known_as(str, int, float, bool)
    if known is None:
        return None
    try:
        return Const(formatted(known, conversion, spec))
    except (TypeError, ValueError, OverflowError):
        return None
