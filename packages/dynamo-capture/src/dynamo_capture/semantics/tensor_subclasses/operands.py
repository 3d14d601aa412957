"""Which operands torch asks for ``__torch_function__``: it reads the attribute of each that is no plain tensor and not
of one of Python's own classes, the operand's own and not its class's.

Code of the program that answers such a read, ``__getattribute__`` or a property say, runs as often as torch reads,
which differs from function to function: Python asks then.
"""

from __future__ import annotations

import types
from typing import Any

import torch

from dynamo_capture.foundation.break_kinds import SUBCLASS_TAKES_OVER
from dynamo_capture.foundation.class_members import (
    has_member,
    is_heap_type,
    member,
    runs_program,
    runs_program_when_missing,
)
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.per_class import once_per_class
from dynamo_capture.semantics.tensors.torchs_members import overrides
from dynamo_capture.values import Const, ObjectValue, TensorValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.opaque import OpaqueValue
from dynamo_capture.values.structures import kinds_of
from dynamo_capture.values.tensors.wrapper import add_classes

_NAME = "__torch_function__"
_ABSENT: Any = object()
_TAKEN_AS_THEY_ARE = (int, float, complex, str, tuple, list)
"""Classes whose instances torch takes where it wants such a number, text or sequence, before it asks them."""
_ASKED_NOTHING = frozenset(
    (int, float, bool, complex, str, type(None), slice, torch.dtype, torch.device, torch.Size, dict)
)
_FUNCTIONS = (types.FunctionType, classmethod, staticmethod)
_FUNCTIONS_IN_C = (types.BuiltinFunctionType, types.MethodDescriptorType, types.ClassMethodDescriptorType)


def overriding(tx: Context, values: list[Value]) -> list[type]:
    """The classes that take over an operation, in torch's order: subclasses before their bases."""
    found: list[type] = []
    for value in kinds_of(tx, values):
        cls = value.python_type()
        if isinstance(value, TensorValue):
            takes_over = cls is not torch.Tensor and overrides(cls)
            if takes_over and not _is_read_from_class(cls):
                raise _asks_program()
        else:
            takes_over = cls not in _ASKED_NOTHING and _takes_over(tx, value, cls)
        if takes_over:
            add_classes(found, [cls])
    return found


def _takes_over(tx: Context, value: Value, cls: type) -> bool:
    """Whether torch finds ``__torch_function__`` in an operand that is no tensor."""
    if not (is_heap_type(cls) or issubclass(cls, type)):
        return False
    if isinstance(value, Const):
        if runs_program_when_missing(cls) or has_member(cls, _NAME):  # a class, of its metaclass
            raise _asks_program()
    elif isinstance(value, OpaqueValue):
        if issubclass(cls, torch.Tensor) or runs_program_when_missing(cls) or has_member(cls, _NAME):
            raise value.unsupported(f"asking for {_NAME}")
    elif type(value) is ObjectValue:
        if has_member(cls, _NAME):
            if not _is_read_from_class(cls):
                raise _asks_program()
            if issubclass(cls, _TAKEN_AS_THEY_ARE) or has_member(cls, "__index__"):
                raise GraphBreak(
                    SUBCLASS_TAKES_OVER, f"{value.describe()} has {_NAME}, but may be taken for a number"
                )
            return True
        if runs_program_when_missing(cls):
            raise _asks_program()
        if _has_own(tx, value):
            raise GraphBreak(SUBCLASS_TAKES_OVER, f"an operand has a {_NAME} of its own")
    return False


def check_class(value: Value) -> None:
    """A graph break for a class that is an operand, and is asked as an instance is. A function to which classes are
    given (``as_subclass``) does not ask them."""
    if type(value) is Const and isinstance(value.value, type) and has_member(value.value, _NAME):
        raise GraphBreak(SUBCLASS_TAKES_OVER, f"{value.describe()} is an operand, and is asked for {_NAME}")


@once_per_class
def _is_read_from_class(cls: type) -> bool:
    """Whether torch finds what the class has, and no code of the program says so."""
    found = member(cls, _NAME, _ABSENT)
    meta = type(cls)
    if runs_program(cls) or runs_program(meta) or has_member(meta, _NAME):
        return False
    return isinstance(found, (*_FUNCTIONS, *_FUNCTIONS_IN_C)) or not has_member(type(found), "__get__")


def _has_own(tx: Context, value: ObjectValue) -> bool:
    """Whether the object itself has one, which is guarded."""
    try:
        tx.attributes.without_getattr(value, _NAME)
    except UserRaise:
        return False
    return True


def _asks_program() -> GraphBreak:
    return GraphBreak(SUBCLASS_TAKES_OVER, f"code of the program answers whether an operand has {_NAME}")
