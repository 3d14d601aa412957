"""Loading, storing and deleting variables, constants, globals, attributes and items; moving the stack."""

from __future__ import annotations

import builtins
import sys

from dynamo_capture.bytecode.decode import free_variables
from dynamo_capture.bytecode.instruction import Slot
from dynamo_capture.foundation.errors import UserRaise
from dynamo_capture.frames.frame import Frame
from dynamo_capture.frames.opcode_table import opcode
from dynamo_capture.frames.steps import Step
from dynamo_capture.interpreter.opcodes.dropping import check_dropped
from dynamo_capture.values import (
    CALLED_BY_ITSELF,
    CALLED_WITH_SELF,
    NULL,
    BuiltinMethod,
    CellValue,
    Const,
    Lazy,
    NullValue,
    Value,
)


@opcode("NOP", "RESUME", "COPY_FREE_VARS")
def nop(frame: Frame, step: Step) -> None:
    """Nothing: free variables are bound when the frame is made."""


@opcode("PRECALL", until=(3, 11))
def precall(frame: Frame, step: Step) -> None:
    """Nothing: ``CALL`` does it all."""


@opcode("LOAD_CONST")
def load_const(frame: Frame, step: Step) -> None:
    frame.stack.append(step.argval)


@opcode("LOAD_FAST")
def load_fast(frame: Frame, step: Step) -> None:
    found = frame.variables.get(step.argval)
    if found is None:
        raise _unbound(frame, step.argval)
    frame.stack.append(frame.tx.force(found) if type(found) is Lazy else found)


def _unbound(frame: Frame, name: str) -> UserRaise:
    text = f"cannot access local variable {name!r} where it is not associated with a value"
    return frame.tx.raises(UnboundLocalError, text)


@opcode("LOAD_FAST_CHECK", since=(3, 12))
def load_fast_check(frame: Frame, step: Step) -> None:
    load_fast(frame, step)


@opcode("LOAD_FAST_AND_CLEAR", since=(3, 12))
def load_fast_and_clear(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.variables.pop(step.argval, NULL))


@opcode("STORE_FAST")
def store_fast(frame: Frame, step: Step) -> None:
    _store(frame, step.argval)


def _store(frame: Frame, name: str) -> None:
    """Pop into a local; a NULL leaves it unbound: an inlined comprehension puts back what was there before."""
    check_dropped(frame, frame.variables.get(name))
    value = frame.stack.pop()
    if type(value) is NullValue:
        frame.variables.pop(name, None)
    else:
        frame.variables[name] = value


@opcode("DELETE_FAST")
def delete_fast(frame: Frame, step: Step) -> None:
    if not step.argval.startswith(
        "."
    ):  # else an argument of a resume function, which has just been put on the stack
        check_dropped(frame, frame.variables.get(step.argval))
    if frame.variables.pop(step.argval, None) is None:
        raise _unbound(frame, step.argval)


@opcode("LOAD_FAST_LOAD_FAST", since=(3, 13))
def load_fast_load_fast(frame: Frame, step: Step) -> None:
    first, second = step.argval
    force, variables = frame.tx.force, frame.variables
    frame.stack.extend((force(variables[first]), force(variables[second])))


@opcode("STORE_FAST_LOAD_FAST", since=(3, 13))
def store_fast_load_fast(frame: Frame, step: Step) -> None:
    stored, loaded = step.argval
    _store(frame, stored)
    frame.stack.append(frame.tx.force(frame.variables[loaded]))


@opcode("STORE_FAST_STORE_FAST", since=(3, 13))
def store_fast_store_fast(frame: Frame, step: Step) -> None:
    first, second = step.argval
    _store(frame, first)
    _store(frame, second)


@opcode("MAKE_CELL")
def make_cell(frame: Frame, step: Step) -> None:
    frame.variables[step.argval] = CellValue(frame.variables.get(step.argval))


@opcode("LOAD_CLOSURE", until=(3, 12))
def load_closure(frame: Frame, step: Step) -> None:
    frame.stack.append(frame.variables[step.argval])


@opcode("LOAD_DEREF")
def load_deref(frame: Frame, step: Step) -> None:
    cell = frame.cell(step.argval)
    if cell.content is None:
        cell.must_stay_empty()
        raise _empty_cell(frame, step.argval)
    frame.stack.append(frame.tx.force(cell.content))


def _empty_cell(frame: Frame, slot: str) -> UserRaise:
    """What reading or deleting a shared variable without a value raises."""
    name = slot.name if isinstance(slot, Slot) else slot
    if slot in free_variables(frame.code):
        text = (
            f"cannot access free variable {name!r} where it is not associated with a value in enclosing scope"
        )
        return frame.tx.undefined(name, text)
    return _unbound(frame, name)


@opcode("STORE_DEREF")
def store_deref(frame: Frame, step: Step) -> None:
    cell = frame.cell(step.argval)
    cell.content = frame.stack.pop()
    frame.tx.effects.cell(cell)


@opcode("DELETE_DEREF")
def delete_deref(frame: Frame, step: Step) -> None:
    cell = frame.cell(step.argval)
    if cell.content is None:
        cell.must_stay_empty()
        raise _empty_cell(frame, step.argval)
    frame.tx.force(cell.content)  # guarded to be there
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


@opcode("LOAD_BUILD_CLASS")
def load_build_class(frame: Frame, step: Step) -> None:
    """Making the class breaks the graph, at the call."""
    frame.stack.append(Const(builtins.__build_class__))


@opcode("LOAD_ASSERTION_ERROR")
def load_assertion_error(frame: Frame, step: Step) -> None:
    frame.stack.append(Const(AssertionError))


@opcode("LOAD_ATTR")
def load_attr(frame: Frame, step: Step) -> None:
    stack = frame.stack
    owner = stack.pop()
    frame.operands = (owner,)
    attributes = frame.tx.attributes
    attributes.compared = (owner, step.argval) if _is_compared(frame, step) else None
    value = frame.tx.attribute(owner, step.argval)
    attributes.compared = None
    if step.arg & 1:
        _push_method(stack, owner, step.argval, value)
    else:
        stack.append(value)


_NONE_TESTS = ("_IF_NONE", "_IF_NOT_NONE")


def _is_compared(frame: Frame, step: Step) -> bool:
    """Whether all that happens to what the instruction gives is that it is compared with None."""
    first = frame.steps[step.index + 1]
    if first.opname.endswith(_NONE_TESTS):
        return True
    if first.opname != "LOAD_CONST" or frame.steps[step.index + 2].opname != "IS_OP":
        return False
    return isinstance(first.argval, Const) and first.argval.value is None


def _push_method(stack: list[Value], owner: Value, name: str, value: Value) -> None:
    """Two values, as where a graph ends before the call (``method_loads.open_at``)."""
    with_self = type(value) is BuiltinMethod and value.receiver is owner and value.name == name
    stack.extend((CALLED_WITH_SELF if with_self else CALLED_BY_ITSELF, value))


@opcode("LOAD_METHOD", until=(3, 11))
def load_method(frame: Frame, step: Step) -> None:
    owner = frame.stack.pop()
    _push_method(frame.stack, owner, step.argval, frame.tx.attribute(owner, step.argval))


@opcode("LOAD_SUPER_ATTR", since=(3, 12))
def load_super_attr(frame: Frame, step: Step) -> None:
    kind, cls, receiver = frame.pop_n(3)
    is_super = kind.stands_for(super)
    arguments = [cls, receiver] if is_super or step.arg & 2 else []
    owner = kind.call(frame.tx, arguments, {})
    value = frame.tx.attribute(owner, step.argval)
    if step.arg & 1:
        _push_method(frame.stack, owner, step.argval, value)
    else:
        frame.stack.append(value)


@opcode("STORE_ATTR")
def store_attr(frame: Frame, step: Step) -> None:
    owner = frame.stack.pop()
    frame.operands = (owner,)
    owner.set_attr(frame.tx, step.argval, frame.stack.pop())


@opcode("DELETE_ATTR")
def delete_attr(frame: Frame, step: Step) -> None:
    frame.stack.pop().del_attr(frame.tx, step.argval)


@opcode("BINARY_SUBSCR")
def binary_subscr(frame: Frame, step: Step) -> None:
    stack = frame.stack
    key = stack.pop()
    owner = stack.pop()
    frame.operands = (owner,)
    stack.append(owner.get_item(frame.tx, key))


@opcode("STORE_SUBSCR")
def store_subscr(frame: Frame, step: Step) -> None:
    value, owner, key = frame.pop_n(3)
    frame.operands = (owner,)
    owner.set_item(frame.tx, key, value)


@opcode("DELETE_SUBSCR")
def delete_subscr(frame: Frame, step: Step) -> None:
    owner, key = frame.pop_n(2)
    frame.operands = (owner,)
    owner.del_item(frame.tx, key)


@opcode("POP_TOP")
def pop_top(frame: Frame, step: Step) -> None:
    check_dropped(frame, frame.stack[-1])
    frame.stack.pop()


@opcode("END_FOR", since=(3, 12))
def end_for(frame: Frame, step: Step) -> None:
    """Pop what an exhausted FOR_ITER left: item and iterator, or from 3.13 on the item, before a POP_TOP."""
    frame.stack.pop()
    if sys.version_info < (3, 13):
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
