"""Raising, catching, and ``with`` blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamo_capture.errors import GraphBreak, UserRaise
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values import NONE, Const, ObjectValue, Value, boolean

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame
    from dynamo_capture.prepared import Step


@opcode("PUSH_EXC_INFO")
def push_exc_info(frame: Frame, step: Step) -> None:
    raised = frame.stack.pop()
    frame.stack.extend((frame.exceptions[-1] if frame.exceptions else NONE, raised))
    frame.exceptions.append(raised)


@opcode("POP_EXCEPT")
def pop_except(frame: Frame, step: Step) -> None:
    frame.stack.pop()
    if frame.exceptions:
        frame.exceptions.pop()


@opcode("CHECK_EXC_MATCH")
def check_exc_match(frame: Frame, step: Step) -> None:
    wanted = frame.tx.constant(frame.stack.pop())
    raised = frame.stack[-1].python_type()
    frame.stack.append(boolean(frame.tx.fold(lambda: issubclass(raised, wanted))))


@opcode("RAISE_VARARGS")
def raise_varargs(frame: Frame, step: Step) -> None:
    if step.arg == 0:
        for holder in reversed(frame.tx.frames):
            if holder.exceptions:
                raise UserRaise(holder.exceptions[-1])
        raise frame.tx.raises(RuntimeError, "No active exception to reraise")
    cause = frame.stack.pop() if step.arg == 2 else None
    raised = _instance(frame, frame.stack.pop())
    if cause is not None and isinstance(raised, ObjectValue):
        raised.attrs["__cause__"] = _instance(frame, cause) if cause is not NONE else NONE
        raised.attrs["__suppress_context__"] = boolean(True)
    raise UserRaise(raised)


def _instance(frame: Frame, value: Value) -> Value:
    if isinstance(value, Const) and isinstance(value.value, type):
        value = value.call(frame.tx, [], {})
    if not issubclass(value.python_type(), BaseException):
        if isinstance(value, Const) and value.value is None:
            return value
        raise frame.tx.raises(TypeError, "exceptions must derive from BaseException")
    return value


@opcode("RERAISE")
def reraise(frame: Frame, step: Step) -> None:
    raised = frame.stack.pop()
    if frame.exceptions and frame.exceptions[-1] is raised:
        frame.exceptions.pop()
    raise UserRaise(raised)


@opcode("BEFORE_WITH")
def before_with(frame: Frame, step: Step) -> None:
    tx = frame.tx
    manager = frame.stack.pop()
    leave = tx.calls.bound_special(manager, "__exit__")
    entered = tx.calls.bound_special(manager, "__enter__").call(tx, [], {})
    frame.stack.extend((leave, entered))


@opcode("WITH_EXCEPT_START")
def with_except_start(frame: Frame, step: Step) -> None:
    """Stack: exit, lasti, previous exception, exception."""
    raised = frame.stack[-1]
    leave = frame.stack[-4]
    arguments: list[Value] = [Const(raised.python_type()), raised, NONE]
    frame.stack.append(leave.call(frame.tx, arguments, {}))


def unsupported(frame: Frame, step: Step) -> Any:
    """For opcodes that the table of reasons lists."""
    raise GraphBreak("CAP220", f"the instruction {step.opname} is not supported")
