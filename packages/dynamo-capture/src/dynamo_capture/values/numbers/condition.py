"""Bools that only data can answer: ``n < 5`` where a mask selects ``n`` elements, ``bool(mask.any())``, ``a | b`` of
such.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from fx_interface.symbols import Relation


class DataCondition(Value):
    """A bool known when the graph has run: whether all ``relations`` between numbers hold, or what ``tensor`` holds. It
    may be stated (``torch._check``), combined with others and returned, not branched on.

    Of one that a tensor holds the relation is ``take``, called where somebody asks for the number.
    """

    __slots__ = ("_relations", "_take", "tensor")
    python_class = bool

    def __init__(
        self,
        *relations: Relation,
        tensor: Any = None,
        take: Callable[[], Relation] | None = None,
    ) -> None:
        self._relations = relations
        self._take = take
        self.tensor = tensor

    def __repr__(self) -> str:
        return f"DataCondition({self._text})"

    @property
    def relations(self) -> tuple[Relation, ...]:
        """What holds where it is true."""
        if not self._relations and self._take is not None:
            self._relations = (self._take(),)
        return self._relations

    @property
    def is_number(self) -> bool:
        """Whether it follows from numbers that were taken out of tensors."""
        return bool(self._relations)

    @property
    def _text(self) -> str:
        return " and ".join(map(str, self._relations)) or "what a tensor holds is true"

    def children(self, tx: Context) -> list[Value]:
        return [] if self.is_number else [self.tensor]

    def identity(self) -> object:
        raise self._unknown()

    def as_constant(self) -> Any:
        raise self._unknown()

    def truth(self, tx: Context) -> bool:
        return all(tx.decide(relation) for relation in self.relations)

    def describe(self) -> str:
        return f"whether {self._text}"

    def _unknown(self) -> GraphBreak:
        return GraphBreak(DATA_NUMBER, f"whether {self._text} is known only when the graph has run")
