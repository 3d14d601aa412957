"""Strings that sizes, or the content of tensors, are part of: put together when the code runs."""

from __future__ import annotations

from typing import Any

from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const


class TextValue(Value):
    """``f"{tensor} tokens"``. ``pieces`` are known strings, with None, and tensors, with the conversion of their text
    (0: as ``format`` does, 1: ``str``, 2: ``repr``, 3: ``ascii``). Such a string may be passed on, nothing else."""

    __slots__ = ("pieces",)
    python_class = str

    def __init__(self, pieces: list[tuple[Value, int | None]]) -> None:
        self.pieces = pieces

    def own_key(self, tx: Context) -> Any:
        raise self.unsupported("using as a key")

    def children(self, tx: Context) -> list[Value]:
        return [piece for piece, _ in self.pieces]

    def identity(self) -> object:
        raise self.unsupported("comparing")

    def unsupported(self, what: str) -> GraphBreak:
        return GraphBreak(UNKNOWN_VALUE, f"{what}: the text of a tensor")


class OpenText(Const):
    """``f"{x.shape[0]} rows"``. ``pieces`` are strings and integers left open, as those of ``TextValue``, which
    it is like until somebody asks for its ``value``: that fixes the integers. Messages are mostly passed on only.
    """

    __slots__ = ("_text", "_tx", "pieces")

    def __init__(self, tx: Context, pieces: list[tuple[Value, int | None]]) -> None:
        self.source = None
        self.pieces = pieces
        self._tx = tx
        self._text: str | None = None

    def python_type(self) -> type:
        return str

    def __repr__(self) -> str:
        return f"OpenText({self.pieces})"

    @property
    def value(self) -> Any:
        """The string of this call; from now on the trace depends on it."""
        if self._text is None:
            self._text = "".join([self._piece(*piece) for piece in self.pieces])
        return self._text

    @property
    def is_unread(self) -> bool:
        """Whether nothing depends on the string so far."""
        return self._text is None

    def _piece(self, value: Value, conversion: int | None) -> str:
        known = self._tx.constant(value) if isinstance(value, Const) else self._tx.index(value)
        return known if conversion is None else str(known)  # all conversions of an integer are one text

    def children(self, tx: Context) -> list[Value]:
        return [piece for piece, _ in self.pieces]

    def describe(self) -> str:
        return "a text with sizes"
