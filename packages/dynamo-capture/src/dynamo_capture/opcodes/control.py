"""Instructions that jump, loop, return, raise and handle exceptions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dynamo_capture.bytecode.instruction import Instruction
from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values.base import NULL, Value
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import DictValue, IteratorValue, SequenceValue
from dynamo_capture.values.objects import ExceptionValue, ObjectValue

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame


@opcode("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT")
def _jump(frame: Frame, instruction: Instruction) -> None:
    frame.jump(instruction.target)


@opcode("POP_JUMP_IF_TRUE", "POP_JUMP_FORWARD_IF_TRUE", "POP_JUMP_BACKWARD_IF_TRUE")
def _if_true(frame: Frame, instruction: Instruction) -> None:
    if frame.stack[-1].truth(frame.tracer):
        frame.jump(instruction.target)
    frame.pop()


@opcode("POP_JUMP_IF_FALSE", "POP_JUMP_FORWARD_IF_FALSE", "POP_JUMP_BACKWARD_IF_FALSE")
def _if_false(frame: Frame, instruction: Instruction) -> None:
    if not frame.stack[-1].truth(frame.tracer):
        frame.jump(instruction.target)
    frame.pop()


def _is_none(frame: Frame, value: Value) -> bool:
    if isinstance(value, ObjectValue):
        value.guard_type(frame.tracer)
    return value.constant and value.as_python() is None


@opcode("POP_JUMP_IF_NONE", "POP_JUMP_FORWARD_IF_NONE", "POP_JUMP_BACKWARD_IF_NONE")
def _if_none(frame: Frame, instruction: Instruction) -> None:
    if _is_none(frame, frame.pop()):
        frame.jump(instruction.target)


@opcode("POP_JUMP_IF_NOT_NONE", "POP_JUMP_FORWARD_IF_NOT_NONE", "POP_JUMP_BACKWARD_IF_NOT_NONE")
def _if_not_none(frame: Frame, instruction: Instruction) -> None:
    if not _is_none(frame, frame.pop()):
        frame.jump(instruction.target)


@opcode("JUMP_IF_TRUE_OR_POP")
def _true_or_pop(frame: Frame, instruction: Instruction) -> None:
    if frame.stack[-1].truth(frame.tracer):
        frame.jump(instruction.target)
    else:
        frame.pop()


@opcode("JUMP_IF_FALSE_OR_POP")
def _false_or_pop(frame: Frame, instruction: Instruction) -> None:
    if not frame.stack[-1].truth(frame.tracer):
        frame.jump(instruction.target)
    else:
        frame.pop()


@opcode("GET_ITER")
def _get_iter(frame: Frame, instruction: Instruction) -> None:
    value = frame.pop()
    frame.push(value if isinstance(value, IteratorValue) else IteratorValue(value.iterate(frame.tracer)))


@opcode("FOR_ITER")
def _for_iter(frame: Frame, instruction: Instruction) -> None:
    iterator = frame.stack[-1]
    if not isinstance(iterator, IteratorValue):
        raise GraphBreak("value", f"iteration over {iterator.describe()}")
    item = next(iterator.iterator, None)
    if item is not None:
        frame.push(item)
        return
    target = instruction.target
    if sys.version_info >= (3, 12):
        # the loop's END_FOR (and, from 3.13, POP_TOP) expects what the interpreter leaves: here it is popped at once
        frame.pop()
        frame.jump(target)
        frame.pc += 1 if sys.version_info < (3, 13) else 2
    else:
        frame.pop()
        frame.jump(target)


@opcode("RETURN_VALUE")
def _return(frame: Frame, instruction: Instruction) -> None:
    frame.result = frame.pop()
    frame.finished = True


@opcode("RETURN_CONST", since=(3, 12))
def _return_const(frame: Frame, instruction: Instruction) -> None:
    frame.result = frame.tracer.of_python(instruction.argval)
    frame.finished = True


@opcode("RETURN_GENERATOR")
def _return_generator(frame: Frame, instruction: Instruction) -> None:
    frame.push(ConstantValue(None))


@opcode("YIELD_VALUE")
def _yield(frame: Frame, instruction: Instruction) -> None:
    frame.yielded = frame.pop()


@opcode("RAISE_VARARGS")
def _raise(frame: Frame, instruction: Instruction) -> None:
    if instruction.arg == 0:
        if not isinstance(frame.tracer.handled, ExceptionValue):
            raise GraphBreak("exception", "a bare raise")
        raise Raised(frame.tracer.handled)
    cause = frame.pop() if instruction.arg == 2 else None
    raised = frame.pop()
    if isinstance(raised, ObjectValue) and isinstance(raised.obj, type):
        raised = raised.call(frame.tracer, [], {})
    if not isinstance(raised, ExceptionValue):
        raise GraphBreak("exception", f"{raised.describe()} is raised")
    if cause is not None:
        is_class = isinstance(cause, ObjectValue) and isinstance(cause.obj, type)
        raised.attributes["__cause__"] = cause.call(frame.tracer, [], {}) if is_class else cause
    raise Raised(raised)


@opcode("RERAISE")
def _reraise(frame: Frame, instruction: Instruction) -> None:
    raised = frame.pop()
    if instruction.arg:
        del frame.stack[-instruction.arg :]
    if not isinstance(raised, ExceptionValue):
        raise GraphBreak("exception", f"{raised.describe()} is raised again")
    raise Raised(raised)


@opcode("PUSH_EXC_INFO")
def _push_exc_info(frame: Frame, instruction: Instruction) -> None:
    raised = frame.pop()
    frame.push(frame.tracer.handled or ConstantValue(None))
    frame.push(raised)
    frame.tracer.handled = raised


@opcode("POP_EXCEPT")
def _pop_except(frame: Frame, instruction: Instruction) -> None:
    before = frame.pop()
    frame.tracer.handled = None if before.constant else before


@opcode("CHECK_EXC_MATCH")
def _check_match(frame: Frame, instruction: Instruction) -> None:
    wanted, raised = frame.pop(), frame.stack[-1]
    classes = (
        tuple(item.as_python() for item in wanted.items)
        if isinstance(wanted, SequenceValue)
        else wanted.as_python()
    )
    frame.push(ConstantValue(issubclass(raised.python_type(), classes)))


@opcode("BEFORE_WITH")
def _before_with(frame: Frame, instruction: Instruction) -> None:
    manager = frame.pop()
    tracer = frame.tracer
    leave = tracer.special(manager, "__exit__")
    entered = tracer.call_special(manager, "__enter__", [])
    frame.push(leave)
    frame.push(entered)


@opcode("WITH_EXCEPT_START")
def _with_except(frame: Frame, instruction: Instruction) -> None:
    raised, leave = frame.stack[-1], frame.stack[-4]
    tracer = frame.tracer
    cls = tracer.wrap(raised.python_type(), None)
    frame.push(leave.call(tracer, [cls, raised, ConstantValue(None)], {}))


@opcode("GET_LEN")
def _get_len(frame: Frame, instruction: Instruction) -> None:
    frame.push(frame.stack[-1].length(frame.tracer))


@opcode("MATCH_SEQUENCE")
def _match_sequence(frame: Frame, instruction: Instruction) -> None:
    frame.push(ConstantValue(isinstance(frame.stack[-1], SequenceValue)))


@opcode("MATCH_MAPPING")
def _match_mapping(frame: Frame, instruction: Instruction) -> None:
    frame.push(ConstantValue(isinstance(frame.stack[-1], DictValue)))


@opcode("MATCH_KEYS")
def _match_keys(frame: Frame, instruction: Instruction) -> None:
    keys, subject = frame.stack[-1], frame.stack[-2]
    names = [frame.tracer.key_of(key) for key in keys.iterate(frame.tracer)]
    if isinstance(subject, DictValue) and all(name in subject.items for name in names):
        frame.push(SequenceValue([subject.items[name] for name in names], tuple))
    else:
        frame.push(ConstantValue(None))


@opcode("MATCH_CLASS")
def _match_class(frame: Frame, instruction: Instruction) -> None:
    names, cls, subject = frame.pop(), frame.pop(), frame.pop()
    tracer = frame.tracer
    wanted = cls.as_python()
    if not issubclass(subject.python_type(), wanted):
        frame.push(ConstantValue(None))
        return
    keywords = [name.as_python() for name in names.iterate(tracer)]
    positional = list(getattr(wanted, "__match_args__", ()))[: instruction.arg]
    if len(positional) < instruction.arg:
        if wanted in (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple) and instruction.arg == 1:
            frame.push(SequenceValue([subject], tuple))
            return
        raise GraphBreak("opcode", "a class pattern with more positions than __match_args__")
    try:
        found = [tracer.getattr(subject, name) for name in (*positional, *keywords)]
    except Raised:
        frame.push(ConstantValue(None))
        return
    frame.push(SequenceValue(found, tuple))


__all__ = ["NULL"]
