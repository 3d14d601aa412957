"""Who is asked what an operator makes of two values: by the kinds of both, in the order of declaration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar

from dynamo_capture.tables import first_answer
from dynamo_capture.values import Value
from dynamo_capture.values.base import Context

Answer: TypeAlias = Callable[..., Value | None]
"""Of the context, the operator and both values; None: another one is asked."""
A = TypeVar("A", bound=Answer)


class Pairs:
    """The functions that answer for one family of operators, each with the kinds of values that it is asked about."""

    def __init__(self) -> None:
        self._declared: list[tuple[Callable[[bool, bool], bool], tuple[type[Value], ...], Answer]] = []
        self._known: dict[tuple[type, type], tuple[Answer, ...]] = {}

    def either(self, *kinds: type[Value]) -> Callable[[A], A]:
        """Declare a function for pairs of which one, or the other, is of these kinds."""
        return self._declare(lambda left, right: left or right, kinds)

    def both(self, *kinds: type[Value]) -> Callable[[A], A]:
        """Declare a function for pairs that are both of these kinds."""
        return self._declare(lambda left, right: left and right, kinds)

    def left(self, *kinds: type[Value]) -> Callable[[A], A]:
        """Declare a function for pairs of which the left one is of these kinds."""
        return self._declare(lambda left, right: left, kinds)

    def _declare(
        self, fits: Callable[[bool, bool], bool], kinds: tuple[type[Value], ...]
    ) -> Callable[[A], A]:
        def declare(answer: A) -> A:
            self._declared.append((fits, kinds, answer))
            return answer

        return declare

    def answer(self, tx: Context, operator: Any, lhs: Value, rhs: Value) -> Value | None:
        """What the first that does not decline makes of two values."""
        pair = type(lhs), type(rhs)
        asked = self._known.get(pair)
        if asked is None:
            asked = self._known[pair] = tuple(
                answer
                for fits, kinds, answer in self._declared
                if fits(issubclass(pair[0], kinds), issubclass(pair[1], kinds))
            )
        return first_answer(asked, tx, operator, lhs, rhs)
