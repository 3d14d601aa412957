"""Quick dataclasses beside the standard library's: the same class body under both, asked for the same things."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from dataclasses import field
from typing import Any, ClassVar

import pytest

from fx_interface.python_runtime.quick_dataclasses import dataclass

WAYS = [
    {"frozen": frozen, "slots": slots, "eq": eq}
    for frozen in (False, True)
    for slots in (False, True)
    for eq in (False, True)
]


def _family(decorator: Any, options: dict[str, bool]) -> tuple[type, type]:
    """A class and one that inherits from it, made by the decorator."""

    @decorator(**options)
    class Base:
        kind: ClassVar[str] = "base"
        first: int
        second: Any = "two"
        where: Any = field(default=None, compare=False, kw_only=True)

        def described(self) -> str:
            return f"{self.kind} {self.first}"

    @decorator(**options)
    class Derived(Base):
        """With all that a field may have."""

        kind: ClassVar[str] = "derived"
        second: Any = 2
        items: list[int] = field(default_factory=list)
        needed: Any = field(kw_only=True)
        lazily: list[int] = field(kw_only=True, default_factory=list)
        hidden: str = field(default="h", repr=False)
        aside: Any = field(default=None, compare=False)
        hashed: int = field(default=0, hash=False)
        total: int = field(init=False, repr=False)
        noted: list[str] = field(init=False, default_factory=lambda: ["note"], compare=False)
        fixed: int = field(init=False, default=7)

        def __post_init__(self) -> None:
            object.__setattr__(self, "total", self.first * 2)

    return Base, Derived


def _outcome(ask: Callable[[type, type], Any], family: tuple[type, type]) -> str:
    try:
        return repr(ask(*family))
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def _assigned(instance: Any, name: str) -> Any:
    setattr(instance, name, 5)
    return getattr(instance, name)


def _hash(instance: Any) -> Any:
    """The hash of a value; of an object by identity it is only known that there is one."""
    found = hash(instance)
    by_identity: Any = object.__hash__
    return None if type(instance).__hash__ is by_identity else found


QUESTIONS: dict[str, Callable[[type, type], Any]] = {
    "made": lambda base, derived: (base(1), derived(1, "b", [3], "x", 4, 5, needed=6, lazily=[7])),
    "by name": lambda base, derived: derived(first=1, aside=3, needed=2, where=1),
    "too few": lambda base, derived: base(),
    "too many": lambda base, derived: base(1, 2, 3),
    "not an argument": lambda base, derived: derived(1, needed=0, total=3),
    "a new list each": lambda base, derived: derived(1, needed=0).items is derived(1, needed=0).items,
    "computed": lambda base, derived: (
        derived(3, needed=0).total,
        derived(3, needed=0).noted,
        derived(3, needed=0).fixed,
    ),
    "equal": lambda base, derived: (
        base(1) == base(1),
        base(1) == base(2),
        derived(1, needed=0, aside=1) == derived(1, needed=0, aside=2),
        derived(1, needed=0, items=[2]) == derived(1, needed=0),
        base(1) == derived(1, needed=0),
        base(1) == 1,
    ),
    "hash": lambda base, derived: _hash(base(1)),
    "hash of what has none": lambda base, derived: _hash(derived(1, needed=0)),
    "hashed fields": lambda base, derived: (
        _hash(derived(1, needed=0, items=(), hashed=1)) == _hash(derived(1, needed=0, items=(), aside=2))
    ),
    "assigned": lambda base, derived: _assigned(base(1), "first"),
    "assigned, inherited": lambda base, derived: _assigned(derived(1, needed=0), "first"),
    "assigned, unknown": lambda base, derived: _assigned(base(1), "unknown"),
    "deleted": lambda base, derived: delattr(base(1), "first"),
    "of a subclass": lambda base, derived: _assigned(type("Plain", (base,), {})(1), "unknown"),
    "field of a subclass": lambda base, derived: _assigned(type("Plain", (base,), {})(1), "first"),
    "fields": lambda base, derived: [
        (one.name, one.type, one.init, one.repr, one.compare) for one in dataclasses.fields(derived)
    ],
    "replaced": lambda base, derived: dataclasses.replace(derived(1, needed=0), first=5),
    "as a dict": lambda base, derived: dataclasses.asdict(derived(1, needed=0)),
    "is one": lambda base, derived: (
        dataclasses.is_dataclass(base),
        dataclasses.is_dataclass(derived(1, needed=0)),
    ),
    "signature": lambda base, derived: inspect.signature(derived),
    "init": lambda base, derived: sorted(derived.__init__.__annotations__.items(), key=str),
    "matched": lambda base, derived: vars(derived)["__match_args__"],
    "slots": lambda base, derived: [vars(cls).get("__slots__") for cls in (base, derived)],
    "copied": lambda base, derived: (
        copy.copy(derived(1, needed=0)),
        copy.deepcopy(derived(1, needed=0, items=[1])),
    ),
    "methods": lambda base, derived: (base(1).described(), derived(2, needed=0).described()),
    "names": lambda base, derived: (
        derived.__name__,
        derived.__qualname__,
        derived.__module__,
        derived.__doc__,
    ),
}


@pytest.mark.parametrize("options", WAYS, ids=str)
@pytest.mark.parametrize("question", QUESTIONS)
def test_as_the_standard_library(question: str, options: dict[str, bool]) -> None:
    ask = QUESTIONS[question]
    expected = _outcome(ask, _family(dataclasses.dataclass, options))
    if "super(type, obj)" in expected:
        pytest.skip(
            "a bug of the standard library's: a frozen class with slots asks its base as the class before slots"
        )
    assert _outcome(ask, _family(dataclass, options)) == expected


REFUSED: dict[str, Callable[[Any], Any]] = {
    "mutable default": lambda decorator: decorator(_body({"items": []}, items="list[int]")),
    "order": lambda decorator: decorator(_body({"a": 1}, a="int", b="int")),
    "own slots": lambda decorator: decorator(slots=True)(
        type("Own", (), {"__slots__": ("a",), "__annotations__": {"a": "int"}})
    ),
    "own assignment": lambda decorator: decorator(frozen=True)(
        type("Own", (), {"__setattr__": object.__setattr__, "__annotations__": {"a": "int"}})
    ),
    "frozen from another": lambda decorator: decorator(frozen=True)(
        type("Child", (decorator(_body(a="int")),), {"__annotations__": {}})
    ),
    "another from frozen": lambda decorator: decorator(
        type("Child", (decorator(frozen=True)(_body(a="int")),), {"__annotations__": {}})
    ),
}


def _body(defaults: dict[str, Any] | None = None, /, **annotations: str) -> type:
    return type("Body", (), {"__annotations__": annotations, **(defaults or {})})


@pytest.mark.parametrize("kind", REFUSED)
def test_refused_as_by_the_standard_library(kind: str) -> None:
    outcomes = []
    for decorator in (dataclasses.dataclass, dataclass):
        with pytest.raises((TypeError, ValueError)) as caught:
            REFUSED[kind](decorator)
        outcomes.append((type(caught.value), str(caught.value)))
    assert outcomes[0] == outcomes[1]


def test_the_standard_library_inherits_from_a_quick_one() -> None:
    base, _ = _family(dataclass, {"frozen": True, "slots": True, "eq": True})
    made: Any = dataclasses.dataclass(frozen=True)(
        type("Further", (base,), {"__annotations__": {"more": "int"}, "more": 1})
    )
    assert repr(made(1)) == "Further(first=1, second='two', where=None, more=1)"
    assert made(1) != made(1, more=2)


def test_a_quick_one_inherits_from_the_standard_library() -> None:
    base, _ = _family(dataclasses.dataclass, {"frozen": True, "slots": True, "eq": True})
    made: Any = dataclass(frozen=True)(
        type("Further", (base,), {"__annotations__": {"more": "int"}, "more": 1})
    )
    assert repr(made(1)) == "Further(first=1, second='two', where=None, more=1)"


@dataclass(frozen=True, slots=True)
class Pickled:
    """At module level, where pickle finds it."""

    a: int
    b: list[Any] = field(default_factory=list)


def test_pickled() -> None:
    assert pickle.loads(pickle.dumps(Pickled(1, [2]))) == Pickled(1, [2])


def test_a_value_in_itself_is_shown_once() -> None:
    value = Pickled(1)
    value.b.append(value)
    assert repr(value) == "Pickled(a=1, b=[...])"


def test_only_names_differ_between_the_methods_of_two_classes() -> None:
    """The point of it: no text is compiled for a class whose fields are like another's."""
    first: Any = dataclass(frozen=True)(_body(a="int", b="int"))
    second: Any = dataclass(frozen=True)(_body(low="int", high="int"))
    assert first.__eq__.__code__.co_code == second.__eq__.__code__.co_code
    assert second.__eq__.__code__.co_names == ("__class__", "low", "high", "NotImplemented")
    assert second.__init__.__code__.co_varnames == ("self", "low", "high")
