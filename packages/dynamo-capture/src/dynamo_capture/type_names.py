"""The name by which CPython's messages call a class: with its module, where it is written in C outside of builtins."""

from __future__ import annotations

import ctypes

_OFFSET = object.__basicsize__ + ctypes.sizeof(ctypes.c_ssize_t)
"""Of ``tp_name`` in a class: what every object begins with and the size of variable objects come before it."""


def message_name(cls: type) -> str:
    """``tp_name``: 'collections.deque' where ``__name__`` is 'deque'; a class written in Python has one name only."""
    found = ctypes.c_char_p.from_address(id(cls) + _OFFSET).value
    return cls.__name__ if found is None else found.decode()
