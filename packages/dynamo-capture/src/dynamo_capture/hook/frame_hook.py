"""The frame hook's Python face: functions and blocks in which a callback sees the frames that start.

    wrapped = optimize(fn, callback)      # calling it activates callback in this thread, calls fn, restores
    with region(callback): ...            # the same for a block
    disabled(fn); with region(None): ...  # nothing is active inside (for compiled code that is Python)
    previous = set_callback(callback)     # the primitive, per thread; None: nothing

A callback is ``callback(frame: FrameView, entry_count: int) -> Entry | SKIP | SKIP_RECURSIVELY | AS_WRITTEN |
AGAIN | None``. It is
asked, with nothing active in its thread, when a plain function's frame starts and no cached entry's guard holds:

- ``Entry(code, guard=None, extra=None)``: cache ``code``, run it in place of the frame's now, and later whenever
  ``guard`` holds.
  ``code`` takes the same arguments and free variables; ``guard`` is None (always), a native evaluator of the
  ``guards`` package, or any ``guard(locals: tuple, function) -> bool`` over the argument slots in the order of
  ``co_varnames``;
- ``SKIP``: run frames of this code as they are from now on; ``SKIP_RECURSIVELY``: and everything they call;
- ``AS_WRITTEN``: run this one and everything it calls as they are, ask again next time;
- ``AGAIN``: look for an entry that fits once more (another thread has added some), else run this one as it is;
- ``None``: run this one as it is, ask again next time.

``FrameView`` has ``code, function, globals, builtins, closure``, ``locals`` (arguments by name) and ``owner`` (the
callback's id: ``entries(view.code, view.owner)`` are what it has cached). Generators,
coroutines, class bodies, modules and ``exec`` never reach a callback, but what they call does.

``optimize`` and ``region`` wrap a bare callback in ``FrameCallback``, which decides about errors: KeyboardInterrupt,
SystemExit and exceptions marked by ``propagate`` leave through the frame as if its first instruction had raised
them, under the handlers of the place where it begins (``LeavesBlocks``); any other is logged with its traceback
(logger ``dynamo_capture``), the frame runs as it is, and so does that code from then on. A RecursionError says that
this call is near the limit: the frame runs as it is, and the next call asks again.
"""

from __future__ import annotations

import functools
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import CodeType
from typing import Any, Protocol, TypeVar, runtime_checkable

from dynamo_capture import _eval_frame
from dynamo_capture._eval_frame import (
    AGAIN,
    AS_WRITTEN,
    SKIP,
    SKIP_RECURSIVELY,
    Entry,
    FrameView,
    RegionFunction,
    add_entry,
    entries,
    get_callback,
    is_installed,
    pause,
    set_callback,
)
from dynamo_capture.hook.code_cache import CodeCache, tie
from dynamo_capture.hook.unused_versions import FEW, FIRST_PAUSE, Misfit

__all__ = [
    "AGAIN",
    "AS_WRITTEN",
    "SKIP",
    "SKIP_RECURSIVELY",
    "Callback",
    "CodeCache",
    "Entry",
    "FrameCallback",
    "FrameView",
    "RegionFunction",
    "add_entry",
    "disabled",
    "entries",
    "get_callback",
    "is_installed",
    "is_skipped",
    "optimize",
    "pause",
    "propagate",
    "region",
    "set_callback",
    "skip",
    "tie",
    "unskip",
]

Callback = Callable[[FrameView, int], Any]
"""What is asked about a frame that starts."""


@runtime_checkable
class CountsCompilations(Protocol):
    """A callback that wants to know of code that has been compiled too often."""

    def exhausted(self, code: CodeType, text: str) -> None:
        """``code`` will not be compiled any more; ``text`` says so."""


class JudgesVersions(Protocol):
    """Says which versions are for one call each, so that code with such ones is left alone."""

    def may_pause(self, code: CodeType) -> bool:
        """Whether calls of ``code`` may run as they are where no version fits."""

    def misfit(self, frame: FrameView, entry: Entry) -> Misfit | None:
        """Why ``entry`` does not fit a call."""

    def paused(self, code: CodeType, text: str) -> None:
        """``code`` is left alone for some calls; ``text`` says why."""


@runtime_checkable
class HasJudge(Protocol):
    """A callback whose code may be left alone for some calls."""

    def judge(self) -> JudgesVersions:
        """Asked where no version of some code fits a call."""


@runtime_checkable
class LeavesBlocks(Protocol):
    """A callback that knows of code which begins inside of blocks of the program."""

    def raising(self, code: CodeType, take: Callable[[], BaseException]) -> CodeType | None:
        """Code in place of ``code`` that raises what ``take`` gives where that begins; None where it is in no block."""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_eval_frame.after_fork)

_log = logging.getLogger("dynamo_capture")
_MARK = "__propagates_from_hook__"
_E = TypeVar("_E", bound=BaseException)


def propagate(error: _E) -> _E:
    """Mark an exception that the user shall see: ``raise propagate(UnsupportedProgramError(...))``. Of one with a
    ``code`` the text says where and why; it comes without the frames that led to it, which are logged."""
    setattr(error, _MARK, True)
    return error


class FrameCallback:
    """A callback whose mistakes never hurt the program, and whose compilations stay within a cache's limits."""

    __slots__ = ("__weakref__", "_callback", "cache")

    def __init__(self, callback: Callback, cache: CodeCache | None = None) -> None:
        self._callback = callback
        self.cache = CodeCache() if cache is None else cache
        self.cache.owner = id(self)
        # Entries know their callback by its address, so they must not outlive it. A ``__del__`` would be too late where
        # the callback dies in a cycle: the cache's weak references to code are cleared before it runs.
        weakref.finalize(self, _drop_entries, self.cache, sys.is_finalizing).atexit = False

    def __call__(self, frame: FrameView, entry_count: int) -> Any:
        try:
            return self._answer(frame, entry_count)
        except BaseException as error:
            if _is_shown_alone(error):
                raise error.with_traceback(None)  # noqa: B904
            raise

    def raising(self, code: CodeType, error: BaseException) -> Entry | None:
        """What raises ``error`` under the handlers that a frame of ``code`` begins under, for once; None: there are
        none. The hook asks where ``__call__`` has raised, be it by an interrupt as that began."""
        if not isinstance(self._callback, LeavesBlocks):
            return None
        replacement = self._callback.raising(code, _RaisedOnce(error))
        return None if replacement is None else Entry(replacement, None, error)

    def _answer(self, frame: FrameView, entry_count: int) -> Any:
        try:
            if not self.cache.may_compile(frame.code):
                return self._exhausted(frame.code)
            if self.cache.unused.knows(frame.code) and self._pauses(frame):
                return None
            begun = time.perf_counter()
            answer = self._callback(frame, entry_count)
            self.cache.unused.took(time.perf_counter() - begun)
            if isinstance(answer, Entry):
                _eval_frame.check_replacement(frame.code, answer.code)
                self.cache.admitting(frame.code)
                self.cache.unused.made(frame.code, answer, begun)
            elif answer is SKIP or answer is SKIP_RECURSIVELY:
                self.cache.skip(frame.code, recursively=answer is SKIP_RECURSIVELY)
            elif not (answer is None or answer is AGAIN or answer is AS_WRITTEN):
                raise TypeError(
                    "a frame callback answers Entry, SKIP, SKIP_RECURSIVELY, AS_WRITTEN, AGAIN or None, "
                    f"not {answer!r}"
                )
        except RecursionError:  # called near the limit: another call may find room
            self.cache.count(frame.code)
            return None
        except Exception as error:
            if _is_shown_alone(error):
                with suppress(Exception):  # logging may use what the program has replaced
                    _log.debug("%s: %s", _where(frame.code), error, exc_info=True)
                raise error from error.__cause__
            if getattr(error, _MARK, False):
                raise
            self.cache.skip(frame.code)
            with suppress(Exception):  # logging may use what the program has replaced
                _log.exception("%s runs uncompiled: compiling it failed", _where(frame.code))
            return SKIP
        return answer

    def _pauses(self, frame: FrameView) -> bool:
        """Whether a call runs as it is since versions of its code are for one call each."""
        if not isinstance(self._callback, HasJudge):
            return False
        judge = self._callback.judge()
        if not judge.may_pause(frame.code):
            return False
        why = self.cache.unused.paused(frame.code, functools.partial(judge.misfit, frame))
        if why:
            text = (
                f"{_where(frame.code)}: each of its last {FEW} versions was for one call ({why}); calls that none fits "
                f"run uncompiled now, and it is compiled again after {FIRST_PAUSE} of them, then ever more rarely"
            )
            _log.warning("%s", text)
            judge.paused(frame.code, text)
        if why is not None:
            self.cache.drop_dead(frame.code)
            pause(frame.code, self.cache.unused.at_once(frame.code), frame.owner)
        return why is not None

    def _exhausted(self, code: CodeType) -> Any:
        text = (
            f"{_where(code)} was compiled {self.cache.compilations(code)} times; "
            "from now on calls that no compiled version fits run uncompiled"
        )
        _log.warning("%s", text)
        if isinstance(self._callback, CountsCompilations):
            self._callback.exhausted(code, text)
        self.cache.skip(code)
        return SKIP


class _RaisedOnce:
    """Gives its exception, and keeps it no longer."""

    def __init__(self, error: BaseException) -> None:
        self._error: BaseException | None = error

    def __call__(self) -> BaseException:
        error, self._error = self._error, None
        assert error is not None
        return error


def _is_shown_alone(error: BaseException) -> bool:
    """Whether an exception's text names the user's line, so that our frames tell a user nothing."""
    return hasattr(error, _MARK) and hasattr(error, "code")


def _drop_entries(cache: CodeCache, is_finalizing: Callable[[], bool]) -> None:
    if not is_finalizing():  # then modules are half gone, and no frame comes here any more
        cache.release()


def _where(code: CodeType) -> str:
    return f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno})"


def _as_callback(callback: Callback | None) -> Callback | None:
    return callback if callback is None or isinstance(callback, FrameCallback) else FrameCallback(callback)


def optimize(function: Callable[..., Any], callback: Callback) -> RegionFunction:
    """``function`` as a callable that activates ``callback`` for each call; name, signature and binding are as before.

    Give several functions the same ``FrameCallback`` to let them share a cache and to nest at no cost.
    """
    wrapped = RegionFunction(function, _as_callback(callback))
    functools.update_wrapper(wrapped, function)
    return wrapped


def disabled(function: Callable[..., Any]) -> RegionFunction:
    """``function`` as a callable within which nothing is active in this thread."""
    wrapped = RegionFunction(function, None)
    functools.update_wrapper(wrapped, function)
    return wrapped


@contextmanager
def region(callback: Callback | None) -> Iterator[None]:
    """Activate ``callback`` (None: nothing) in this thread for a block; frames that have started already are not
    seen."""
    previous = set_callback(_as_callback(callback))
    try:
        yield
    finally:
        set_callback(previous)


def skip(code: CodeType, *, recursively: bool = False) -> None:
    """Run frames of ``code`` as they are, under every callback."""
    _eval_frame.set_skip(code, 2 if recursively else 1)


def unskip(code: CodeType) -> None:
    """Ask about frames of ``code`` again, but for callbacks that skip it themselves."""
    _eval_frame.set_skip(code, 0)


def is_skipped(code: CodeType, owner: int = 0) -> bool:
    """Whether frames of ``code`` run as they are unless an entry fits: under the callback with this id, 0: some."""
    return _eval_frame.get_skip(code, owner) != 0


def wait_for_entry(lock: threading.RLock, view: FrameView) -> Any:
    """Wait for the thread that compiles this code. The hook caches what it made right after the lock is free."""
    known = len(entries(view.code, view.owner))
    with lock:
        pass
    for _ in range(50):
        if len(entries(view.code, view.owner)) > known or is_skipped(view.code, view.owner):
            break
        time.sleep(0.0001)
    return AGAIN
