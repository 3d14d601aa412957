"""What is recorded: calls of functional operators, and the inputs of the program.

Recording is the hot loop of a compilation, so a call is a small slotted object, not an ``fx`` node; the graphs are
built from the live ones at the end (``graphs.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fx_interface.errors import UserLocation
from fx_interface.tensor_spec import ValueSpec


class Input:
    """Marks a value that is an input of the joint program; ``name`` becomes the placeholder's."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"input {self.name}"


class Value:
    """One recorded result: ``op(*args, **kwargs)`` with values, ``Expr`` sizes and constants as arguments.

    ``op`` is an ``OpOverload``, ``operator.getitem`` (an item of an operator with several results) or an ``Input``.
    ``number`` is the position in the recording; ``backward`` tells which half of the joint trace made it;
    ``recomputed`` marks what a checkpoint forbids to keep for the backward. The arguments never change.
    """

    __slots__ = ("_operands", "args", "backward", "kwargs", "number", "op", "recomputed", "spec", "where")

    def __init__(
        self,
        op: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        spec: ValueSpec,
        number: int,
        backward: bool,
        where: UserLocation | None,
        recomputed: bool = False,
    ) -> None:
        self.recomputed = recomputed
        self.op = op
        self.args = args
        self.kwargs = kwargs
        self.spec: Any = spec
        self.number = number
        self.backward = backward
        self.where = where
        self._operands: tuple[Value, ...] | None = None

    @property
    def is_input(self) -> bool:
        """Whether this is an input rather than a computed value."""
        return type(self.op) is Input

    def __repr__(self) -> str:
        return f"%{self.number}"

    @property
    def operands(self) -> tuple[Value, ...]:
        """The values among a call's arguments. Half a dozen passes ask, so they are looked for once."""
        found = self._operands
        if found is None:
            found = self._operands = tuple(_values_in([self.args, *self.kwargs.values()]))
        return found


def _values_in(pending: list[Any]) -> Iterator[Value]:
    """The values in nested lists and tuples, the last one first."""
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is Value:
            yield item
        elif kind is list or kind is tuple:
            pending.extend(item)
