"""Dataclasses whose instances are made natively, beside the standard library's: equal calls of equal class bodies."""

from __future__ import annotations

import abc
import dataclasses
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import field
from typing import Any

import pytest

import fx_guards  # noqa: F401  (has instances made natively)
from fx_interface.python_runtime.quick_dataclasses import dataclass

made: list[str] = []


def _note() -> list[str]:
    made.append("note")
    return list(made)


def _family(decorator: Any, frozen: bool) -> tuple[Any, Any]:
    """A class and one that inherits from it, with each kind of field."""

    @decorator(frozen=frozen, slots=True)
    class Base:
        first: int
        second: Any = "two"
        where: Any = field(default=None, kw_only=True)

    @decorator(frozen=frozen, slots=True)
    class Derived(Base):
        third: Any = None
        items: list[int] = field(default_factory=list)
        needed: Any = field(kw_only=True)
        lazily: list[str] = field(kw_only=True, default_factory=_note)
        total: int = field(init=False)
        left: int = field(init=False, repr=False)
        noted: list[str] = field(init=False, default_factory=_note)
        fixed: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            if self.first == 13:
                raise ValueError("unlucky")
            object.__setattr__(self, "total", self.first * 2)

    return Base, Derived


def _unpacked(cls: Any) -> Any:
    return cls(*(1, 2), where=3)


CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "one": lambda base, derived: base(1),
    "all by name": lambda base, derived: base(where=3, second=2, first=1),
    "unpacked": lambda base, derived: _unpacked(base),
    "a name that is no constant": lambda base, derived: base(**{"".join(("fi", "rst")): 1}),
    "all kinds": lambda base, derived: derived(1, "b", "c", [3], where=5, needed=6, lazily=[7]),
    "what is left out": lambda base, derived: derived(1, needed=0),
    "factories": lambda base, derived: (derived(1, needed=0).lazily, derived(2, needed=0).noted),
    "none": lambda base, derived: base(),
    "none, and no factory runs": lambda base, derived: derived(1),
    "too many": lambda base, derived: base(1, 2, 3),
    "twice": lambda base, derived: base(1, first=1),
    "unknown": lambda base, derived: base(1, unknown=2),
    "no parameter": lambda base, derived: derived(1, needed=0, total=3),
    "raises": lambda base, derived: derived(13, needed=0),
    "unset": lambda base, derived: derived(1, needed=0).left,
    "plain subclass": lambda base, derived: type("Plain", (base,), {})(1),
    "subclass with another": lambda base, derived: type("Own", (base,), {"__init__": lambda self: None})(),
    "copied": lambda base, derived: dataclasses.replace(base(1), second=3),
}


def _outcome(call: Callable[[Any, Any], Any], family: tuple[Any, Any]) -> tuple[str, list[str]]:
    made.clear()
    try:
        found = repr(call(*family))
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    return found, list(made)


@pytest.mark.parametrize("frozen", [True, False])
@pytest.mark.parametrize("call", CALLS)
def test_as_the_standard_library(call: str, frozen: bool) -> None:
    expected = _outcome(CALLS[call], _family(dataclasses.dataclass, frozen))
    family = _family(dataclass, frozen)
    for cls, arguments in zip(family, ({}, {"needed": 0}), strict=True):
        cls(1, **arguments)  # the first call writes ``__init__``, the next ones are native
        assert "__record_plan__" in vars(cls)
    assert _outcome(CALLS[call], family) == expected


def test_another_init_is_called() -> None:
    base, _ = _family(dataclass, True)
    base(1)
    base.__init__ = lambda self, value: object.__setattr__(self, "first", value + 1)
    assert base(1).first == 2
    with pytest.raises(TypeError):
        base(1, 2)


def test_classes_with_something_of_their_own_are_left_alone() -> None:
    @dataclass(frozen=True, slots=True)
    class Abstract(abc.ABC):
        first: int

        @abc.abstractmethod
        def needed(self) -> None: ...

    @dataclass(frozen=True, slots=True)
    class Interned:
        first: int

        def __new__(cls, first: int) -> Any:
            return super().__new__(cls) if first else None

    @dataclass(frozen=True)
    class WithDict:
        first: int

    with pytest.raises(TypeError, match="abstract"):
        Abstract(1)  # type: ignore[abstract]
    assert Interned(0) is None
    assert WithDict(1).first == 1
    for cls in (Abstract, WithDict):
        assert "__record_plan__" not in vars(cls)


def test_instances_and_classes_are_freed() -> None:
    base, derived = _family(dataclass, True)
    value = derived(1, needed=[])
    value.needed.append(value)  # a cycle through an instance, and one through the class and its plan
    alive = [weakref.ref(base), weakref.ref(derived)]
    del value, base, derived
    gc.collect()
    assert [ref() for ref in alive] == [None, None]


def test_arguments_are_held_once_each() -> None:
    base, _ = _family(dataclass, True)
    base(1)
    held = object()
    before = sys.getrefcount(held)
    values = [base(held, held, where=held) for _ in range(10)]
    assert sys.getrefcount(held) == before + 30
    for _ in range(10):
        with pytest.raises(TypeError):
            base(held, held, first=held)
    values.clear()
    assert sys.getrefcount(held) == before
