"""Substitutes for builtin functions, where their handlers decline."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from typing import Any

from dynamo_capture.polyfills.registry import substitutes


@substitutes(builtins.sum)
def sum_(iterable: Iterable[Any], /, start: Any = 0) -> Any:
    """``sum`` by repeated ``+``."""
    if isinstance(start, (str, bytes, bytearray)):
        raise TypeError("sum() can't sum strings [use ''.join(seq) instead]")
    total = start
    for item in iterable:
        total = total + item
    return total


@substitutes(builtins.divmod)
def divmod_(numerator: Any, denominator: Any) -> tuple[Any, Any]:
    """``divmod`` by ``//`` and ``%``."""
    return numerator // denominator, numerator % denominator
