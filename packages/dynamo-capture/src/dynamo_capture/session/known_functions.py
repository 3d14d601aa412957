"""What earlier captures have shown of functions that they traced: which could be left to Python as a whole.

By the identity of their code, which is kept alive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from types import CodeType
from typing import Any, NamedTuple, TypeAlias

from fx_interface.errors import UserLocation
from fx_interface.python_runtime.quick_dataclasses import dataclass


class Loop(NamedTuple):
    """A ``for`` loop: the function's own code, and which of its instructions is the FOR_ITER."""

    code: CodeType
    head: int


Part: TypeAlias = CodeType | Loop
"""What can be left to Python as a whole."""


def key_of(part: Part) -> object:
    """What tells it from others, as long as its code is alive."""
    return (id(part.code), part.head) if isinstance(part, Loop) else id(part)


@dataclass(slots=True)
class KnownFunctions:
    """``traced``: to their end; ``calling``: they call modules that have others inside, so that what they do is a large
    part of a program; ``left``: their calls are left to Python; ``apart``: they are
    frames of their own where they are called with arrays. ``loops_left`` are left where they stand;
    ``loops_of_data``: in each round Python is given numbers of tensors; ``one_by_one``: lines with iterators that data
    end, of which no more may be taken than needed; ``not_taken_back``: lines with branches on data that write to
    existing tensors, which are not to be done in any case; ``not_done``: lines with branches on data that cannot be, as
    has turned out; ``not_assumed``: lines with branches that are often not taken, which graphs have stated to be;
    ``without_levels`` enter levels of dual tensors themselves, ``without_caches`` make caches, and ``without_replay``
    have each call of equal modules traced."""

    traced: dict[int, CodeType] = field(default_factory=dict)
    calling: dict[int, CodeType] = field(default_factory=dict)
    left: dict[int, CodeType] = field(default_factory=dict)
    apart: dict[int, CodeType] = field(default_factory=dict)
    weighs_arrays: bool = False
    loops_left: dict[object, Loop] = field(default_factory=dict)
    loops_of_data: dict[object, Loop] = field(default_factory=dict)
    one_by_one: set[UserLocation | None] = field(default_factory=set)
    not_taken_back: set[UserLocation | None] = field(default_factory=set)
    not_done: set[UserLocation | None] = field(default_factory=set)
    not_assumed: set[UserLocation | None] = field(default_factory=set)
    without_levels: dict[int, CodeType] = field(default_factory=dict)
    without_caches: dict[int, CodeType] = field(default_factory=dict)
    without_replay: dict[int, CodeType] = field(default_factory=dict)
    in_python: Mapping[Callable[..., Any], Callable[..., Any]] = field(default_factory=dict)

    def is_small(self, code: CodeType) -> bool:
        """Whether this is surely no large part of a program."""
        return id(code) in self.traced and id(code) not in self.calling

    def note_module_call(self, codes: Iterable[CodeType]) -> None:
        """While these are traced, a module is called that has others inside."""
        self.calling.update((id(code), code) for code in codes)

    def can_leave(self, part: Part) -> bool:
        """Whether this can be left to Python without much of the program: a small function, or a loop."""
        return isinstance(part, Loop) or self.is_small(part)

    def has_left(self, part: Part) -> bool:
        """Whether this is left to Python."""
        return key_of(part) in (self.loops_left if isinstance(part, Loop) else self.left)

    def leave(self, part: Part) -> None:
        """Leave this to Python from now on."""
        if isinstance(part, Loop):
            self.loops_left[key_of(part)] = part
        else:
            self.left[id(part)] = part

    def set_apart(self, code: CodeType | None) -> bool:
        """Calls of a function of arrays, in which a graph has ended, are frames of their own from now on; whether they
        were not."""
        if code is None or id(code) in self.apart or not self.weighs_arrays:
            return False
        self.apart[id(code)] = code
        return True

    def clear(self) -> None:
        """Forget everything."""
        self.traced.clear()
        self.calling.clear()
        self.left.clear()
        self.apart.clear()
        self.loops_left.clear()
        self.loops_of_data.clear()
        self.one_by_one.clear()
        self.not_taken_back.clear()
        self.not_done.clear()
        self.not_assumed.clear()
        self.without_levels.clear()
        self.without_caches.clear()
        self.without_replay.clear()
