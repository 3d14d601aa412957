"""Guards on the members of a set and on the order in which it is iterated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from typing import Any, ClassVar

from fx_guards import GuardRecord, constant_key, guard_kind
from fx_interface.python_runtime.quick_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class _SetGuard(GuardRecord):
    """A set or frozenset that has the same key as the members seen."""

    expected: tuple[Any, ...] = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self._key(self.expected))

    def _key(self, members: Iterable[Any]) -> Any:
        raise NotImplementedError

    def holds(self, value: Any) -> bool:
        try:
            return bool(self._key(value) == self.key)
        except Exception:
            return False

    def explain(self, value: Any) -> str:
        return f"expected a set of {list(self.expected)!r}, got {value!r}"


@guard_kind
@dataclass(frozen=True, slots=True)
class SetMembers(_SetGuard):
    """A set or frozenset of exactly these members (1, 1.0 and True are three members), in any order."""

    kind: ClassVar[str] = "set_members"

    def _key(self, members: Iterable[Any]) -> Any:
        return frozenset(map(constant_key, members))


@guard_kind
@dataclass(frozen=True, slots=True)
class SetOrder(_SetGuard):
    """A set or frozenset that gives its members in this order."""

    kind: ClassVar[str] = "set_order"

    def _key(self, members: Iterable[Any]) -> Any:
        return constant_key(tuple(members))

    def explain(self, value: Any) -> str:
        return f"expected a set iterated as {list(self.expected)!r}, got {list(value)!r}"


@guard_kind
@dataclass(frozen=True, slots=True)
class SetObjects(_SetGuard):
    """A set or frozenset of exactly these objects."""

    kind: ClassVar[str] = "set_objects"

    def _key(self, members: Iterable[Any]) -> Any:
        return frozenset(map(id, members))

    def explain(self, value: Any) -> str:
        return f"expected a set of the same {len(self.expected)} objects, got others"
