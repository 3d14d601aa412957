"""Comparisons that only data can answer: ``n < 5`` where a mask selects ``n`` elements, ``(n < 5) & (m > 2)``."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from fx_interface.symbols import Relation


class DataCondition(Value):
    """A bool known when the graph has run: whether all ``relations`` hold. It may be stated (``torch._check``) and
    returned, not branched on."""

    __slots__ = ("relations",)
    python_class = bool

    def __init__(self, *relations: Relation) -> None:
        self.relations = relations

    def __repr__(self) -> str:
        return f"DataCondition({self._text})"

    @property
    def _text(self) -> str:
        return " and ".join(map(str, self.relations))

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
