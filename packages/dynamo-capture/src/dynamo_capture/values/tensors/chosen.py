"""One of two objects, by a comparison that only data can answer: what ``max(x, y)`` of tensors gives.

Which one it is, the replacement code finds out when the graph has run, so that it is the same object as in eager. In
the graph, operations that only read it compute with the content of both (``semantics/tensors/content/choices.py``).
"""

from __future__ import annotations

from collections.abc import Iterator

from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.tensors.tensor import TensorValue


class ChosenValue(Value):
    """``yes`` where ``condition``, a tensor of one element, is true; otherwise ``no``."""

    __slots__ = ("condition", "no", "yes")
    is_mutable = True

    def __init__(self, condition: TensorValue, yes: Value, no: Value) -> None:
        self.condition = condition
        self.yes = yes
        self.no = no

    def candidates(self) -> Iterator[Value]:
        """The objects of which it is one."""
        for value in (self.yes, self.no):
            if isinstance(value, ChosenValue):
                yield from value.candidates()
            else:
                yield value

    def python_type(self) -> type:
        kinds = {value.python_type() for value in self.candidates()}
        if len(kinds) > 1:
            raise self.unknown("an object of which only data tell the class")
        return kinds.pop()

    def children(self, tx: Context) -> list[Value]:
        return [self.condition, self.yes, self.no]

    def identity(self) -> object:
        raise self.unknown("comparing with `is`")

    def unknown(self, what: str) -> GraphBreak:
        """The graph break where it has to be known which object it is."""
        return GraphBreak(CONTENT_DECIDES, f"{what}: data choose which object this is")

    def unsupported(self, what: str) -> GraphBreak:
        return self.unknown(what)

    def no_argument(self) -> GraphBreak:
        return self.unknown("a torch function gets it")

    def describe(self) -> str:
        return "an object that data choose"

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.tensors.chosen_attribute(self, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.tensors.chosen_method(self, name, args, kwargs)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        raise self.unknown(f"setting the attribute {name!r}")

    def del_attr(self, tx: Context, name: str) -> None:
        raise self.unknown(f"deleting the attribute {name!r}")

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise self.unknown("a call")

    def get_item(self, tx: Context, key: Value) -> Value:
        raise self.unknown("indexing")

    def set_item(self, tx: Context, key: Value, value: Value) -> None:
        raise self.unknown("assigning an item")

    def del_item(self, tx: Context, key: Value) -> None:
        raise self.unknown("deleting an item")

    def contains(self, tx: Context, item: Value) -> bool:
        raise self.unknown("testing membership")

    def length(self, tx: Context) -> int:
        return tx.tensors.of_chosen(self).length(tx)  # type: ignore[no-any-return]

    def index(self, tx: Context) -> int:
        return tx.tensors.of_chosen(self).index(tx)  # type: ignore[no-any-return]

    def truth(self, tx: Context) -> bool:
        return tx.tensors.of_chosen(self).truth(tx)  # type: ignore[no-any-return]
