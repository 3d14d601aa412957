"""When two constants are the same constant: exact types, bitwise floats, element by element."""

from __future__ import annotations

import struct
from typing import Any

_BY_EQUALITY = (int, str, bytes)
_BY_IDENTITY = (bool, type(None), type(Ellipsis), type(NotImplemented))


def float_key(value: float) -> bytes | str:
    """The bits of a float; every nan is one constant."""
    return "nan" if value != value else struct.pack("<d", value)


def constants_equal(expected: Any, value: Any) -> bool:
    """Whether ``value`` has exactly ``expected``'s type and is the same constant. Never raises."""
    cls = type(expected)
    if type(value) is not cls:
        return False
    if expected is value:
        return True
    if cls in _BY_IDENTITY:
        return False
    if cls in _BY_EQUALITY:
        return bool(expected == value)
    if cls is float:
        return float_key(expected) == float_key(value)
    if cls is complex:
        return constants_equal((expected.real, expected.imag), (value.real, value.imag))
    if cls is tuple:
        return len(expected) == len(value) and all(map(constants_equal, expected, value))
    if cls is slice:
        return all(
            constants_equal(getattr(expected, n), getattr(value, n)) for n in ("start", "stop", "step")
        )
    try:
        return bool(expected == value)
    except Exception:
        return False


def constant_key(value: Any) -> Any:
    """A hashable stand-in: two constants are the same where their keys are equal."""
    cls = type(value)
    if cls is float:
        return (cls, float_key(value))
    if cls is complex:
        return (cls, float_key(value.real), float_key(value.imag))
    if cls is tuple:
        return (cls, *map(constant_key, value))
    if cls is slice:
        return (cls, *map(constant_key, (value.start, value.stop, value.step)))
    try:
        hash(value)
    except TypeError:
        return (cls, "id", id(value))
    return (cls, value)
