"""Limits on what is cached per code object: how many entries at a time, how many compilations in all, and until when.

    cache = CodeCache(limit=8, total=64)
    cache.may_compile(code)         # False: it has been compiled `total` times; leave it alone from now on
    cache.admitting(code)           # an entry is about to be added: the least recently used one may go
    tie(entry, (module, tensor))    # the entry goes when one of its owners dies
    cache.reset()                   # everything that was admitted goes, and skipped code is asked about again

The entries themselves are in the code objects (``_eval_frame``), most recently used first.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from types import CodeType

from dynamo_capture import _eval_frame
from dynamo_capture._eval_frame import Entry


class CodeCache:
    """Counts compilations per code object and keeps each within its limits. One callback, one cache.

    ``stated``: what may be asked for another total, each time; None: there is none.
    """

    def __init__(
        self, limit: int = 8, total: int = 64, stated: Callable[[], int | None] | None = None
    ) -> None:
        if limit < 1 or total < limit:
            raise ValueError(
                f"at least one entry is needed, and no fewer compilations: limit={limit}, total={total}"
            )
        self.limit = limit
        self._total = total
        self._stated = stated
        self._known: dict[int, weakref.ref[CodeType]] = {}
        self._compilations: dict[int, int] = {}

    @property
    def total(self) -> int:
        """How often each code object may be compiled."""
        stated = None if self._stated is None else self._stated()
        return self._total if stated is None else stated

    def may_compile(self, code: CodeType) -> bool:
        """Whether ``code`` has compilations left."""
        return self.compilations(code) < self.total

    def compilations(self, code: CodeType) -> int:
        """How often ``code`` was compiled."""
        return self._compilations.get(id(code), 0)

    def count(self, code: CodeType) -> None:
        """Count a compilation of ``code``."""
        self._remember(code)
        self._compilations[id(code)] = self.compilations(code) + 1

    def admitting(self, code: CodeType) -> None:
        """Count a compilation of ``code``, and make room for its entry."""
        self.count(code)
        for entry in _eval_frame.entries(code)[self.limit - 1 :]:
            entry.invalidate()

    def skip(self, code: CodeType, callback: object = None, *, recursively: bool = False) -> None:
        """Run frames of ``code`` as they are until ``reset``, under this callback (None: every one); entries that it
        has are still used."""
        self._remember(code)
        _eval_frame.set_skip(code, 2 if recursively else 1, callback)

    def codes(self) -> list[CodeType]:
        """The code objects dealt with that are still alive."""
        return [code for reference in list(self._known.values()) if (code := reference()) is not None]

    def reset(self) -> None:
        """Forget all entries, skips and counts."""
        for code in self.codes():
            self.forget(code)

    def forget(self, code: CodeType) -> None:
        """Forget all about one code object."""
        _eval_frame.clear_entries(code)
        _eval_frame.set_skip(code, 0)
        self._drop(id(code))

    def _remember(self, code: CodeType) -> None:
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
