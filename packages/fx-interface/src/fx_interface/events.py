"""What compilers say while they compile: one stream of events, for whoever listens.

    with span("decompose", graph=given) as event:   # a stretch of time; what is said inside of it has it as parent
        event.note(result=made)
    emit("cache", what="program", hit=True)         # a moment

    with listening(receive): compiled(x)            # receive(event), in the thread that compiles

An event is delivered once, when it is over: the inner ones before the outer. docs/observing.md lists the kinds and
their facts. Facts are the compiler's own objects, as they are at that moment; who wants them later makes text or data
of them. While nobody listens, ``span`` and ``emit`` look at one tuple and return.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import threading
import time
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any, TypeAlias

_log = logging.getLogger("fx_interface")
_now = time.perf_counter_ns


class Event:
    """One thing that happened. ``start`` and ``end`` are nanoseconds of ``time.perf_counter_ns``, equal for a moment;
    ``number`` is unique in the process; ``raised`` is the class of the exception that ended it, if one did."""

    __slots__ = ("end", "facts", "kind", "number", "parent", "raised", "start", "thread")

    def __init__(self, kind: str, parent: Event | None, facts: dict[str, Any]) -> None:
        self.kind = kind
        self.number = next(_NUMBERS)
        self.parent = parent
        self.facts = facts
        self.thread = threading.get_ident()
        self.start = self.end = _now()
        self.raised: type[BaseException] | None = None

    def note(self, **facts: Any) -> None:
        """More facts, known only now."""
        self.facts.update(facts)

    def within(self, kind: str) -> Event | None:
        """The innermost event of that kind that this one is a part of."""
        outer = self.parent
        while outer is not None and outer.kind != kind:
            outer = outer.parent
        return outer

    def __enter__(self) -> Event:
        _OPEN.innermost = self
        return self

    def __exit__(
        self,
        raised: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _OPEN.innermost = self.parent
        self.end = _now()
        self.raised = raised
        _deliver(self)


class _Unheard:
    """What ``span`` gives while nobody listens."""

    __slots__ = ()

    def note(self, **facts: Any) -> None:
        """Nothing."""

    def __enter__(self) -> _Unheard:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _OpenEvents(threading.local):
    """The innermost event of this thread that is not over."""

    innermost: Event | None = None


Listener: TypeAlias = Callable[[Event], None]


class _Listeners:
    """Who listens, in all threads. The tuple is replaced, never changed."""

    def __init__(self) -> None:
        self.all: tuple[Listener, ...] = ()
        self._lock = threading.Lock()

    def add(self, listener: Listener) -> None:
        with self._lock:
            self.all = (*self.all, listener)

    def remove(self, listener: Listener) -> None:
        with self._lock:
            self.all = tuple(one for one in self.all if one is not listener)


_NUMBERS = itertools.count(1)
_OPEN = _OpenEvents()
_LISTENERS = _Listeners()
_UNHEARD = _Unheard()


def is_heard() -> bool:
    """Whether anybody listens: for facts that cost something to find."""
    return bool(_LISTENERS.all)


def span(kind: str, **facts: Any) -> Event | _Unheard:
    """A context manager for a stretch of time; ``note`` adds what is known only inside of it."""
    if not _LISTENERS.all:
        return _UNHEARD
    return Event(kind, _OPEN.innermost, facts)


def emit(kind: str, **facts: Any) -> None:
    """Say that something has happened now."""
    if _LISTENERS.all:
        _deliver(Event(kind, _OPEN.innermost, facts))


@contextlib.contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """While the block runs, ``listener`` is called with each event of every thread. What it raises does not reach the
    compiler: it is logged, and the listener hears no more."""
    _LISTENERS.add(listener)
    try:
        yield
    finally:
        _LISTENERS.remove(listener)


def _deliver(event: Event) -> None:
    for listener in _LISTENERS.all:
        try:
            listener(event)
        except Exception:
            _LISTENERS.remove(listener)
            with contextlib.suppress(Exception):  # logging may use what the program has replaced
                _log.exception("a listener to compile events failed at %r, and hears no more", event.kind)
