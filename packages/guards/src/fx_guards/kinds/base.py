"""What every guard record shares, and the table of guard kinds.

A kind is declared once, by ``@guard_kind`` on a frozen record; ``KINDS`` is then the whole list.
"""

from __future__ import annotations

import enum
import itertools
import types
from dataclasses import field
from typing import Any, ClassVar, TypeVar

import torch

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
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


_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"), tuple: ("(", ")"), set: ("{", "}"), frozenset: ("frozenset({", "})"),
}  # fmt: skip
_SELF_CONTAINED = frozenset(
    (
        *(
            bool,
            int,
            float,
            complex,
            str,
            bytes,
            bytearray,
            range,
            type(None),
            type(Ellipsis),
            type(NotImplemented),
        ),
        *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.CodeType),
        *(torch.dtype, torch.device, torch.layout, torch.memory_format, torch.Size),
    )
)
"""Classes whose ``repr`` asks no other object."""


def short(value: object, limit: int = 80) -> str:
    """``repr(value)`` cut to ``limit`` characters where it runs no code of the program; else the object's class."""
    text = _text(value, limit, 3)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def _text(value: Any, limit: int, depth: int) -> str:
    kind = type(value)
    is_plain = type(kind) is type  # a metaclass of the program is not asked to compare it
    if is_plain and kind in _SELF_CONTAINED:
        return repr(value)
    if issubclass(kind, type):
        return f"<class {type_name(value)!r}>"
    if issubclass(kind, enum.Enum):
        return f"{type_name(kind)}.{object.__getattribute__(value, '_name_')}"
    if kind is dict and depth:
        entries = itertools.islice(value.items(), limit)
        return f"{{{', '.join(': '.join(_text(part, limit, depth - 1) for part in entry) for entry in entries)}}}"
    if is_plain and kind in _BRACKETS and depth:
        opening, closing = _BRACKETS[kind]
        parts = ", ".join(_text(part, limit, depth - 1) for part in itertools.islice(value, limit))
        return f"{opening}{parts}{',' if kind is tuple and len(value) == 1 else ''}{closing}"
    return f"<{type_name(kind)} object>"


_module_of: Any = type.__dict__["__module__"].__get__
_name_of: Any = type.__dict__["__qualname__"].__get__


def type_name(cls: type) -> str:
    """The qualified name of a type as a user writes it; no metaclass is asked."""
    module, name = _module_of(cls), _name_of(cls)
    return name if module == "builtins" or type(module) is not str else f"{module}.{name}"
