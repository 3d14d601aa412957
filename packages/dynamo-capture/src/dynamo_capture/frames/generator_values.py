"""Generators that the trace runs itself: frames that are suspended between their items."""

from __future__ import annotations

import sys
import types
import warnings

from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.frames import tracebacks
from dynamo_capture.frames.frame import Frame, Yield
from dynamo_capture.frames.generator_exits import passes
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import (
    Const,
    FunctionValue,
    IteratorStop,
    IteratorValue,
    ObjectIterator,
    Value,
)
from dynamo_capture.values.base import Context

_OLD_THROW = (
    "the (type, exc, tb) signature of throw() is deprecated, use the single-arg signature instead."
    if sys.version_info >= (3, 12)
    else None
)
"""The warning about ``throw`` with a class and a value."""


_NAMES = ("__name__", "__qualname__")


class GeneratorValue(IteratorValue):
    """A generator: a frame that is suspended between its items."""

    __slots__ = ("finished", "frame", "function", "named", "remade", "running", "started")
    python_class = types.GeneratorType

    def __init__(self, frame: Frame, function: Value) -> None:
        self.frame = frame
        self.function = function
        given = function.attrs if isinstance(function, FunctionValue) else {}
        self.named = {name: given[name] for name in _NAMES if name in given}
        """Names that the function had been given when it made the generator."""
        self.started = False
        self.finished = False
        self.running = False
        self.remade: list[Value] | None = None

    def name(self, tx: Context, name: str) -> str:
        """``__name__`` or ``__qualname__``: those of the function, when it was called."""
        found = self.named.get(name)
        return str(tx.constant(tx.attribute(self.function, name) if found is None else found))

    @property
    def ends_by_itself(self) -> bool:
        """Whether nothing of the program runs when the suspended generator is dropped."""
        return self._ends_by_itself(frozenset())

    def _ends_by_itself(self, above: frozenset[int]) -> bool:
        """``above``: the generators that hold this one."""
        if not self.started or self.finished or id(self) in above:
            return True
        frame = self.frame
        if not passes(frame.steps, frame.steps[frame.next - 1].handler, frame.globals.real):
            return False
        held = (*frame.stack, *frame.variables.values())  # the generator of a ``yield from``, say
        return all(one._ends_by_itself(above | {id(self)}) for one in held if isinstance(one, GeneratorValue))

    def next(self, tx: Context) -> Value:
        return self.send(tx, Const(None))

    def send(self, tx: Context, value: Value) -> Value:
        """``generator.send(value)``; IteratorStop carries the returned value."""
        if self.running:
            raise tx.raises(ValueError, "generator already executing")
        if self.finished:
            raise IteratorStop
        if not (self.started or value.stands_for(None)):
            raise tx.raises(TypeError, "can't send non-None value to a just-started generator")
        self.frame.stack.append(value)
        self.started = True
        return self._resume(tx)

    def _resume(self, tx: Context) -> Value:
        self.running = True
        try:
            done = self.frame.run()
        except UserRaise as raised:
            raise self._ended_by(tx, raised) from None
        finally:
            self.running = False
        if isinstance(done, Yield):
            return done.value
        self.finished = True
        raise IteratorStop(done.value)

    def _ended_by(self, tx: Context, raised: UserRaise) -> UserRaise:
        """What comes out of the generator of an exception that it does not catch (PEP 479).

        From 3.12 its own bytecode sees to that, and so not to what is thrown before it has started.
        """
        self.finished = True
        if sys.version_info >= (3, 12) or not issubclass(raised.value.python_type(), StopIteration):
            return raised
        made = tx.raises(RuntimeError, "generator raised StopIteration")
        made.value.attrs |= {"__cause__": raised.value, "__context__": raised.value}
        return made

    def _delegation(self) -> tuple[Step, Value] | None:
        """The SEND at which a ``yield from`` is suspended, and what it delegates to."""
        frame = self.frame
        send = frame.steps[frame.next - 2] if frame.next > 1 else None
        return (send, frame.stack[-1]) if send is not None and send.opname == "SEND" else None

    def throw(self, tx: Context, exception: Value) -> Value:
        """``generator.throw(exception)``; what it delegates to gets the exception first."""
        if self.finished:
            raise UserRaise(exception)
        if not self.started:
            tracebacks.note(self.frame, self.frame.steps[self.frame.next - 1], exception)
            raise self._ended_by(tx, UserRaise(exception))
        if self.running:
            raise tx.raises(ValueError, "generator already executing")
        delegation = self._delegation()
        if delegation is not None:
            self.running = True
            try:
                return _throw_into(tx, delegation[1], exception)
            except IteratorStop as stop:
                self.frame.end_delegation(
                    delegation[0], stop.value if stop.value is not None else Const(None)
                )
                exception_here = None
            except UserRaise as raised:
                exception_here = raised.value
            finally:
                self.running = False
            if exception_here is None:
                return self._resume(tx)
            exception = exception_here
        self._raise_here(tx, exception)
        return self._resume(tx)

    def _raise_here(self, tx: Context, exception: Value) -> None:
        """As if the ``yield`` raised."""
        frame = self.frame
        step = frame.steps[frame.next - 1]
        frame.line = step.line
        frame.stack.append(Const(None))
        if frame.exceptions:  # what the generator handles itself: not what its caller does
            tx.put_in_context(exception, frame.exceptions[-1])
        try:
            frame.unwind(step, UserRaise(exception))
        except UserRaise as raised:
            raise self._ended_by(tx, raised) from None

    def close(self, tx: Context) -> Value:
        """``generator.close()``; from 3.13 on it gives what the generator returned."""
        if self.finished or not self.started:
            self.finished = True
            return Const(None)
        try:
            self.throw(tx, tx.raises(GeneratorExit).value)
        except IteratorStop as stop:
            return stop.value if stop.value is not None and sys.version_info >= (3, 13) else Const(None)
        except UserRaise as raised:
            if issubclass(raised.value.python_type(), GeneratorExit):
                return Const(None)
            raise
        raise tx.raises(RuntimeError, "generator ignored GeneratorExit")

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        try:
            match name, args:
                case "send", [value]:
                    return self.send(tx, value)
                case "throw", [_, *more]:
                    if more and _OLD_THROW is not None:
                        tx.calls.call_known(
                            Const(warnings.warn), [Const(_OLD_THROW), Const(DeprecationWarning)], {}
                        )
                    return self.throw(tx, _thrown(tx, args))
                case "close", []:
                    return self.close(tx)
        except IteratorStop as stop:
            raise stop.raised(tx) from None
        return super().call_method(tx, name, args, kwargs)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name in _NAMES:
            return Const(self.name(tx, name))
        facts = {
            "gi_code": self.frame.code,
            "gi_running": self.running,
            "gi_suspended": self.started and not (self.running or self.finished),
        }
        return Const(facts[name]) if name in facts else None


def _throw_into(tx: Context, receiver: Value, exception: Value) -> Value:
    """Throw into what a ``yield from`` waits for: its next item, IteratorStop at its end, or UserRaise."""
    if issubclass(exception.python_type(), GeneratorExit):
        if isinstance(receiver, GeneratorValue):
            receiver.close(tx)
        elif isinstance(receiver, ObjectIterator) and tx.attributes.has(receiver.value, "close"):
            receiver.value.call_method(tx, "close", [], {})
        raise UserRaise(exception)
    if isinstance(receiver, GeneratorValue):
        return receiver.throw(tx, exception)
    if not (isinstance(receiver, ObjectIterator) and tx.attributes.has(receiver.value, "throw")):
        raise UserRaise(exception)
    try:
        return receiver.value.call_method(tx, "throw", [exception], {})
    except UserRaise as raised:
        if issubclass(raised.value.python_type(), StopIteration):
            raise IteratorStop(raised.value.get_attr(tx, "value")) from None
        raise


def _thrown(tx: Context, args: list[Value]) -> Value:
    """The exception that ``throw(exception)`` or ``throw(class, value, traceback)`` means."""
    first = args[0]
    if (cls := first.known_class()) is not None:
        given = args[1] if len(args) > 1 else Const(None)
        if issubclass(given.python_type(), cls):
            return given
        empty = given.stands_for(None)
        parts = given.unpack(tx) if issubclass(given.python_type(), tuple) else [] if empty else [given]
        first = first.call(tx, parts, {})
    if not issubclass(first.python_type(), BaseException):
        name = first.python_type().__name__
        text = f"exceptions must be classes or instances deriving from BaseException, not {name}"
        raise tx.raises(TypeError, text)
    return first
