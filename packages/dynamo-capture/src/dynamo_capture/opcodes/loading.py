"""Loading, storing and deleting variables, constants, globals, attributes and items; moving the stack."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from dynamo_capture.opcodes.registry import opcode
from dynamo_capture.values import NULL, CellValue, Const, Lazy, MethodValue, NullValue, Value

if TYPE_CHECKING:
    from dynamo_capture.frame import Frame
    from dynamo_capture.prepared import Step


@opcode("NOP", "RESUME", "PRECALL", "COPY_FREE_VARS", "NOT_TAKEN")
def nop(frame: Frame, step: Step) -> None:
    """Nothing: free variables are bound when the frame is made."""


@opcode("LOAD_CONST")
def load_const(frame: Frame, step: Step) -> None:
    frame.stack.append(step.argval)


@opcode("LOAD_FAST")
def load_fast(frame: Frame, step: Step) -> None:
    found = frame.variables.get(step.argval)
    if found is None:
        raise frame.tx.raises(
            UnboundLocalError,
            f"cannot access local variable {step.argval!r} where it is not associated with a value",
        )
    frame.stack.append(frame.tx.force(found) if type(found) is Lazy else found)


@opcode("LOAD_FAST_CHECK", since=(3, 12))
def load_fast_check(frame: Frame, step: Step) -> None:
    load_fast(frame, step)


@opcode("LOAD_FAST_AND_CLEAR", since=(3, 12))
def load_fast_and_clear(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.variables.pop(step.argval, NULL))


@opcode("STORE_FAST", "STORE_FAST_MAYBE_NULL")
def store_fast(frame: Frame, step: Step) -> None:
    value = frame.stack.pop()
    if type(value) is NullValue:
        frame.variables.pop(step.argval, None)
    else:
        frame.variables[step.argval] = value


@opcode("DELETE_FAST")
def delete_fast(frame: Frame, step: Step) -> None:
    if frame.variables.pop(step.argval, None) is None:
        raise frame.tx.raises(
            UnboundLocalError,
            f"cannot access local variable {step.argval!r} where it is not associated with a value",
        )


@opcode("LOAD_FAST_LOAD_FAST", since=(3, 13))
def load_fast_load_fast(frame: Frame, step: Step) -> None:
    force = frame.tx.force
    frame.stack.extend((force(frame.variables[step.argval[0]]), force(frame.variables[step.argval[1]])))


@opcode("STORE_FAST_LOAD_FAST", since=(3, 13))
def store_fast_load_fast(frame: Frame, step: Step) -> None:
    frame.variables[step.argval[0]] = frame.stack.pop()
    frame.stack.append(frame.tx.force(frame.variables[step.argval[1]]))


@opcode("STORE_FAST_STORE_FAST", since=(3, 13))
def store_fast_store_fast(frame: Frame, step: Step) -> None:
    frame.variables[step.argval[0]] = frame.stack.pop()
    frame.variables[step.argval[1]] = frame.stack.pop()


@opcode("MAKE_CELL")
def make_cell(frame: Frame, step: Step) -> None:
    frame.variables[step.argval] = CellValue(frame.variables.get(step.argval))


@opcode("LOAD_CLOSURE")
def load_closure(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.variables[step.argval])


@opcode("LOAD_DEREF")
def load_deref(frame: Frame, step: Step) -> None:
    cell = frame.cell(step.argval)
    if cell.content is None:
        raise frame.tx.raises(
            NameError,
            f"cannot access free variable {step.argval!r} where it is not associated with a value in enclosing scope",
        )
    frame.stack.append(frame.tx.force(cell.content))


@opcode("STORE_DEREF")
def store_deref(frame: Frame, step: Step) -> None:
    cell = frame.cell(step.argval)
    cell.content = frame.stack.pop()
    frame.tx.effects.cell(cell)


@opcode("DELETE_DEREF")
def delete_deref(frame: Frame, step: Step) -> None:
    cell = frame.cell(step.argval)
    if cell.content is None:
        raise frame.tx.raises(NameError, f"name {step.argval!r} is not defined")
    cell.content = None
    frame.tx.effects.cell(cell)


@opcode("LOAD_GLOBAL")
def load_global(frame: Frame, step: Step) -> None:
    value = frame.globals.known.get(step.argval)
    if value is None:
        value = frame.globals.read(step.argval)
    if step.arg & 1:
        if sys.version_info >= (3, 13):
            frame.stack.extend((value, NULL))
        else:
            frame.stack.extend((NULL, value))
    else:
        frame.stack.append(value)


@opcode("STORE_GLOBAL")
def store_global(frame: Frame, step: Step) -> None:
    frame.globals.write(step.argval, frame.stack.pop())


@opcode("DELETE_GLOBAL")
def delete_global(frame: Frame, step: Step) -> None:
    frame.globals.delete(step.argval)


@opcode("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: Frame, step: Step) -> None:
    frame.stack.append(Const(AssertionError))


@opcode("LOAD_ATTR")
def load_attr(frame: Frame, step: Step) -> None:
    stack = frame.stack
    owner = stack.pop()
    value = owner.get_attr(frame.tx, step.argval)
    if step.arg & 1:
        _push_method(stack, value)
    else:
        stack.append(value)


def _push_method(stack: list[Value], value: Value) -> None:
    """A method for CALL: unbound where that is possible."""
    if sys.version_info >= (3, 13):
        stack.extend((value, NULL))
    elif type(value) is MethodValue:
        stack.extend((value.function, value.receiver))
    else:
        stack.extend((NULL, value))


@opcode("LOAD_METHOD", until=(3, 11))
def load_method(frame: Frame, step: Step) -> None:
    stack = frame.stack
    _push_method(stack, stack.pop().get_attr(frame.tx, step.argval))


@opcode("LOAD_SUPER_ATTR", since=(3, 12))
def load_super_attr(frame: Frame, step: Step) -> None:
    kind, cls, receiver = frame.pop_n(3)
    owner = kind.call(frame.tx, [cls, receiver], {})
    value = owner.get_attr(frame.tx, step.argval)
    if step.arg & 1:
        _push_method(frame.stack, value)
    else:
        frame.stack.append(value)


@opcode("STORE_ATTR")
def store_attr(frame: Frame, step: Step) -> None:
    owner = frame.stack.pop()
    owner.set_attr(frame.tx, step.argval, frame.stack.pop())


@opcode("DELETE_ATTR")
def delete_attr(frame: Frame, step: Step) -> None:
    frame.stack.pop().del_attr(frame.tx, step.argval)


@opcode("BINARY_SUBSCR")
def binary_subscr(frame: Frame, step: Step) -> None:
    stack = frame.stack
    key = stack.pop()
    stack.append(stack.pop().get_item(frame.tx, key))


@opcode("STORE_SUBSCR")
def store_subscr(frame: Frame, step: Step) -> None:
    value, owner, key = frame.pop_n(3)
    owner.set_item(frame.tx, key, value)


@opcode("DELETE_SUBSCR")
def delete_subscr(frame: Frame, step: Step) -> None:
    owner, key = frame.pop_n(2)
    owner.del_item(frame.tx, key)


@opcode("IMPORT_NAME")
def import_name(frame: Frame, step: Step) -> None:
    level, names = (value.as_constant() for value in frame.pop_n(2))
    package = frame.globals.real
    try:
        module = importlib.__import__(step.argval, package, None, names or (), level)
    except ImportError as error:
        raise frame.tx.raises(type(error), *error.args) from None
    frame.stack.append(Const(module))


@opcode("IMPORT_FROM")
def import_from(frame: Frame, step: Step) -> None:
    module = frame.stack[-1]
    frame.stack.append(module.get_attr(frame.tx, step.argval))


@opcode("POP_TOP", "END_FOR")
def pop_top(frame: Frame, step: Step) -> None:
    frame.stack.pop()
    if step.opname == "END_FOR" and sys.version_info < (3, 13):
        frame.stack.pop()


@opcode("PUSH_NULL")
def push_null(frame: Frame, step: Step) -> None:
    frame.stack.append(NULL)


@opcode("COPY")
def copy(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.stack[-step.arg])


@opcode("SWAP")
def swap(frame: Frame, step: Step) -> None:
    stack = frame.stack
    stack[-1], stack[-step.arg] = stack[-step.arg], stack[-1]
