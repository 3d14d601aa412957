"""Guards on what classes and functions are made of: what a class's lookup finds, a function's code and defaults."""

from __future__ import annotations

import operator
from dataclasses import field
from types import CodeType, FunctionType
from typing import Any, ClassVar

from fx_guards.kinds.base import GuardRecord, guard_kind, short, type_name
from fx_guards.kinds.constants import constant_key, constants_equal
from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass
from fx_interface.source import Source


class _Marker:
    """A named object that stands for no other."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __repr__(self) -> str:
        return self._name


ABSENT = _Marker("ABSENT")
"""What a lookup finds in a class that has no such attribute."""
OPEN = _Marker("OPEN")
"""A default value that may be anything: it is guarded where it is read, if at all."""

_MRO = type.__dict__["__mro__"]
_CLASS_DICT = type.__dict__["__dict__"]


def class_lookup(cls: type, name: str) -> Any:
    """What the classes of the method resolution order hold under ``name``, undescribed; ``ABSENT`` if nothing."""
    for base in _MRO.__get__(cls):
        space = _CLASS_DICT.__get__(base)
        if name in space:
            return space[name]
    return ABSENT


@guard_kind
@dataclass(frozen=True, slots=True)
class ClassLookup(GuardRecord):
    """The class that ``source`` leads to has this very object (or ``ABSENT``) under ``name``, in itself or inherited.

    ``only_type``: any object of exactly that one's type will do.
    """

    kind: ClassVar[str] = "class_lookup"
    name: str
    expected: Any = field(compare=False, repr=False)
    only_type: bool = False
    identity: int = field(init=False)

    def __post_init__(self) -> None:
        if self.expected is ABSENT:
            object.__setattr__(self, "only_type", False)
        kept = type(self.expected) if self.only_type else self.expected
        object.__setattr__(self, "expected", kept)
        object.__setattr__(self, "identity", id(kept))

    def holds(self, value: Any) -> bool:
        if not isinstance(value, type):
            return False
        found = class_lookup(value, self.name)
        return (type(found) if self.only_type else found) is self.expected

    def explain(self, value: Any) -> str:
        if not isinstance(value, type):
            return f"expected a class, got {short(value)}"
        found, owner = class_lookup(value, self.name), type_name(value)
        if found is ABSENT:
            return f"expected {owner} to have an attribute {self.name!r}; it has none"
        if self.expected is ABSENT:
            return f"expected {owner} to have no attribute {self.name!r}, got {short(found)}"
        what = f"a {type_name(self.expected)}" if self.only_type else short(self.expected)
        return f"expected {owner}.{self.name} to be {what}, got {short(found)}"


@guard_kind
@dataclass(frozen=True, slots=True)
class ClassBases(GuardRecord):
    """The class that ``source`` leads to has exactly this method resolution order."""

    kind: ClassVar[str] = "class_bases"
    expected: tuple[type, ...]

    def holds(self, value: Any) -> bool:
        if not isinstance(value, type):
            return False
        actual = _MRO.__get__(value)
        return len(actual) == len(self.expected) and all(map(operator.is_, actual, self.expected))

    def explain(self, value: Any) -> str:
        actual = _names(_MRO.__get__(value)) if isinstance(value, type) else short(value)
        return f"expected the classes {_names(self.expected)}, got {actual}"


def _names(classes: tuple[type, ...]) -> str:
    return " > ".join(map(type_name, classes))


@guard_kind
@dataclass(frozen=True, slots=True)
class FunctionState(GuardRecord):
    """A Python function with this very code object and these constants as defaults (``OPEN``: any value).

    ``defaults`` None and an empty ``keywords``: it has none.
    """

    kind: ClassVar[str] = "function_state"
    code: CodeType = field(compare=False)
    defaults: tuple[Any, ...] | None = field(compare=False)
    keywords: tuple[tuple[str, Any], ...] = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = (id(self.code), constant_key(self.defaults), constant_key(self.keywords))
        object.__setattr__(self, "key", key)

    def holds(self, value: Any) -> bool:
        return self._difference(value) is None

    def explain(self, value: Any) -> str:
        return self._difference(value) or "holds"

    def _difference(self, value: Any) -> str | None:
        if type(value) is not FunctionType:
            return f"expected a function, got {short(value)}"
        if value.__code__ is not self.code:
            return f"the code of {value.__qualname__} was replaced"
        if not _defaults_equal(self.defaults, value.__defaults__):
            return f"expected the defaults {short(self.defaults)}, got {short(value.__defaults__)}"
        actual = value.__kwdefaults__ or {}
        if len(actual) != len(self.keywords) or not all(
            name in actual and (expected is OPEN or constants_equal(expected, actual[name]))
            for name, expected in self.keywords
        ):
            return f"expected the keyword defaults {short(dict(self.keywords))}, got {short(actual)}"
        return None


def _defaults_equal(expected: tuple[Any, ...] | None, actual: tuple[Any, ...] | None) -> bool:
    if expected is None or actual is None:
        return expected is actual
    return len(expected) == len(actual) and all(
        e is OPEN or constants_equal(e, a) for e, a in zip(expected, actual, strict=True)
    )


def function_state(
    source: Source, function: FunctionType, *, where: UserLocation | None = None
) -> FunctionState:
    """The guard that ``function`` satisfies; defaults that are no plain constants are left open."""
    defaults = None if function.__defaults__ is None else tuple(map(_closed, function.__defaults__))
    keywords = tuple((name, _closed(value)) for name, value in (function.__kwdefaults__ or {}).items())
    return FunctionState(source, function.__code__, defaults, keywords, where=where)


def is_closed_default(value: Any) -> bool:
    """Whether ``function_state`` guards a default of this value by itself."""
    kind = type(value)
    return value is None or any(kind is one for one in _CLOSED) or issubclass(kind, type)


_CLOSED = (bool, int, float, complex, str, bytes)


def _closed(value: Any) -> Any:
    return value if is_closed_default(value) else OPEN
