"""What every guard record shares, and the table of guard kinds.

A kind is declared once, by ``@guard_kind`` on a frozen record; ``KINDS`` is then the whole list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from fx_interface.errors import UserLocation
from fx_interface.source import Source


@dataclass(frozen=True, slots=True)
class GuardRecord:
    """One fact about the value of ``source``, or about the values of several ``sources``.

    ``holds`` and ``explain`` take the value of ``source``; a record of several sources (or whose ``takes_tuple`` is
    true) takes the tuple of their values.
    ``where`` is the user's line that relied on the fact; it is no part of the record's identity.
    """

    kind: ClassVar[str]
    takes_tuple: ClassVar[bool] = False
    source: Source
    where: UserLocation | None = field(default=None, compare=False, kw_only=True, repr=False)

    @property
    def sources(self) -> tuple[Source, ...]:
        """Every source that the fact is about."""
        return (self.source,)

    def holds(self, value: Any) -> bool:
        """Whether the fact is true of ``value``. Never raises."""
        raise NotImplementedError

    def explain(self, value: Any) -> str:
        """One line: what was expected and what ``value`` is instead."""
        raise NotImplementedError


KINDS: dict[str, type[GuardRecord]] = {}
"""Every registered guard kind by its stable name."""

_Record = TypeVar("_Record", bound=GuardRecord)


def guard_kind(cls: type[_Record]) -> type[_Record]:
    """Register a record class under its ``kind``; a second class of that kind is an error that names both."""
    earlier = KINDS.get(cls.kind)
    if earlier is not None:
        places = " and ".join(f"{c.__module__}.{c.__qualname__}" for c in (earlier, cls))
        raise ValueError(f"guard kind {cls.kind!r} is declared twice: {places}")
    KINDS[cls.kind] = cls
    return cls


def short(value: object, limit: int = 80) -> str:
    """``repr(value)`` cut to ``limit`` characters, surviving a ``__repr__`` that raises."""
    try:
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 3] + "..."


def type_name(cls: type) -> str:
    """The qualified name of a type as a user writes it."""
    module = getattr(cls, "__module__", "builtins")
    return cls.__qualname__ if module == "builtins" else f"{module}.{cls.__qualname__}"
