"""What torch computes, when the graph has run, of objects that data choose, where autograd follows what is chosen.

    loss += max(0, 1 - score)       # either a tensor, with a history, or the number 0

The gradient goes to what is chosen, and to it alone. So the graph gives the candidates, and the few operations on them
are done by torch, in the order of the program, before anything else that follows the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value


class LateTensor(Value):
    """``function(*operands)``: a tensor without dimensions, or a number. The graph does not know it."""

    __slots__ = ("function", "operands")
    is_mutable = True

    def __init__(self, function: Callable[..., Any], operands: tuple[Value, ...]) -> None:
        self.function = function
        self.operands = operands

    def children(self, tx: Context) -> list[Value]:
        return list(self.operands)

    def python_type(self) -> type:
        raise self.unknown("an object of which only data tell the class")

    def identity(self) -> object:
        raise self.unknown("comparing with `is`")

    def unknown(self, what: str) -> GraphBreak:
        """The graph break where more is to be done with it than to compute on, or to hand it out."""
        return GraphBreak(CONTENT_DECIDES, f"{what}: data choose what it is computed of")

    def unsupported(self, what: str) -> GraphBreak:
        return self.unknown(what)

    def no_argument(self) -> GraphBreak:
        return self.unknown("a torch function gets it")

    def describe(self) -> str:
        return "what is computed of objects that data choose"

    def get_attr(self, tx: Context, name: str) -> Value:
        raise self.unknown(f"the attribute {name!r}")

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        raise self.unknown(f"setting the attribute {name!r}")

    def del_attr(self, tx: Context, name: str) -> None:
        raise self.unknown(f"deleting the attribute {name!r}")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise self.unknown(f"the method {name!r}")

    def truth(self, tx: Context) -> bool:
        raise self.unknown("testing the truth")
