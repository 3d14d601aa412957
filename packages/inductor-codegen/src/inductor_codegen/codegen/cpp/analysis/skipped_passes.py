"""Passes that most rows need not run, because they would only add zeros.

    sum(where(far, x - mean, 0))    with ``far`` a value of the row:    if (far) { for (...) sum += ... }

A decomposition writes so what it needs for rare rows alone: a correction of a variance whose mean is large, what
becomes of infinite gradients.
"""

from __future__ import annotations

from collections.abc import Set

from inductor_codegen.ir.kernel import Accumulate, Pass
from inductor_codegen.ir.scalar import Apply, Constant, Scalar


def conditions_to_run(step: Pass, moving: Set[Scalar]) -> list[Scalar]:
    """Values of the row of which one must be true for the pass over its points to matter; empty if it always may.

    ``moving`` are the scalars that change along the row.
    """
    found: list[Scalar] = []
    for statement in step.points:
        match statement:
            case Accumulate(kind="sum", value=Apply("where", (condition, _, Constant(value)))) if (
                value == 0 and condition not in moving
            ):
                found.append(condition)
            case _:
                return []
    return list(dict.fromkeys(found))


def only_where_not_finite(conditions: list[Scalar]) -> bool:
    """Whether these ask for numbers that are infinite or NaN (``x - x != 0``): then the pass need not be fast."""
    return bool(conditions) and all(_is_not_finite(condition) for condition in conditions)


def _is_not_finite(condition: Scalar) -> bool:
    match condition:
        case Apply("ne", (Apply("sub", (one, other)), Constant(value))):
            return one == other and value == 0
    return False
