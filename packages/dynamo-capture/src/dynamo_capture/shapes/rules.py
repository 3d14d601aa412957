"""Spec rules for the operators that occur most: views, pointwise operators, products, reductions.

``@rule(op, ...)`` declares a function of the operator's arguments, with a ``TensorSpec`` for each tensor; it may return
``NotImplemented`` for arguments that it does not cover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from torch._ops import OpOverload

F = TypeVar("F", bound=Callable[..., Any])
RULES: dict[OpOverload, Callable[..., Any]] = {}


def rule(*operators: OpOverload) -> Callable[[F], F]:
    """Declare the decorated function as the spec rule of ``operators``; declaring one twice is an error."""

    def register(function: F) -> F:
        for operator in operators:
            if operator in RULES:
                raise ValueError(f"{operator} has two rules: {RULES[operator]} and {function}")
            RULES[operator] = function
        return function

    return register
