"""Guards on the members of a set and on the order in which it is iterated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from fx_guards import GuardRecord, constant_key, constants_equal, guard_kind


@guard_kind
@dataclass(frozen=True, slots=True)
class SetMembers(GuardRecord):
    """A set or frozenset of exactly these members (1, 1.0 and True are three members), in any order."""

    kind: ClassVar[str] = "set_members"
    expected: tuple[Any, ...] = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", frozenset(map(constant_key, self.expected)))

    def holds(self, value: Any) -> bool:
        try:
            return bool(frozenset(map(constant_key, value)) == self.key)
        except Exception:
            return False

    def explain(self, value: Any) -> str:
        return f"expected a set of {list(self.expected)!r}, got {value!r}"


@guard_kind
@dataclass(frozen=True, slots=True)
class SetOrder(GuardRecord):
    """A set or frozenset that gives its members in this order."""

    kind: ClassVar[str] = "set_order"
    expected: tuple[Any, ...] = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", constant_key(self.expected))

    def holds(self, value: Any) -> bool:
        try:
            return constants_equal(self.expected, tuple(value))
        except Exception:
            return False

    def explain(self, value: Any) -> str:
        return f"expected a set iterated as {list(self.expected)!r}, got {list(value)!r}"


@guard_kind
@dataclass(frozen=True, slots=True)
class SetObjects(GuardRecord):
    """A set or frozenset of exactly these objects."""

    kind: ClassVar[str] = "set_objects"
    expected: tuple[Any, ...] = field(compare=False)
    ids: frozenset[int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "ids", frozenset(map(id, self.expected)))

    def holds(self, value: Any) -> bool:
        return frozenset(map(id, value)) == self.ids

    def explain(self, value: Any) -> str:
        return f"expected a set of the same {len(self.expected)} objects, got {value!r}"
