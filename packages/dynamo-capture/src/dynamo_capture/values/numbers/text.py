"""Strings that the content of tensors is part of: put together when the code runs."""

from __future__ import annotations

from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value


class TextValue(Value):
    """``f"{tensor} tokens"``. ``pieces`` are known strings, with None, and tensors, with the conversion of their text
    (0: as ``format`` does, 1: ``str``, 2: ``repr``, 3: ``ascii``). Such a string may be passed on, nothing else."""

    __slots__ = ("pieces",)

    def __init__(self, pieces: list[tuple[Value, int | None]]) -> None:
        self.pieces = pieces

    def python_type(self) -> type:
        return str

    def children(self, tx: Context) -> list[Value]:
        return [piece for piece, _ in self.pieces]

    def identity(self) -> object:
        raise self.unsupported("comparing")

    def unsupported(self, what: str) -> GraphBreak:
        return GraphBreak("CAP211", f"{what}: the text of a tensor")
