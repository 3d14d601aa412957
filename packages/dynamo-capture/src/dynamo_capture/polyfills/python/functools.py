"""Substitutes for ``functools``."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterable
from typing import Any

from dynamo_capture.polyfills.registry import substitutes

_MISSING: Any = object()


@substitutes(functools.reduce)
def reduce(function: Callable[[Any, Any], Any], iterable: Iterable[Any], initial: Any = _MISSING, /) -> Any:
    """Fold from the left."""
    iterator: Any = _MISSING
    with contextlib.suppress(TypeError):
        iterator = iter(iterable)
    if iterator is _MISSING:
        raise TypeError("reduce() arg 2 must support iteration")
    total = initial
    if initial is _MISSING:
        total = next(iterator, _MISSING)
        if total is _MISSING:
            raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        total = function(total, item)
    return total
