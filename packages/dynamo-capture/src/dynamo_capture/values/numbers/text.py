"""Strings that numbers which vary, or the content of tensors, are part of: put together when the code runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.runtime.replacement_calls import formatted
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import Const


class Piece(NamedTuple):
    """A part of a text: a string as it is (no ``conversion``), or what ``formatted`` makes of a value."""

    value: Value
    conversion: int | None = None
    spec: str = ""


class TextValue(Value):
    """``f"{tensor} tokens"``: strings, tensors and numbers. Such a string may be passed on, or made part of another,
    nothing else."""

    __slots__ = ("pieces",)
    python_class = str

    def __init__(self, pieces: list[Piece]) -> None:
        self.pieces = pieces

    def own_key(self, tx: Context) -> Any:
        raise self.unsupported("using as a key")

    def children(self, tx: Context) -> list[Value]:
        return [piece.value for piece in self.pieces]

    def identity(self) -> object:
        raise self.unsupported("comparing")

    def unsupported(self, what: str) -> GraphBreak:
        return GraphBreak(UNKNOWN_VALUE, f"{what}: the text of a tensor")


class OpenText(Const):
    """``f"{x.shape[0]} rows"``: strings and numbers left open. It is like a ``TextValue`` until somebody asks for its
    ``value``: that fixes the numbers. Messages are mostly passed on only.
    """

    __slots__ = ("_text", "_tx", "pieces")

    def __init__(self, tx: Context, pieces: list[Piece]) -> None:
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
            self._text = "".join(map(self._piece, self.pieces))
        return self._text

    def in_this_call(self) -> str:
        """The string of this call, for whoever does not depend on it."""
        return "".join(map(self._shown, self.pieces))

    def _shown(self, piece: Piece) -> str:
        value, conversion, spec = piece
        if value.expr is not None:
            number: Any = self._tx.env.hint(value.expr)
        else:
            assert isinstance(value, Const)
            number = value.in_this_call()
        return str(number) if conversion is None else formatted(number, conversion, spec)

    @property
    def is_unread(self) -> bool:
        """Whether nothing depends on the string so far."""
        return self._text is None

    def _piece(self, piece: Piece) -> str:
        value, conversion, spec = piece
        known = self._tx.constant(value) if isinstance(value, Const) else self._tx.index(value)
        return known if conversion is None else formatted(known, conversion, spec)

    def children(self, tx: Context) -> list[Value]:
        return [piece.value for piece in self.pieces]

    def describe(self) -> str:
        return "a text with sizes"
