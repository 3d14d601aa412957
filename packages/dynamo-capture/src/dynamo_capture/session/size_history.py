"""What the inputs of one code looked like in earlier calls, and what is known to vary of them."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from dataclasses import field
from types import CodeType, FunctionType
from typing import Any, Literal, NamedTuple, TypeAlias

from dynamo_capture.session.known_functions import Part
from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass

MANY = 4
"""So many different values of an integer show that it may be anything, 0, 1 and negative ones included."""


class Form(NamedTuple):
    """A tensor's sizes and strides, None for one that differs."""

    sizes: tuple[int | None, ...]
    strides: tuple[int | None, ...]


class Place(NamedTuple):
    """A tensor, by its source's text, and which of its sizes and, behind them, strides."""

    key: str
    position: int


Varies: TypeAlias = Form | Literal["integer", "size", "all"]
Varying: TypeAlias = dict[str, Varies]
"""What varies of what a resume function takes, by the texts of sources that begin with its parameters: a tensor's
form, an integer, one that sizes are made of, or all that is in an object."""


_SOME_SIZES = (2, 3)
"""Two sizes: an integer that has had two values is a symbol, and a size if none of them was less than 2."""


@dataclass(slots=True)
class HookedCopies:
    """Whether copies stand for the identities around modules with backward hooks."""

    are_made: bool = True


@dataclass(slots=True)
class SizeHistory:
    """What one code's inputs looked like before, by the source's text. Mutable; lives as long as the code's cache."""

    sizes: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    strides: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    captures: int = 0
    forms: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    integers: dict[str, set[int]] = field(default_factory=dict)
    open_integers: set[str] = field(default_factory=set)
    floats: dict[str, float | None] = field(default_factory=dict)
    rounds: dict[str, set[int]] = field(default_factory=dict)
    known: dict[str, set[str]] = field(default_factory=dict)
    contents: dict[str, set[str]] = field(default_factory=dict)
    all_open: set[str] = field(default_factory=set)
    readers: dict[str, dict[object, list[Part]]] = field(default_factory=dict)
    decisive: dict[str, UserLocation | None] = field(default_factory=dict)
    useless: set[str] = field(default_factory=set)
    modes_apart: str | None = None
    leaves_change: bool = False
    hooked_copies: HookedCopies = field(default_factory=HookedCopies)
    exhausted: set[UserLocation] = field(default_factory=set)
    asked_for_each: weakref.WeakSet[Any] = field(default_factory=weakref.WeakSet)
    functions: dict[str, tuple[weakref.ref[FunctionType], CodeType] | None] = field(default_factory=dict)

    def record_sizes(
        self, key: str, sizes: tuple[int, ...], callers: Collection[int] = ()
    ) -> tuple[int | None, ...]:
        """Remember these sizes; None stands for a size that has differed, or that equals one of the ``callers`` when it
        is first seen."""
        return _merge(self.sizes, key, sizes, callers)

    def record_strides(
        self, key: str, strides: tuple[int, ...], callers: Collection[int] = ()
    ) -> tuple[int | None, ...]:
        """Remember these strides; None stands for one that has differed, or that is a multiple of a size of the
        ``callers`` when it is first seen: that of a part of something larger."""
        multiples = {n for n in strides if any(n % size == 0 for size in callers)}
        return _merge(self.strides, key, strides, multiples)

    def record_form(self, key: str, sizes: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
        """Remember the sizes and strides that a tensor has in this capture; those that it had when it was first seen
        with as many dimensions."""
        found, known = (*sizes, *strides), self.forms.setdefault(key, {})
        if any(len(form) != len(found) for form in known.values()):
            known.clear()
        known[self.captures] = found
        return next(iter(known.values()))

    def were_equal(self, one: Place, other: Place) -> bool:
        """Whether two sizes or strides were equal in each capture that saw both."""
        known = self.forms[other.key]
        return all(
            form[one.position] == known[capture][other.position]
            for capture, form in self.forms[one.key].items()
            if capture in known
        )

    def is_open(self, key: str) -> bool:
        """Whether this is part of what is known to have other sizes in each call."""
        return bool(self.all_open) and any(_is_part(key, one) for one in self.all_open)

    def varying(self, key: str) -> Varies | None:
        """What is known to vary of this; None: nothing."""
        if self.is_open(key):
            return "all"
        if key in self.open_integers:
            return "integer"
        sizes = self.sizes.get(key, ())
        return Form(sizes, self.strides.get(key, (None,) * len(sizes))) if None in sizes else None

    def hand_down(self, known: Varying, parameters: Mapping[str, str]) -> None:
        """What is known to vary of a resume function's ``parameters``, which are read from sources of these texts, as
        those of other functions may have been."""
        self.all_open.difference_update(parameters.values())
        self.open_integers.difference_update(parameters.values())
        for name, what in known.items():
            parameter = next((one for one in parameters if _is_part(name, one)), None)
            if parameter is None:
                continue
            key = parameters[parameter] + name[len(parameter) :]
            if what == "all":
                self.all_open.add(key)
            elif what == "integer":
                self.open_integers.add(key)
            elif what == "size":
                self.integers.setdefault(key, set()).update(_SOME_SIZES)
            else:
                self.sizes[key] = _opened(self.sizes.get(key), what.sizes)
                self.strides[key] = _opened(self.strides.get(key), what.strides)

    def record_integer(self, key: str, value: int) -> int:
        """Remember this integer; how many different ones there have been, as far as it matters."""
        known = self.integers.setdefault(key, set())
        if len(known) < MANY:
            known.add(value)
        return len(known)

    def least_integer(self, key: str) -> int:
        """The least of the integers that were remembered."""
        return min(self.integers[key])

    def record_float(self, key: str, value: float) -> bool:
        """Remember this float; True if it has differed."""
        known = self.floats.setdefault(key, value)
        if known is not None and known.hex() != value.hex():
            self.floats[key] = None
        return self.floats[key] is None

    def record_rounds(self, key: str, taken: int) -> None:
        """Remember how many items of an iterator were read ahead."""
        self.rounds.setdefault(key, set()).add(taken)

    def record_known(self, key: str, value: float) -> int:
        """Remember that code is compiled for this value; for how many it has been."""
        values = self.known.setdefault(key, set())
        values.add(repr(value))
        return len(values)

    def record_function(self, key: str, function: FunctionType) -> bool:
        """Remember this function; True if there have been others with the same code."""
        known = self.functions.setdefault(key, (weakref.ref(function), function.__code__))
        if known is not None and known[0]() is not function and known[1] is function.__code__:
            self.functions[key] = None
        return self.functions[key] is None


def _is_part(name: str, whole: str) -> bool:
    return name == whole or name.startswith((f"{whole}[", f"{whole}."))


def _opened(known: tuple[int | None, ...] | None, found: tuple[int | None, ...]) -> tuple[int | None, ...]:
    """``found``, with those open that were known to be."""
    if known is None or len(known) != len(found):
        return found
    return tuple(None if other is None else one for one, other in zip(found, known, strict=True))


def _merge(
    table: dict[str, tuple[int | None, ...]], key: str, found: tuple[int, ...], callers: Collection[int]
) -> tuple[int | None, ...]:
    known = table.get(key)
    if known is None or len(known) != len(found):
        merged = tuple(None if n in callers else n for n in found)
    else:
        merged = tuple(a if a == b else None for a, b in zip(known, found, strict=True))
    table[key] = merged
    return merged
