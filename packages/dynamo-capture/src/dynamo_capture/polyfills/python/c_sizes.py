"""Sizes and places as functions in C take them."""

from __future__ import annotations

import operator
import sys
from typing import Any

_TOO_LARGE = "Python int too large to convert to C ssize_t"


def c_size(number: Any, too_large: str = _TOO_LARGE) -> int:
    """The number as a ``Py_ssize_t``, to which functions in C convert it before they do anything."""
    size = int(operator.index(number))
    if not -sys.maxsize - 1 <= size <= sys.maxsize:
        raise OverflowError(too_large)
    return size


def c_size_or_none(number: Any) -> int | None:
    """As ``c_size``, where None means that nothing is given; such arguments are refused in words of their own."""
    if number is None:
        return None
    if not hasattr(type(number), "__index__"):
        raise TypeError(f"argument should be integer or None, not {type(number).__name__!r}")
    return c_size(number, f"cannot fit {type(number).__name__!r} into an index-sized integer")
