"""Warnings and log records: given after the graph has run, in order, as if from the line that gives them."""

from __future__ import annotations

import _warnings
import logging
import sys
import warnings
from collections.abc import Callable
from types import FrameType
from typing import Any

from dynamo_capture.foundation.break_kinds import OUTSIDE_WORLD
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.frames.frame import Frame
from dynamo_capture.guard_kinds.warning_filters import warning_raises
from dynamo_capture.semantics.registry import handles, pure
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import NONE, Const, ObjectValue, Value
from dynamo_capture.values.base import Context

_OF_LOGGING = logging.info.__code__.co_filename
"""Frames of this file are not where a record comes from."""

_NOWHERE = ("<sys>", 0) if sys.version_info >= (3, 13) else ("sys", 1)
"""The place of a warning about more callers than there are."""


@handles(warnings.warn)
def warn(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Issued after the graph has run; where a filter makes an exception of it, raised at once."""
    message = args[0] if args else kwargs["message"]
    category: Value = args[1] if len(args) > 1 else kwargs.get("category", NONE)
    level = args[2] if len(args) > 2 else kwargs.get("stacklevel", Const(1))
    if isinstance(message, ObjectValue) or not tx.is_constant(message):
        raise GraphBreak(OUTSIDE_WORLD, "a warning object is issued")
    cls = tx.constant(category) or UserWarning
    text, depth = tx.constant(message), max(tx.integer(level), 1)
    above = depth - len(tx.frames)
    frame = tx.frames[-min(depth, len(tx.frames))]
    given = asked_about(tx, text, cls, frame)
    if given is None:
        raise tx.raises(cls, text)
    tx.outside.warns(tx.wrapping)
    if above > 0:
        tx.effects.deferred(_WarningAbove(text, cls, _Root(tx), above), [], {}, is_note=True)
        return NONE
    tx.effects.deferred(given, [], {}, is_note=True)
    return NONE


def asked_about(tx: Context, text: str, cls: type[Warning], frame: Frame) -> Callable[[], None] | None:
    """What issues a warning of a frame's line; None where a filter makes an exception of it, which is guarded."""
    module, line = frame.globals.real.get("__name__"), frame.line or 0
    if _filters_are_changed(tx):
        raise GraphBreak(
            OUTSIDE_WORLD, "a warning is issued under filters that the captured code has changed"
        )
    question = warning_raises(text, cls, module, line)
    tx.guards.add(question)
    if question.expected:
        return None
    registry = frame.globals.real.setdefault("__warningregistry__", {})
    return _Warning((text, cls, frame.code.co_filename, line, module, registry))


def _filters_are_changed(tx: Context) -> bool:
    """Whether the trace has changed what decides on warnings, and not put it back."""
    scope = tx.inliner.scope(vars(warnings))
    filters = tx.wrapping.value_of(warnings.filters)
    if filters is not None and tx.effects.has_changed(filters):
        return True
    return any(not _is_own(tx, scope.real.get(name), value) for name, value in scope.written.items())


def _is_own(tx: Context, real: Any, value: Value | None) -> bool:
    """Whether a value is an object of before the trace, as it was."""
    if isinstance(value, Const):
        return value.value is real
    return value is not None and getattr(value, "real", None) is real and not tx.effects.has_changed(value)


@handles(_warnings._filters_mutated)  # type: ignore[attr-defined]
def filters_mutated(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """What ``warnings`` remembers of the filters is out of date: said when they have changed."""
    tx.effects.deferred(_warnings._filters_mutated, [], {}, is_note=True)  # type: ignore[attr-defined]
    return NONE


class _Warning:
    """A warning ready to be issued."""

    def __init__(self, arguments: tuple[Any, ...]) -> None:
        self._arguments = arguments

    def __call__(self) -> None:
        warnings.warn_explicit(*self._arguments)


class _Root:
    """The frame that is compiled, seen from what its replacement calls."""

    def __init__(self, tx: Context) -> None:
        frame = tx.frames[0]
        self._goes_on = tx.resumes.is_resume_function(frame.code)
        self._code = frame.code

    def caller(self, above: int) -> FrameType | None:
        """The running frame so many above; None if there are not so many. A function that goes on after a graph
        break is called by what began it, under the same name."""
        found: FrameType | None = sys._getframe(2)
        while found is not None and self._goes_on and self._is_part(found.f_back):
            found = found.f_back
        while above and found is not None:
            found, above = found.f_back, above - 1
        return found

    def _is_part(self, frame: FrameType | None) -> bool:
        if frame is None:
            return False
        code = frame.f_code
        return (code.co_filename, code.co_qualname) == (self._code.co_filename, self._code.co_qualname)


class _WarningAbove:
    """A warning that belongs to a line of a caller of the compiled frame."""

    def __init__(self, text: Any, category: Any, root: _Root, above: int) -> None:
        self._text, self._category = text, category
        self._root, self._above = root, above

    def __call__(self) -> None:
        frame = self._root.caller(self._above)
        names = vars(sys) if frame is None else frame.f_globals
        registry = names.setdefault("__warningregistry__", {})
        file, line = _NOWHERE if frame is None else (frame.f_code.co_filename, frame.f_lineno)
        warnings.warn_explicit(self._text, self._category, file, line, names.get("__name__"), registry)


class _Record:
    """A log record ready to be given."""

    def __init__(self, logger: logging.Logger, level: int, text: Any, frame: Frame) -> None:
        self._logger, self._level, self._text = logger, level, text
        self._where = (frame.code.co_filename, frame.line or 0)
        self._function = frame.code.co_name

    def __call__(self, *args: Any, extra: Any = None) -> None:
        logger = self._logger
        if logger.isEnabledFor(self._level):
            given: Any = (*self._where, self._text, args, None, self._function, extra, None)
            logger.handle(logger.makeRecord(logger.name, self._level, *given))


def _log(tx: Context, logger: Any, level: int, args: list[Value], kwargs: dict[str, Value]) -> Value:
    known = all(tx.is_constant(value) for value in (*args, *kwargs.values()))
    if not isinstance(logger, Const) or not known or not args:
        raise GraphBreak(OUTSIDE_WORLD, "a value that is not known while tracing is logged")
    if any(name in kwargs and tx.constant(kwargs[name]) for name in ("exc_info", "stack_info")):
        raise GraphBreak(OUTSIDE_WORLD, "the exception that is handled, or the stack, is logged")
    frames = [frame for frame in tx.frames if frame.code.co_filename != _OF_LOGGING]
    depth = max(tx.integer(kwargs.get("stacklevel", Const(1))), 1)
    if depth > len(frames):
        raise GraphBreak(OUTSIDE_WORLD, "a line of a caller is logged")
    tx.outside.logs(tx.wrapping, logger.value)
    record = _Record(logger.value, level, tx.constant(args[0]), frames[-depth])
    extra = {"extra": kwargs["extra"]} if "extra" in kwargs else {}
    tx.effects.deferred(record, args[1:], extra, is_note=True)
    return NONE


def _handler(level: int, **more: Any) -> Callable[..., Value]:
    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        options = {name: Const(value) for name, value in more.items()}
        return _log(tx, args[0], level, args[1:], options | kwargs)

    return handle


handles(logging.Logger.debug)(_handler(logging.DEBUG))
handles(logging.Logger.info)(_handler(logging.INFO))
handles(logging.Logger.warning)(_handler(logging.WARNING))
handles(logging.Logger.error)(_handler(logging.ERROR))
handles(logging.Logger.critical)(_handler(logging.CRITICAL))
handles(logging.Logger.exception)(_handler(logging.ERROR, exc_info=True))


@handles(logging.Logger.log)
def log(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A record of a level that is given."""
    level = tx.constant(args[1]) if len(args) > 1 else None
    if type(level) is not int:
        raise GraphBreak(OUTSIDE_WORLD, "a record of an unknown level is logged")
    return _log(tx, args[0], level, args[2:], kwargs)


def _asked(function: Callable[..., Any]) -> Callable[..., Value]:
    """A question to a logger, whose answer depends on its level, on those above it and on what is disabled: a guard
    asks again. What the trace has changed there, it has not been told of yet."""

    def handle(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        logger, *given = (tx.constant(arg) for arg in args)
        if kwargs or not isinstance(logger, logging.Logger) or tx.effects.log:
            raise GraphBreak(OUTSIDE_WORLD, f"{function.__qualname__} is asked after effects")
        source = CallSource(known_object(function), (known_object(logger), *given), ())
        return tx.wrap(tx.fold(lambda: function(logger, *given)), source)

    return handle


for _question in (logging.Logger.isEnabledFor, logging.Logger.getEffectiveLevel):
    handles(_question)(_asked(_question))
pure(logging.getLogger)
