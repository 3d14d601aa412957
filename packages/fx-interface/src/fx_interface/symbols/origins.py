"""Where symbols come from: a size of an input, or a tensor's content, which is known only when the program runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from fx_interface.errors import UnbackedSymbolError, UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source
from fx_interface.symbols.expr import Expr, Symbol
from fx_interface.symbols.ranges import Range


@dataclass(frozen=True, slots=True)
class SymbolInfo:
    """A symbol's origin. ``hint`` is the value seen while compiling, or None when it comes from data (unbacked);
    ``where`` is the user's line that it was made at, if known."""

    hint: int | None
    range: Range
    source: Source | None
    where: UserLocation | None = field(default=None, compare=False)


def from_data(
    value: Expr, infos: Mapping[Symbol, SymbolInfo], where: UserLocation | None
) -> UnbackedSymbolError:
    """FXI401: a decision at ``where`` needs ``value``, which has symbols that come from data."""
    made = (infos[atom].where for atom in value.symbols if infos[atom].hint is None)
    lines = ", ".join(dict.fromkeys(f"{at.filename}:{at.line}" for at in made if at is not None))
    origin = f": it depends on the content of a tensor at {lines}" if lines else ""
    return UnbackedSymbolError(
        "FXI401",
        f"the value of {value} is known only when the program runs{origin}",
        where=where,
        action="avoid branching on sizes that come from data, or state what holds with torch._check",
    )
