"""Sources that only capture needs: an object known by reference, and a closure cell's content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fx_interface.source import ImportedModuleSource, Source

_ROOT = ImportedModuleSource("builtins")


class _Held:
    """A reference that is compared by the identity of what it holds."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


@dataclass(frozen=True, slots=True)
class KnownObjectSource(Source):
    """An object that no path from the frame's roots reaches: the trace holds it itself."""

    held: _Held = field(repr=False)
    label: str = field(compare=False)

    @property
    def base(self) -> Source | None:
        return _ROOT

    def step(self, value: Any) -> Any:
        return self.held.value

    @property
    def expression(self) -> str:
        return self.label


def known_object(value: Any) -> KnownObjectSource:
    """The source of an object that the trace holds by reference."""
    name = getattr(value, "__qualname__", None) or type(value).__qualname__
    return KnownObjectSource(_Held(value), f"<{name}>")
