"""Code whose versions no later call can enter: it is left alone for some calls, and then for ever more (decision 0153).

    unused = UnusedVersions()
    unused.made(code, entry, begun)          # a version was compiled
    pause = unused.paused(code, why)         # before the next is: None, or that this call runs as it is
    unused.at_once(code)                     # so many more need not be asked about

A version is *for one call* if it hardly ran from the cache, and either can never run again (``CanDie``: an object that
its guards compare with is gone) or the call that it does not fit brings an object made since then in place of the one
that it compares with. The first pause begins after ``FEW`` such versions in a row, if most of the time since the first
of them went into compiling. From then on one version decides, and each pause is longer, and not over before compiling
such code takes little of all time (decision 0168); what compiles for others too, as a module's ``__call__``, goes on in
between. A version that runs again after all ends all that.
"""

from __future__ import annotations

import gc
import time
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any, Final, NamedTuple, Protocol, runtime_checkable

from dynamo_capture._eval_frame import Entry

FEW: Final = 4
"""So many versions for one call each, in a row, begin a pause."""
FIRST_PAUSE: Final = 16
"""So many calls the first pause is long; each is twice as long as the one before."""
LONGEST_PAUSE: Final = 1024
SELDOM: Final = 4
"""So often a version for one call may have run from the cache: the call may have come to it several times."""
PROBING: Final = 0.05
"""The part of the time since the first pause that compiling code which has paused may take, or its pauses go on."""
AT_ONCE: Final = 15
"""So many calls of a pause pass without a question; a version that runs again is seen after them."""
MOST: Final = 2 / 3
"""The part of the time that compiling must have taken: less, and what ran compiled in it may have been worth it."""


@runtime_checkable
class CanDie(Protocol):
    """What an entry may have as its ``extra``."""

    def is_dead(self) -> bool:
        """Whether its guards can never hold again."""


class Misfit(NamedTuple):
    """Why an entry does not fit a call: ``found`` is what the call has in place of an object that the entry compares
    with, None where it compares otherwise."""

    reason: str
    found: Any


class _Version:
    """When a version was begun, what compiling had taken until then, and how often it had run when it was found to be
    for one call (-1: it was not)."""

    __slots__ = ("begun", "entry", "hits", "spent")

    def __init__(self, entry: Entry, begun: float, spent: float) -> None:
        self.entry = weakref.ref(entry)
        self.begun = begun
        self.spent = spent
        self.hits = -1

    @property
    def for_one_call(self) -> bool:
        return self.hits >= 0

    def is_used(self) -> bool:
        """Whether it has run since it was found to be for one call."""
        entry = self.entry()
        return entry is not None and 0 <= self.hits < entry.hits

    def judge(self, is_new: bool) -> None:
        """``is_new``: a call that it does not fit has brought a new object."""
        entry = self.entry()
        if entry is None or self.for_one_call or entry.hits > SELDOM:
            return
        if is_new or (isinstance(entry.extra, CanDie) and entry.extra.is_dead()):
            self.hits = entry.hits


class _Recent:
    """The last versions of one code object; how many pauses there were, how many calls are left of the last one, and
    the version because of which it began."""

    __slots__ = ("cause", "left", "pauses", "versions")

    def __init__(self) -> None:
        self.versions: list[_Version] = []
        self.pauses = 0
        self.left = 0
        self.cause: _Version | None = None


class UnusedVersions:
    """What one callback has compiled in vain, by code object. Several threads may ask: each step is one assignment, and
    a count that two of them change at once is one off."""

    def __init__(self) -> None:
        self._recent: dict[int, _Recent] = {}
        self._spent = 0.0
        self._probed = 0.0
        self._first_pause = 0.0

    def took(self, seconds: float) -> None:
        """Compiling something took so long."""
        self._spent += seconds

    def knows(self, code: CodeType) -> bool:
        """Whether ``code`` has had a version."""
        return id(code) in self._recent

    def made(self, code: CodeType, entry: Entry, begun: float) -> None:
        """``entry`` is a new version of ``code``, which was begun at that time (``time.perf_counter``)."""
        recent = self._recent.setdefault(id(code), _Recent())
        took = time.perf_counter() - begun
        spent = self._spent - took
        if recent.pauses:
            self._probed += took
        if gc.isenabled():
            gc.collect(0)
        recent.versions = [*recent.versions[1 - FEW :], _Version(entry, begun, spent)]

    def paused(self, code: CodeType, why: Callable[[Entry], Misfit | None]) -> str | None:
        """Why this call, which no version fits, runs as it is; "" where that has been said. None: it is compiled.
        ``why`` says why an entry does not fit it."""
        recent = self._recent.get(id(code))
        if recent is None:
            return None
        if any(version.is_used() for version in recent.versions):
            self.forget(code)
            return None
        if recent.left > 0:
            recent.left -= 1
            return ""
        last = recent.versions[-1]
        if last is recent.cause:
            if self._probes_too_much():
                recent.left = AT_ONCE
                return ""
            return None  # the pause is over: the next version decides
        entry = last.entry()
        misfit = None if entry is None else why(entry)
        is_new = misfit is not None and _is_new(misfit.found)
        for version in recent.versions:
            version.judge(is_new and version is last)
        if not (self._in_vain(recent) if recent.pauses == 0 else last.for_one_call):
            return None
        recent.cause = last
        self._first_pause = self._first_pause or time.perf_counter()
        recent.left = min(FIRST_PAUSE << recent.pauses, LONGEST_PAUSE) - 1
        recent.pauses = min(recent.pauses + 1, 32)
        return "" if recent.pauses > 1 else "of objects that are gone" if misfit is None else misfit.reason

    def _probes_too_much(self) -> bool:
        return self._probed > PROBING * (time.perf_counter() - self._first_pause)

    def at_once(self, code: CodeType) -> int:
        """How many of the calls that are left of a pause are taken off it now, to run without being asked about."""
        recent = self._recent.get(id(code))
        if recent is None:
            return 0
        taken = min(recent.left, AT_ONCE)
        recent.left -= taken
        return taken

    def _in_vain(self, recent: _Recent) -> bool:
        first = recent.versions[0]
        if len(recent.versions) < FEW or not all(version.for_one_call for version in recent.versions):
            return False
        return self._spent - first.spent >= MOST * (time.perf_counter() - first.begun)

    def forget(self, code: CodeType) -> None:
        """Forget what is known of one code object."""
        self.drop(id(code))

    def drop(self, key: int) -> None:
        """The same, by its id."""
        self._recent.pop(key, None)


def _is_new(found: Any) -> bool:
    """Whether an object has been made since the last version was compiled: ``made`` has had the collector move all that
    there was then out of the first generation."""
    return found is not None and gc.isenabled() and any(one is found for one in gc.get_objects(0))
