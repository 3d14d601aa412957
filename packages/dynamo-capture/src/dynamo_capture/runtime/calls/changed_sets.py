"""Changes of sets, which ask no member for its hash that the program does not ask."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any

import fx_guards


def replace_set(target: set[Any], items: Iterable[Any]) -> None:
    """The target holds exactly these items. Those that have code of the program for their hash are told apart by which
    objects they are."""
    fresh = list(items)
    asked = {id(item): item for item in fresh if _asks(item)}
    plain = dict.fromkeys(item for item in fresh if not _asks(item))
    present = {id(member) for member in target}
    for member in [one for one in target if (id(one) not in asked if _asks(one) else one not in plain)]:
        set.discard(target, member)
    for item in fresh:
        if not _asks(item) or id(item) not in present:
            set.add(target, item)


def _asks(item: Any) -> bool:
    return isinstance(fx_guards.class_lookup(type(item), "__hash__"), FunctionType)


def with_member(made: set[Any], member: Any) -> set[Any]:
    """The set with one more."""
    made.add(member)
    return made


def without_member(made: set[Any], member: Any) -> set[Any]:
    """The set with one less."""
    made.discard(member)
    return made
