"""Guards on what a plain value is: its type, its identity, its equality with a constant."""

from __future__ import annotations

import weakref
from dataclasses import field
from types import FunctionType
from typing import Any, ClassVar

from fx_guards.kinds.base import GuardRecord, guard_kind, short, type_name
from fx_guards.kinds.constants import constant_key, constants_equal
from fx_interface.python_runtime.quick_dataclasses import dataclass


@guard_kind
@dataclass(frozen=True, slots=True)
class TypeIs(GuardRecord):
    """``type(value) is expected``; subclasses do not hold."""

    kind: ClassVar[str] = "type_is"
    expected: type

    def holds(self, value: Any) -> bool:
        return type(value) is self.expected

    def explain(self, value: Any) -> str:
        return f"expected type {type_name(self.expected)}, got {type_name(type(value))}"


class GuardReference(weakref.ref[Any]):
    """A guard's weak reference: of a class of its own, so that it can be told from those that a program has."""

    __slots__ = ()


_STOCK = "torch._dynamo."


def is_of_program(reference: Any) -> bool:
    """Whether a program can tell by a weak reference that an object has died: not by a guard's, nor by those that
    stock's compiler has to every module that is made once it has compiled anything. A proxy is a program's, and hands
    on each attribute that it is asked for."""
    if type(reference) in weakref.ProxyTypes:
        return True
    callback = reference.__callback__
    module = callback.__module__ if type(callback) is FunctionType else None
    return type(reference) is not GuardReference and not (
        isinstance(module, str) and module.startswith(_STOCK)
    )


@guard_kind
@dataclass(frozen=True, slots=True)
class IsObject(GuardRecord):
    """``value is expected``. The object is held weakly where its type allows; a dead one never holds."""

    kind: ClassVar[str] = "is_object"
    expected: Any = field(compare=False, repr=False)
    identity: int = field(init=False)
    reference: Any = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        expected = self.expected
        object.__setattr__(self, "identity", id(expected))
        try:
            reference = GuardReference(expected)
        except TypeError:
            reference = None
        object.__setattr__(self, "reference", reference)
        if reference is not None:
            object.__setattr__(self, "expected", None)

    @property
    def target(self) -> Any:
        """The expected object, or None once it is gone."""
        return self.expected if self.reference is None else self.reference()

    @property
    def alive(self) -> bool:
        """Whether the expected object still exists; once False, the guard can never hold again."""
        return self.reference is None or self.reference() is not None

    def holds(self, value: Any) -> bool:
        return self.alive and value is self.target

    def explain(self, value: Any) -> str:
        if not self.alive:
            return f"expected an object that no longer exists, got {short(value)}"
        target = self.target
        which = "" if target is None or isinstance(target, bool) else "the very object "
        return f"expected {which}{short(target)}, got {short(value)}"


@guard_kind
@dataclass(frozen=True, slots=True)
class Unreferenced(GuardRecord):
    """No weak reference of the program to the value; of those that are, only plain ones count if ``plain_only``."""

    kind: ClassVar[str] = "unreferenced"
    plain_only: bool

    def holds(self, value: Any) -> bool:
        return not any(self.counts(one) for one in weakref.getweakrefs(value))

    def counts(self, reference: Any) -> bool:
        """Whether a weak reference is one of those that there must not be."""
        return is_of_program(reference) and (type(reference) is weakref.ref or not self.plain_only)

    def explain(self, value: Any) -> str:
        return f"expected no weak reference to {short(value)}"


@guard_kind
@dataclass(frozen=True, slots=True)
class EqualsConstant(GuardRecord):
    """Same type and equal value; nan equals nan, -0.0 differs from 0.0, and so on inside tuples."""

    kind: ClassVar[str] = "equals_constant"
    expected: Any = field(compare=False)
    key: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", constant_key(self.expected))

    def holds(self, value: Any) -> bool:
        return constants_equal(self.expected, value)

    def explain(self, value: Any) -> str:
        if type(value) is not type(self.expected):
            return f"expected {short(self.expected)}, got {short(value)} of type {type_name(type(value))}"
        return f"expected {short(self.expected)}, got {short(value)}"


@guard_kind
@dataclass(frozen=True, slots=True)
class Truthiness(GuardRecord):
    """``bool(value) is expected``, for a number, string, builtin container or None; anything else fails."""

    kind: ClassVar[str] = "truthiness"
    expected: bool

    def holds(self, value: Any) -> bool:
        kind = type(value)
        return type(kind) is type and kind in _PLAIN and bool(value) is self.expected

    def explain(self, value: Any) -> str:
        return f"expected a {'true' if self.expected else 'false'} value, got {short(value)}"


_PLAIN = frozenset({bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset, type(None)})
