"""The guard protocol: one fact about one value, as data."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol, runtime_checkable

from fx_interface.source import Source


@runtime_checkable
class Guard(Protocol):
    """A frozen record. Equal records are one guard.

    ``kind`` is a stable name; ``source`` says which value is meant; ``holds`` is the meaning, which a native evaluator
    must reproduce exactly; ``explain`` says in one line why a value does not hold.
    """

    kind: ClassVar[str]

    @property
    def source(self) -> Source:
        """Where the guarded value is read."""
        ...

    def holds(self, value: Any) -> bool:
        """Whether the fact is true of ``value``. Never raises."""
        ...

    def explain(self, value: Any) -> str:
        """One line: what was expected and what ``value`` is instead."""
        ...
