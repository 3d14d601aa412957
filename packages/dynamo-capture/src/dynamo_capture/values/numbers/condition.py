"""Comparisons that only data can answer: ``n < 5`` where a mask selects ``n`` elements."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import DATA_NUMBER
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from fx_interface.symbols import Relation


class DataCondition(Value):
    """A bool known when the graph has run. It may be stated (``torch._check``) and returned, not branched on."""

    __slots__ = ("relation",)
    python_class = bool

    def __init__(self, relation: Relation) -> None:
        self.relation = relation

    def __repr__(self) -> str:
        return f"DataCondition({self.relation})"

    def identity(self) -> object:
        raise self._unknown()

    def as_constant(self) -> Any:
        raise self._unknown()

    def truth(self, tx: Context) -> bool:
        return tx.decide(self.relation)

    def describe(self) -> str:
        return f"whether {self.relation}"

    def _unknown(self) -> GraphBreak:
        return GraphBreak(DATA_NUMBER, f"whether {self.relation} is known only when the graph has run")
