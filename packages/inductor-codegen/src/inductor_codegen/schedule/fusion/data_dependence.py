"""Who waits for numbers that come from data: what computes with a symbol runs after the call that gives it.

A check counts too: what was computed with a number after the program had stated a fact about it relies on that fact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from fx_interface.symbols import Expr, Symbol
from inductor_codegen.lower.values import Lowered, Value


class Tokens:
    """The tokens of a graph's calls, by symbol, in order."""

    def __init__(self, lowered: Lowered) -> None:
        self._by_symbol: dict[Symbol, list[int]] = {}
        for call in lowered.calls:
            if call.token is not None:
                named = {born.symbol for born in call.born} or set(_symbols((call.args,)))
                for symbol in named:
                    self._by_symbol.setdefault(symbol, []).append(call.token)

    def __bool__(self) -> bool:
        return bool(self._by_symbol)

    def awaited_by(self, value: Value) -> set[int]:
        """The tokens before ``value`` that its computation waits for."""
        return self.before(value.number, (value.sizes, value.strides, value.formula))

    def before(self, number: int, parts: tuple[Any, ...]) -> set[int]:
        """The tokens numbered below ``number`` of the symbols in ``parts``."""
        found = {token for symbol in set(_symbols(parts)) for token in self._by_symbol.get(symbol, ())}
        return {token for token in found if token < number}


def _symbols(parts: Any) -> Iterator[Symbol]:
    pending = [parts]
    while pending:
        item = pending.pop()
        if isinstance(item, Expr):
            yield from item.symbols
        elif isinstance(item, (tuple, list)):
            pending.extend(item)
        elif is_dataclass(item) and not isinstance(item, type):
            pending.extend(getattr(item, field.name) for field in fields(item))
