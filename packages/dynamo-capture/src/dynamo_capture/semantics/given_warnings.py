"""Warnings that Python gives while the translator computes: a program gives them in each of its calls, at its own line.

The filters of ``warnings`` belong to the whole process, and ``catch_warnings`` has all warnings come again that are
given once. Here a filter is put before them that answers for the thread alone that has put it there."""

from __future__ import annotations

import contextlib
import threading
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar, cast

from dynamo_capture.foundation.break_kinds import OUTSIDE_WORLD
from dynamo_capture.foundation.errors import GraphBreak

T = TypeVar("T")


class _OfOneThread(type):
    """A category to which all warnings of a thread belong."""

    thread: int

    def __subclasscheck__(cls, category: type) -> bool:
        return threading.get_ident() == cls.thread


class _Categories(threading.local):
    """The category of each thread."""

    def __init__(self) -> None:
        self.own = _OfOneThread("AllOfThisThread", (), {"thread": threading.get_ident()})


_CATEGORIES = _Categories()


def _answers_of_this_thread() -> list[Any]:
    return [entry for entry in warnings.filters if entry[2] is _CATEGORIES.own]


def answers_kept() -> Callable[[], None]:
    """What takes the filters away that this thread has put before the others since; it may be called twice."""
    count = len(_answers_of_this_thread())

    def put_back() -> None:
        answers = _answers_of_this_thread()
        for entry in answers[: len(answers) - count]:
            cast(Any, warnings.filters).remove(entry)

    return put_back


class _Answering:
    """A block in which ``action`` is what is done about warnings."""

    __slots__ = ("_entry", "_filters")
    action = "ignore"

    def __enter__(self) -> None:
        self._entry = (self.action, None, _CATEGORIES.own, None, 0)
        self._filters = cast(Any, warnings.filters)
        self._filters.insert(0, self._entry)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        with contextlib.suppress(ValueError):  # what ran has removed all filters
            self._filters.remove(self._entry)


class SilentWarnings(_Answering):
    """A block without warnings: what runs in it runs again where the program does it."""

    __slots__ = ()


def unwarned(compute: Callable[[], T]) -> T:
    """What ``compute`` gives, if it does not warn."""
    with NoWarnings():
        return compute()


class NoWarnings(_Answering):
    """A block that ends the graph where something in it warns: what is computed once would warn once."""

    __slots__ = ()
    action = "error"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, at)
        if isinstance(error, Warning):
            raise GraphBreak(OUTSIDE_WORLD, f"a {type(error).__name__} is given: {error}") from None
