"""What classes have under a name, without asking their metaclasses: those may have members, and a ``__getattr__``, of
their own, which Python does not look at when it looks for a special method of an instance.
"""

from __future__ import annotations

import types
from typing import Any

_ABSENT: Any = object()
_bases: Any = type.__dict__["__mro__"].__get__
_names: Any = type.__dict__["__dict__"].__get__
_weak_offset: Any = type.__dict__["__weakrefoffset__"].__get__


def has_member(cls: type, name: str) -> bool:
    """Whether a class of the method resolution order has this name."""
    return any(name in _names(base) for base in _bases(cls))


def member(cls: type, name: str, default: Any = None) -> Any:
    """What the first class of the method resolution order has under this name, as it lies there."""
    for base in _bases(cls):
        found = _names(base).get(name, _ABSENT)
        if found is not _ABSENT:
            return found
    return default


def has_weak_references(cls: type) -> bool:
    """Whether instances may be referred to weakly."""
    return bool(_weak_offset(cls))


def runs_program(cls: type) -> bool:
    """Whether any read of an instance's attribute, even of ``__class__``, runs a ``__getattribute__`` in Python."""
    return isinstance(member(cls, "__getattribute__"), types.FunctionType)
