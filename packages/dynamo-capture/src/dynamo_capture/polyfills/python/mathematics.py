"""Substitutes for functions of ``math`` that iterate over numbers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from dynamo_capture.polyfills.registry import substitutes


@substitutes(math.prod)
def prod(iterable: Iterable[Any], /, *, start: Any = 1) -> Any:
    """``math.prod`` by repeated ``*``."""
    total = start
    for item in iterable:
        total = total * item
    return total
