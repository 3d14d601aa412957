"""Sizes that are symbols: their values in a call, and integers computed from them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from fxstack_artifact.errors import unreadable

NUMBER, SYMBOL, ADD, MUL, FLOORDIV, MOD, MIN, MAX = range(8)
"""The words of an expression in postfix, as in ``csrc/core/contract.h``."""
_OPERATIONS: tuple[Callable[[int, int], int], ...] = (
    operator.add,
    operator.mul,
    operator.floordiv,
    operator.mod,
    min,
    max,
)
Sizes = Callable[[Sequence[Any]], Sequence[int]]
"""Gives the value of each symbol, from the leaves of a call that fits the contract."""


def reader(sources: Sequence[Sequence[int]]) -> Sizes:
    """``sources`` has for each symbol the leaf and its dimension, -1 for an integer leaf."""
    places = [(int(leaf), int(dim)) for leaf, dim, *_ in sources]
    return lambda leaves: [leaves[leaf] if dim < 0 else leaves[leaf].shape[dim] for leaf, dim in places]


def postfix(words: Any) -> Callable[[Sequence[int]], int]:
    """The function of the symbols' values that an expression stands for."""
    if not isinstance(words, list) or not all(type(word) is int for word in words):
        raise unreadable(f"{words!r} is no expression")

    def value(symbols: Sequence[int]) -> int:
        stack: list[int] = []
        rest = iter(words)
        for word in rest:
            if word == NUMBER:
                stack.append(next(rest))
            elif word == SYMBOL:
                stack.append(symbols[next(rest)])
            else:
                rhs = stack.pop()
                stack[-1] = _OPERATIONS[word - ADD](stack[-1], rhs)
        (result,) = stack
        return result

    return value
