"""What a trace keeps: values of existing objects, functions it is in, side effects, drawn numbers."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from fx_interface.source import Source

V = TypeVar("V")
"""Values: ``values.base.Value``."""


class Namespace(Protocol[V]):
    """The names of a module. ``written``: those that the trace has set; None: deleted."""

    real: dict[str, Any]
    written: dict[str, V | None]

    def read(self, name: str) -> V:
        """What is bound to a name."""

    def write(self, name: str, value: V) -> None:
        """Bind a name."""

    def guard_absent(self, name: str) -> None:
        """A name is not bound."""


class Wrapping(Protocol[V]):
    """Existing objects as values, one value for each object."""

    by_identity: dict[int, tuple[Any, V]]
    """The objects that were read, by their ids."""

    constants: list[Any]
    """Those that are guarded when they are used."""

    without_cache: dict[Any, V]
    """What functions with a cache gave that were traced into, by their arguments."""

    def read_from(self, source: Any) -> V | None:
        """What a call of a function with a cache has given before."""

    def objects(self) -> Iterator[Any]:
        """The objects of the program's own classes that were read."""

    def remember(self, real: Any, value: V) -> V:
        """From now on ``real`` is this value."""

    def seen(self, real: Any, source: Source) -> V | None:
        """The value of an object that was read before, with a guard that both paths lead to it."""

    def unread(self, value: Any) -> V:
        """Note a constant that is guarded when it is used."""

    def value_of(self, real: Any) -> V | None:
        """The value of an object that was read before, if any."""


class AttributeDicts(Protocol):
    """Dictionaries of attributes that the program holds itself."""

    def check_constant(self, value: Any) -> None:
        """An attribute of a known object is read: it must not have changed as an item of its dictionary."""

    def check_object(self, value: Any) -> None:
        """An object of before the trace is read for the first time."""

    def check_dict(self, real: Any) -> None:
        """A dictionary of before the trace is read for the first time."""


class Inliner(Protocol[V]):
    """Python functions that are traced into."""

    def call_function(self, function: V, args: list[V], kwargs: dict[str, V]) -> V:
        """Call a known or new Python function."""

    def has_written(self, real: dict[str, Any]) -> bool:
        """Whether names of this namespace have been set or deleted."""

    @property
    def root_builtins(self) -> dict[str, Any]:
        """The builtins of the frame that is compiled."""

    def scope(self, real: dict[str, Any]) -> Namespace[V]:
        """The namespace of a module, one object per namespace."""


class Effects(Protocol[V]):
    """Side effects, in order."""

    watching: bool
    """Whether changes are noted in ``touched``."""
    changes: list[Any] | None
    """What has changed since somebody has begun it, as ``touched`` lists it."""
    of_caches: dict[int, tuple[V, Any]]
    """Containers that a function with a cache has given for sizes that vary, each with the part of it that it is."""
    late: list[V]
    """What is computed of results of the graph, in order, before anything else is done."""
    by_data: list[str]
    """What the replacement code makes of what the graph has computed, and is no tensor of it."""

    def advances(self, iterator: V) -> None:
        """An iterator gives an item; iterators of before the trace tell the log themselves."""

    def attribute(self, owner: Any, name: str) -> None:
        """An attribute of an existing object is set or deleted."""

    def cell(self, cell: Any) -> None:
        """A closure cell that existed gets another content."""

    def deferred(self, function: Any, args: list[V], kwargs: dict[str, V], *, is_note: bool = False) -> None:
        """A call whose result is not used and that may as well happen after the graph has run. ``is_note``: nothing is
        computed with what it does."""

    def is_note(self, key: Any) -> bool:
        """Whether an entry of the log is such a call."""

    def drawn_by_another(self) -> AbstractContextManager[None]:
        """What is drawn from inside, the object that draws will draw itself when it is called."""

    def draws_from(self, iterator: Any) -> None:
        """An iterator of before the trace is called: for an item, or to find that it has none."""

    def global_(self, scope: Any, name: str) -> None:
        """A global is set or deleted."""

    def has_changed(self, value: V) -> bool:
        """Whether a container of before the trace was changed."""

    def hooked(self, handle: Any) -> None:
        """A hook is registered on a tensor: after the graph, before all other effects."""

    @property
    def hooked_copies(self) -> dict[int, Any]:
        """By the id of a memory, what shows it in eager, and in the graph a copy of it."""

    @property
    def hooks(self) -> list[Any]:
        """The handles of the hooks that are registered, in order."""

    @property
    def log(self) -> dict[Any, tuple[Any, ...]]:
        """What is to be replayed, in order."""

    def changed(self) -> list[V]:
        """The existing objects that were changed."""

    def mutates(self, value: Any) -> None:
        """A container's content changes; what the trace itself made needs no replay."""

    def observed(self) -> AbstractContextManager[list[Any]]:
        """What changes inside, also of what the trace has made: complete when the block has ended."""

    def tensor_attribute(self, owner: Any, name: str) -> None:
        """A Python attribute of a tensor is set."""

    @property
    def touched(self) -> list[Any]:
        """What has changed while ``watching``."""


class Draws(Protocol[V]):
    """Random numbers that are drawn before the graph."""

    def by_filling(self, tx: Any, owner: Any, name: str, dice: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """A method of a tensor that fills it from a generator of the program: it is drawn, and copied there."""

    def by_function(self, tx: Any, function: Any, dice: Any, args: list[V], kwargs: dict[str, V]) -> V:
        """What a function of torch draws from a generator of the program."""

    def by_method(self, tx: Any, dice: Any, name: str, args: list[V], kwargs: dict[str, V]) -> V:
        """What a method of numpy's generators gives."""

    def draw(self, tx: Any, real: random.Random, source: Source | None, method: str, args: list[V]) -> V:
        """The next number of Python's generator ``real``."""

    @property
    def log(self) -> list[Any]:
        """What is drawn, in order."""

    def methods_of(self, cls: type) -> frozenset[str]:
        """The methods of a generator's class that only draw."""

    def of_call(self, tx: Any, real: random.Random, draw: Any, bounds: tuple[int | None, int | None]) -> V:
        """What ``draw`` gives, numbers between ``bounds`` if they are integers; the twin of ``real`` draws now."""

    def variable(self) -> str:
        """The name of the next variable."""
