"""What CPython's messages depend on in a class: its name, with its module where it is written in C outside of
builtins, whether it has a table of slots for sequences, and whether its instances lend their memory; and which tables
answer ``+`` and ``*``, on which it depends in what order operands are asked."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.class_members import module_of

_OFFSET = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Of ``tp_name`` in a class: what every object begins with and the size of variable objects come before it."""
_POINTER = ctypes.sizeof(ctypes.c_void_p)
_AS_NUMBER = _OFFSET + 9 * _POINTER
_AS_SEQUENCE = _OFFSET + 10 * _POINTER
"""Of ``tp_as_number`` and ``tp_as_sequence``: two sizes and six or seven pointers are between."""
_IN_NUMBERS = {operator.add: 0, operator.mul: 2, operator.iadd: 19, operator.imul: 21}
_IN_SEQUENCES = {operator.add: 1, operator.mul: 2, operator.iadd: 8, operator.imul: 9}
"""Where the two tables have what adds and multiplies, counted in pointers."""

_AS_BUFFER = _OFFSET + 17 * _POINTER


def message_name(cls: type) -> str:
    """``tp_name``: 'collections.deque' where ``__name__`` is 'deque'; a class written in Python has one name only."""
    found = ctypes.c_char_p.from_address(id(cls) + _OFFSET).value
    return cls.__name__ if found is None else found.decode()


def full_name(cls: type) -> str:
    """The name with its module's, where that is not ``builtins`` or ``__main__``."""
    module = module_of(cls)
    is_plain = module in ("", "builtins", "__main__")
    return cls.__qualname__ if is_plain else f"{module}.{cls.__qualname__}"


def has_sequence_slots(cls: type) -> bool:
    """Whether ``tp_as_sequence`` is there, whatever is in it: an integer between brackets is then an index."""
    return ctypes.c_void_p.from_address(id(cls) + _AS_SEQUENCE).value is not None


def answers_as_number(cls: type, function: Callable[..., Any]) -> bool:
    """Whether instances are asked as numbers are, from either side. All have their say before sequences come."""
    return function not in _IN_NUMBERS or _has_slot(cls, _AS_NUMBER, _IN_NUMBERS[function])


def answers_as_sequence(cls: type, function: Callable[..., Any]) -> bool:
    """Whether instances are joined or repeated by ``function`` as sequences are, when no number has answered."""
    return function in _IN_SEQUENCES and _has_slot(cls, _AS_SEQUENCE, _IN_SEQUENCES[function])


def _has_slot(cls: type, table: int, place: int) -> bool:
    slots = ctypes.c_void_p.from_address(id(cls) + table).value
    return slots is not None and ctypes.c_void_p.from_address(slots + place * _POINTER).value is not None


def has_buffer(cls: type) -> bool:
    """Whether instances lend their memory (``bf_getbuffer``): numbers are then made of its bytes."""
    procedures = ctypes.c_void_p.from_address(id(cls) + _AS_BUFFER).value
    return procedures is not None and ctypes.c_void_p.from_address(procedures).value is not None
