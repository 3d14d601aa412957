"""Limits on what a callback caches per code object: how many entries at a time, how many compilations, until when.

    cache = CodeCache(limit=8, total=64)
    cache.owner = id(callback)      # whose entries it counts; those of other callbacks it neither sees nor drops
    cache.may_compile(code)         # False: it has been compiled `total` times; leave it alone from now on
    cache.admitting(code)           # an entry is about to be added: the least recently used one may go
    tie(entry, (module, tensor))    # the entry goes when one of its owners dies
    cache.reset()                   # everything that was admitted goes, and skipped code is asked about again

The entries themselves are in the code objects (``_eval_frame``), most recently used first. Of one whose ``extra`` says
that it can never run again (``CanDie``: an object that its guards compare with is gone) the compilation is not counted
but among ``in_all``.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from types import CodeType

from dynamo_capture import _eval_frame
from dynamo_capture._eval_frame import Entry
from dynamo_capture.hook.unused_versions import CanDie, UnusedVersions


class CodeCache:
    """Counts compilations per code object and keeps each within its limits. One callback, one cache.

    ``stated``: what may be asked for another total, each time; None: there is none. ``in_all``: how many compilations
    there may be at most, those included whose entries died: a program that makes new objects in each call would be
    compiled in each. ``owner``: the callback's id, or 0 as long as there is none. ``unused``: versions for one call.
    """

    def __init__(
        self,
        limit: int = 8,
        total: int = 64,
        stated: Callable[[], int | None] | None = None,
        in_all: int | None = None,
    ) -> None:
        if limit < 1 or total < limit:
            raise ValueError(
                f"at least one entry is needed, and no fewer compilations: limit={limit}, total={total}"
            )
        self.limit = limit
        self.owner = 0
        self.unused = UnusedVersions()
        self._total = total
        self._stated = stated
        self._in_all = total if in_all is None else in_all
        self._known: dict[int, weakref.ref[CodeType]] = {}
        self._compilations: dict[int, int] = {}
        self._died: dict[int, int] = {}

    @property
    def total(self) -> int:
        """How often each code object may be compiled."""
        stated = None if self._stated is None else self._stated()
        return self._total if stated is None else stated

    def may_compile(self, code: CodeType) -> bool:
        """Whether ``code`` has compilations left."""
        if self.compilations(code) >= self.total:
            self.drop_dead(code)
        died = self._died.get(id(code), 0)
        compilations, total = self.compilations(code), self.total
        return compilations < total and compilations + died < max(total, self._in_all)

    def compilations(self, code: CodeType) -> int:
        """How often ``code`` was compiled, but for entries that died."""
        return self._compilations.get(id(code), 0)

    def count(self, code: CodeType) -> None:
        """Count a compilation of ``code``."""
        self.remember(code)
        self._compilations[id(code)] = self.compilations(code) + 1

    def admitting(self, code: CodeType) -> None:
        """Count a compilation of ``code``, and make room for its entry."""
        self.count(code)
        self.drop_dead(code)
        for entry in _eval_frame.entries(code, self.owner)[self.limit - 1 :]:
            entry.invalidate()

    def drop_dead(self, code: CodeType) -> None:
        """Drop entries of ``code`` that can never run again."""
        dead = [
            entry
            for entry in _eval_frame.entries(code, self.owner)
            if isinstance(entry.extra, CanDie) and entry.extra.is_dead()
        ]
        for entry in dead:
            entry.invalidate()
        if dead:
            key = id(code)
            self._compilations[key] = self.compilations(code) - len(dead)
            self._died[key] = self._died.get(key, 0) + len(dead)

    def skip(self, code: CodeType, *, recursively: bool = False) -> None:
        """Run frames of ``code`` as they are until ``reset``; entries that it has are still used."""
        self.remember(code)
        _eval_frame.set_skip(code, 2 if recursively else 1, self.owner)

    def codes(self) -> list[CodeType]:
        """The code objects dealt with that are still alive."""
        return [code for reference in list(self._known.values()) if (code := reference()) is not None]

    def reset(self) -> None:
        """Forget all entries, skips and counts."""
        for code in self.codes():
            self.forget(code)

    def forget(self, code: CodeType) -> None:
        """Forget all about one code object."""
        _eval_frame.forget(code, self.owner)
        self._drop(id(code))

    def release(self) -> None:
        """The owner is gone: drop all that it has. Its id may be another's from now on."""
        for code in self.codes():
            _eval_frame.release(code, self.owner)
            self._drop(id(code))

    def remember(self, code: CodeType) -> None:
        """The owner may have something of ``code``."""
        key = id(code)
        if key not in self._known:
            owner = weakref.ref(self)

            def gone(_: object) -> None:
                cache = owner()
                if cache is not None:
                    cache._drop(key)

            self._known[key] = weakref.ref(code, gone)

    def _drop(self, key: int) -> None:
        self._known.pop(key, None)
        self._compilations.pop(key, None)
        self._died.pop(key, None)
        self.unused.drop(key)


def tie(entry: Entry, owners: Iterable[object]) -> None:
    """Invalidate ``entry`` when any of ``owners`` dies. Owners that cannot be weakly referenced are left out: an entry
    whose guard compares such an object's identity must hold it."""
    reference = weakref.ref(entry)
    for owner in owners:
        try:
            finalizer = weakref.finalize(owner, _invalidate, reference)
        except TypeError:
            continue
        finalizer.atexit = False


def _invalidate(reference: weakref.ref[Entry]) -> None:
    entry = reference()
    if entry is not None:
        entry.invalidate()
