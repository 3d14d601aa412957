"""What CPython's messages depend on in a class: its name, with its module where it is written in C outside of
builtins, whether it has a table of slots for sequences, and whether its instances lend their memory."""

from __future__ import annotations

import ctypes

_OFFSET = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Of ``tp_name`` in a class: what every object begins with and the size of variable objects come before it."""
_AS_SEQUENCE = _OFFSET + 10 * ctypes.sizeof(ctypes.c_void_p)
"""Of ``tp_as_sequence``: two sizes and seven pointers are between."""

_AS_BUFFER = _OFFSET + 17 * ctypes.sizeof(ctypes.c_void_p)


def message_name(cls: type) -> str:
    """``tp_name``: 'collections.deque' where ``__name__`` is 'deque'; a class written in Python has one name only."""
    found = ctypes.c_char_p.from_address(id(cls) + _OFFSET).value
    return cls.__name__ if found is None else found.decode()


def has_sequence_slots(cls: type) -> bool:
    """Whether ``tp_as_sequence`` is there, whatever is in it: an integer between brackets is then an index."""
    return ctypes.c_void_p.from_address(id(cls) + _AS_SEQUENCE).value is not None


def has_buffer(cls: type) -> bool:
    """Whether instances lend their memory (``bf_getbuffer``): numbers are then made of its bytes."""
    procedures = ctypes.c_void_p.from_address(id(cls) + _AS_BUFFER).value
    return procedures is not None and ctypes.c_void_p.from_address(procedures).value is not None
