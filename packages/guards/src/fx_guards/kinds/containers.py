"""Guards on containers and attributes: length, keys, presence."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import field
from typing import Any, ClassVar

from fx_guards.kinds.base import GuardRecord, guard_kind, short
from fx_guards.kinds.constants import constant_key, constants_equal
from fx_interface.python_runtime.quick_dataclasses import dataclass


@guard_kind
@dataclass(frozen=True, slots=True)
class Length(GuardRecord):
    """``len(value) == expected``."""

    kind: ClassVar[str] = "length"
    expected: int

    def holds(self, value: Any) -> bool:
        try:
            return len(value) == self.expected
        except Exception:
            return False

    def explain(self, value: Any) -> str:
        try:
            return f"expected length {self.expected}, got {len(value)}"
        except Exception:
            return f"expected length {self.expected}, got {short(value)}, which has none"


@guard_kind
@dataclass(frozen=True, slots=True)
class DictKeys(GuardRecord):
    """A dict whose keys are exactly these constants, in this insertion order.

    Reads the builtin's own order (an OrderedDict has one of its own): a subclass's ``__iter__`` is not consulted.
    """

    kind: ClassVar[str] = "dict_keys"
    expected: tuple[Any, ...] = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", constant_key(tuple(self.expected)))

    def holds(self, value: Any) -> bool:
        if not isinstance(value, dict) or dict.__len__(value) != len(self.expected):
            return False
        return all(map(constants_equal, self.expected, _keys(value)))

    def explain(self, value: Any) -> str:
        if not isinstance(value, dict):
            return f"expected a dict, got {short(value)}"
        keys = _keys(value)
        missing = [k for k in self.expected if not any(constants_equal(k, other) for other in keys)]
        extra = [k for k in keys if not any(constants_equal(other, k) for other in self.expected)]
        parts = [f"{text} {short(found)}" for text, found in (("missing", missing), ("new", extra)) if found]
        return "dict keys changed: " + ("; ".join(parts) if parts else "their order")


@dataclass(frozen=True, slots=True)
class _OneKey(GuardRecord):
    name: Any = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", constant_key(self.name))


@guard_kind
@dataclass(frozen=True, slots=True)
class KeyPresent(_OneKey):
    """``name in value`` for a dict (the builtin lookup)."""

    kind: ClassVar[str] = "key_present"

    def holds(self, value: Any) -> bool:
        return isinstance(value, dict) and _contains(value, self.name)

    def explain(self, value: Any) -> str:
        return f"expected a dict with the key {short(self.name)}; it has none" + _not_a_dict(value)


@guard_kind
@dataclass(frozen=True, slots=True)
class KeyAbsent(_OneKey):
    """``name not in value`` for a dict (the builtin lookup)."""

    kind: ClassVar[str] = "key_absent"

    def holds(self, value: Any) -> bool:
        return isinstance(value, dict) and not _contains(value, self.name, otherwise=True)

    def explain(self, value: Any) -> str:
        return f"expected a dict without the key {short(self.name)}; it has one" + _not_a_dict(value)


@guard_kind
@dataclass(frozen=True, slots=True)
class DictEntries(GuardRecord):
    """A dict that holds these very objects under these names, whatever else it holds (the builtin lookup)."""

    kind: ClassVar[str] = "dict_entries"
    expected: tuple[tuple[str, Any], ...] = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", tuple((name, id(held)) for name, held in self.expected))

    def holds(self, value: Any) -> bool:
        return isinstance(value, dict) and not self._changed(value)

    def explain(self, value: Any) -> str:
        if not isinstance(value, dict):
            return f"expected a dict, got {short(value)}"
        return f"other objects under the names {', '.join(self._changed(value))}"

    def _changed(self, value: dict[Any, Any]) -> list[str]:
        missing = object()
        return [name for name, held in self.expected if dict.get(value, name, missing) is not held]


@guard_kind
@dataclass(frozen=True, slots=True)
class AttributePresent(GuardRecord):
    """``getattr(value, name)`` succeeds."""

    kind: ClassVar[str] = "attribute_present"
    name: str

    def holds(self, value: Any) -> bool:
        return _has_attribute(value, self.name) is True

    def explain(self, value: Any) -> str:
        return f"expected an attribute {self.name!r} on {short(value)}; it has none"


@guard_kind
@dataclass(frozen=True, slots=True)
class AttributeAbsent(GuardRecord):
    """``getattr(value, name)`` raises AttributeError; another exception does not hold."""

    kind: ClassVar[str] = "attribute_absent"
    name: str

    def holds(self, value: Any) -> bool:
        return _has_attribute(value, self.name) is False

    def explain(self, value: Any) -> str:
        return f"expected no attribute {self.name!r} on {short(value)}; it has one"


def _keys(value: dict[Any, Any]) -> list[Any]:
    return list(OrderedDict.__iter__(value) if isinstance(value, OrderedDict) else dict.__iter__(value))


def _contains(value: dict[Any, Any], name: Any, otherwise: bool = False) -> bool:
    try:
        return dict.__contains__(value, name)
    except Exception:
        return otherwise


def _not_a_dict(value: Any) -> str:
    return "" if isinstance(value, dict) else f" (got {short(value)})"


def _has_attribute(value: Any, name: str) -> bool | None:
    try:
        getattr(value, name)
    except AttributeError:
        return False
    except Exception:
        return None
    return True
