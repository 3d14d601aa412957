"""Traceable Python in place of C functions that the translator cannot look into.

``@substitutes(f)`` declares that calling the decorated function means the same as calling ``f``. The translator inlines
the substitute where the original is called with values that it only knows symbolically. Substitutes use nothing but
plain bytecode, so that they work on whatever the translator works on; they keep the original's exceptions.
"""

from dynamo_capture.polyfills.python import (
    builtins,
    containers,
    functools,
    heapq,
    mathematics,
    operator,
    sorting,
)
from dynamo_capture.polyfills.registry import SUBSTITUTES, substitute_for, substitutes

__all__ = [
    "SUBSTITUTES",
    "builtins",
    "containers",
    "functools",
    "heapq",
    "mathematics",
    "operator",
    "sorting",
    "substitute_for",
    "substitutes",
]
