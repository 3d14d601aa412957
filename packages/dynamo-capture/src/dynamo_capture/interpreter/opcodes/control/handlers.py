"""Raising, catching, and ``with`` blocks."""

from __future__ import annotations

from dynamo_capture.foundation.class_members import has_member, is_subtype
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.frames import tracebacks
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.values import NONE, Const, ObjectValue, Value, boolean


@opcode("PUSH_EXC_INFO")
def push_exc_info(frame: Frame, step: Step) -> None:
    raised = frame.stack.pop()
    frame.stack.extend((frame.exceptions[-1] if frame.exceptions else NONE, raised))
    frame.exceptions.append(raised)
    frame.handling.append(frame.caught)


@opcode("POP_EXCEPT")
def pop_except(frame: Frame, step: Step) -> None:
    frame.stack.pop()
    if frame.exceptions:
        frame.exceptions.pop()
        frame.handling.pop()


@opcode("CHECK_EXC_MATCH")
def check_exc_match(frame: Frame, step: Step) -> None:
    given = frame.tx.constant(frame.stack.pop())
    wanted = given if isinstance(given, tuple) else (given,)
    raised = frame.stack[-1].python_type()
    for cls in wanted:
        if not (isinstance(cls, type) and is_subtype(cls, BaseException)):
            text = "catching classes that do not inherit from BaseException is not allowed"
            raise frame.tx.raises(TypeError, text)
    frame.stack.append(boolean(any(is_subtype(raised, cls) for cls in wanted)))


@opcode("RAISE_VARARGS")
def raise_varargs(frame: Frame, step: Step) -> None:
    if step.arg == 0:
        handled = frame.tx.handled()
        if handled is not None:
            raise UserRaise(handled)
        raise frame.tx.raises(RuntimeError, "No active exception to reraise")
    cause = frame.stack.pop() if step.arg == 2 else None
    raised = _instance(frame, frame.stack.pop(), "exceptions must derive from BaseException")
    if cause is not None and isinstance(raised, ObjectValue):
        if not cause.stands_for(None):
            cause = _instance(frame, cause, "exception causes must derive from BaseException")
        raised.attrs["__cause__"] = cause
        raised.attrs["__suppress_context__"] = boolean(True)
    frame.tx.put_in_context(raised)
    raise UserRaise(raised)


def _instance(frame: Frame, value: Value, otherwise: str) -> Value:
    """The exception that a class or an instance stands for."""
    cls = value.known_class()
    if cls is not None and issubclass(cls, BaseException):
        value = value.call(frame.tx, [], {})
        if not issubclass(value.python_type(), BaseException):
            text = f"calling {cls!r} should have returned an instance of BaseException, not {value.python_type()!r}"
            raise frame.tx.raises(TypeError, text)
    if not issubclass(value.python_type(), BaseException):
        raise frame.tx.raises(TypeError, otherwise)
    return value


@opcode("RERAISE")
def reraise(frame: Frame, step: Step) -> None:
    raise UserRaise(frame.stack.pop())


@opcode("BEFORE_WITH")
def before_with(frame: Frame, step: Step) -> None:
    tx = frame.tx
    manager = frame.stack.pop()
    enter = _special(frame, manager, "__enter__", "")
    leave = _special(frame, manager, "__exit__", " (missed __exit__ method)")
    frame.operands = (manager,)
    frame.stack.append(leave)
    frame.stack.append(enter.call(tx, [], {}))


def _special(frame: Frame, manager: Value, name: str, missed: str) -> Value:
    """A method of a context manager, looked up on its class."""
    kind = manager.python_type()
    if not has_member(kind, name):
        text = (
            f"{manager.class_name(frame.tx)!r} object does not support the context manager protocol{missed}"
        )
        raise frame.tx.raises(TypeError, text)
    return frame.tx.calls.bound_special(manager, name)


@opcode("WITH_EXCEPT_START")
def with_except_start(frame: Frame, step: Step) -> None:
    """Stack: exit, lasti, previous exception, exception."""
    raised = frame.stack[-1]
    leave = frame.stack[-4]
    arguments: list[Value] = [Const(raised.python_type()), raised, tracebacks.of(frame.tx, raised)]
    frame.stack.append(leave.call(frame.tx, arguments, {}))
