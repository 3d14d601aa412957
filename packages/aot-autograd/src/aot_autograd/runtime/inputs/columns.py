"""Many items of a sequence at once: what an optimizer does a thousand times in a step must be no loop in Python."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any


def items(indices: Sequence[int]) -> Callable[[Sequence[Any]], tuple[Any, ...]]:
    """What takes the items at those places, in their order."""
    if len(indices) > 1:
        return operator.itemgetter(*indices)
    if not indices:
        return lambda values: ()
    (index,) = indices
    return lambda values: (values[index],)
