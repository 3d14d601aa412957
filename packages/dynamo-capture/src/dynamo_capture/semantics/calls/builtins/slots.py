"""Methods that ``object``, ``dict`` and so on have in C, applied to instances of classes written in Python."""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable, Sequence
from typing import Any

import fx_guards
from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON, UNKNOWN_HASH, UNKNOWN_VALUE
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak, UserRaise
from dynamo_capture.foundation.type_names import has_sequence_slots, message_name
from dynamo_capture.polyfills.python.containers import copy_of_ordered_subclass
from dynamo_capture.semantics.calls.builtins.methods import call_builtin_method
from dynamo_capture.semantics.calls.builtins.texts import text_of, text_of_exception
from dynamo_capture.semantics.calls.signatures import METHOD_KINDS, takes
from dynamo_capture.semantics.registry import handler_of
from dynamo_capture.values import (
    NONE,
    Const,
    DictValue,
    ListIterator,
    ListValue,
    ObjectValue,
    SequenceIterator,
    SetValue,
    TupleValue,
    Value,
    boolean,
    is_none,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.objects import exception_fields

_USES: dict[str, Callable[[Any], Any]] = {
    "__abs__": abs,
    "__call__": lambda blank: blank(),
    "__contains__": lambda blank: 0 in blank,
    "__float__": float,
    "__getitem__": lambda blank: blank[0],
    "__index__": operator.index,
    "__invert__": operator.invert,
    "__iter__": iter,
    "__len__": len,
    "__neg__": operator.neg,
    "__next__": next,
    "__pos__": operator.pos,
    "__reversed__": reversed,
    "__round__": round,
    "__setitem__": lambda blank: operator.setitem(blank, 0, 0),
}
"""How Python comes to look for a special method."""
_SAME_SLOT = {"__delitem__": "__setitem__", "__setitem__": "__delitem__"}
"""Pairs that share a slot: a class with one of them is asked for the other by name."""


def refuse(tx: Context, cls: type, name: str, args: Sequence[Value] = ()) -> UserRaise:
    """What Python raises where an instance of ``cls`` lacks the special method: it is asked, with a blank class."""
    if name in _USES or name == "__delitem__":
        other = _SAME_SLOT.get(name)
        own: dict[str, Any] = {}
        if other is not None and tx.attributes.in_class(cls, other) is not fx_guards.ABSENT:
            own[other] = None
        blank = type(message_name(cls), (), own)()
        if name == "__delitem__":
            is_index = (
                has_sequence_slots(cls) and bool(args) and has_member(args[0].python_type(), "__index__")
            )
            tx.fold(lambda: operator.delitem(blank, 0 if is_index else None))
        else:
            tx.fold(lambda: _USES[name](blank))
    return tx.raises(TypeError, f"{message_name(cls)!r} object does not support {name}")


def attribute_name(tx: Context, value: Value) -> str:
    """A name as ``getattr`` takes it."""
    name = tx.constant(value)
    if not isinstance(name, str):
        tx.fold(lambda: getattr(None, name))
    return str(name)


_LEAST = {
    "__setattr__": 2,
    **dict.fromkeys(
        (
            "__delattr__",
            "__eq__",
            "__format__",
            "__getattribute__",
            "__getitem__",
            "__ne__",
            "with_traceback",
        ),
        1,
    ),
}
"""Arguments that methods in C take at least, beside their object."""


def call_slot(
    tx: Context, receiver: ObjectValue, function: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``function(receiver, *args, **kwargs)``."""
    name = function.__name__
    is_taken = len(args) >= _LEAST.get(name, 0) and takes(function, 1 + len(args), tuple(kwargs))
    if isinstance(function, METHOD_KINDS) and not is_taken:
        raise GraphBreak(NOT_IN_PYTHON, f"{function.__qualname__} gets arguments that it does not take")
    handler = handler_of(function)
    answer = None if handler is None else handler(tx, [receiver, *args], kwargs)
    if answer is not None:
        return answer
    match name:
        case "__init__":
            return _initialize(tx, receiver, function, args, kwargs)
        case "__setattr__" | "__delattr__" if _is_jumped(receiver.cls, function):
            raise GraphBreak(NOT_IN_PYTHON, f"{function.__qualname__} of {receiver.describe()}")
        case "__setattr__":
            tx.attributes.set_generic(receiver, attribute_name(tx, args[0]), args[1])
            return NONE
        case "__delattr__":
            tx.attributes.delete_generic(receiver, attribute_name(tx, args[0]))
            return NONE
        case "__getattribute__":
            return tx.attributes.without_getattr(receiver, attribute_name(tx, args[0]))
        case "__hash__":
            raise GraphBreak(UNKNOWN_HASH, f"the hash of {receiver.describe()} is asked for")
        case "__init_subclass__" | "__setstate__" | "__reduce__" | "__reduce_ex__":
            raise receiver.unsupported(f"calling {name}")
        case "__eq__" if function is object.__eq__:
            return Const(True if tx.operators.same(receiver, args[0]) else NotImplemented)
        case "__ne__" if function is object.__ne__:
            return _is_unequal(tx, receiver, args[0])
        case "__str__" | "__repr__" | "__format__" if (
            receiver.base is None or function.__objclass__ is object
        ):
            return _text(tx, receiver, function, args)
        case "with_traceback" if issubclass(receiver.cls, BaseException):
            return _with_traceback(tx, receiver, args[0])
        case "add_note" if issubclass(receiver.cls, BaseException):
            if len(args) == 1 and not issubclass(kind := args[0].python_type(), str):
                raise tx.raises(TypeError, f"note must be a str, not {kind.__name__!r}")
            if not tx.attributes.has(receiver, "__notes__"):
                receiver.set_attr(tx, "__notes__", ListValue([]))
            return receiver.get_attr(tx, "__notes__").call_method(tx, "append", args, kwargs)
    if receiver.base is not None:
        return _of_content(tx, receiver, receiver.base, function, args, kwargs)
    if receiver.real is not None and receiver.source is not None:
        raise GraphBreak(NOT_IN_PYTHON, f"a call of {function.__qualname__} on {receiver.describe()}")
    raise receiver.unsupported(f"calling {name}")


def _is_jumped(cls: type, function: Any) -> bool:
    """Whether a class in C has a method of its own that ``function``, of a base, would be called in place of, which
    Python refuses: ``object.__setattr__(threading.local(), ...)``."""
    members = (vars(base).get(function.__name__) for base in cls.__mro__)
    return next((one for one in members if isinstance(one, METHOD_KINDS)), function) is not function


def _of_content(
    tx: Context,
    receiver: ObjectValue,
    base: Value,
    function: Any,
    args: list[Value],
    kwargs: dict[str, Value],
) -> Value:
    """A method of the container or number that an object is, too."""
    name = function.__name__
    is_dict = isinstance(base, DictValue)
    if name == "__getitem__" and is_dict and tx.attributes.has_special(receiver, "__missing__"):
        return _get_or_missing(tx, receiver, args[0])
    ordered = collections.OrderedDict
    if (
        issubclass(receiver.cls, ordered)
        and getattr(function, "__objclass__", None) is dict
        and name in vars(ordered)
    ):
        raise receiver.unsupported(f"dict.{name}(), which knows nothing of its order,")
    if function is collections.OrderedDict.copy:
        return tx.inliner.call_function(Const(copy_of_ordered_subclass), [receiver, *args], kwargs)
    made = base.call_method(tx, name, args, kwargs)
    if made is base:  # ``+=`` and its kin give the object, others a plain tuple
        return TupleValue(list(made.items)) if isinstance(made, TupleValue) else receiver
    if isinstance(made, SequenceIterator) and made.owner is base:
        made.owner = receiver
    if isinstance(made, ListIterator):
        made.holder = receiver
    return made


def _text(tx: Context, receiver: ObjectValue, function: Any, args: list[Value]) -> Value:
    """``object.__str__`` and its kin, and those of exceptions, whatever the receiver's class has under the names."""
    name = function.__name__
    if name == "__format__":
        if tx.constant(args[0]) != "":
            raise GraphBreak(NOT_IN_PYTHON, f"{receiver.describe()} is formatted with a specification")
        return text_of(tx, receiver)
    if issubclass(function.__objclass__, BaseException):
        return text_of_exception(tx, receiver, name)
    if function.__objclass__ is not object:
        raise GraphBreak(UNKNOWN_VALUE, f"the text of {receiver.describe()}")
    own = tx.attributes.in_class(receiver.cls, "__repr__")
    if name == "__repr__" or own is object.__repr__:
        raise GraphBreak(UNKNOWN_VALUE, f"the text of {receiver.describe()}")
    return tx.calls.special(receiver, "__repr__", [])


def _with_traceback(tx: Context, receiver: ObjectValue, traceback: Value) -> Value:
    if not is_none(traceback) and not issubclass(traceback.python_type(), types.TracebackType):
        raise tx.raises(TypeError, "__traceback__ must be a traceback or None")
    receiver.attrs["__traceback__"] = traceback
    tx.effects.attribute(receiver, "__traceback__")
    return receiver


def _initialize(
    tx: Context, receiver: ObjectValue, function: Any, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    base, cls = receiver.base, receiver.cls
    if base is not None and function is not object.__init__:
        if isinstance(base, (DictValue, ListValue, SetValue)):
            return call_builtin_method(tx, base, "__init__", args, kwargs)
    elif issubclass(cls, BaseException):
        if receiver.real is not None:
            raise receiver.unsupported("initializing")
        if kwargs:
            raise GraphBreak(NOT_IN_PYTHON, f"{cls.__name__} is initialized with keyword arguments")
        exception_fields.initialize(receiver, args)
    elif function.__objclass__ is not object:
        raise GraphBreak(NOT_IN_PYTHON, f"a call of {function.__qualname__} on {receiver.describe()}")
    elif args or kwargs:
        _refuse_arguments(tx, cls)
    return NONE


def _refuse_arguments(tx: Context, cls: type) -> None:
    """``object.__init__`` takes none, unless the class has a ``__new__`` and no ``__init__`` of its own."""
    in_class = tx.attributes.in_class
    if in_class(cls, "__init__") is not object.__init__:
        what = "object.__init__() takes exactly one argument (the instance to initialize)"
        raise tx.raises(TypeError, what)
    maker = in_class(cls, "__new__")
    if getattr(maker, "__func__", maker) in (object.__new__, fx_guards.ABSENT):
        what = f"{cls.__name__}.__init__() takes exactly one argument (the instance to initialize)"
        raise tx.raises(TypeError, what)


def _is_unequal(tx: Context, receiver: ObjectValue, other: Value) -> Value:
    """``object.__ne__``: what ``__eq__`` answers, inverted."""
    own = tx.attributes.in_class(receiver.cls, "__eq__")
    if own is None or isinstance(own, types.FunctionType):
        equal = tx.calls.special(receiver, "__eq__", [other])
        return equal if _is_not_implemented(equal) else boolean(not tx.truth(equal))
    return Const(False if tx.operators.same(receiver, other) else NotImplemented)


def _is_not_implemented(value: Value) -> bool:
    return value.stands_for(NotImplemented)


def _get_or_missing(tx: Context, receiver: ObjectValue, key: Value) -> Value:
    """``dict.__getitem__`` of a subclass with ``__missing__``."""
    assert receiver.base is not None
    if receiver.base.contains(tx, key):
        return receiver.base.get_item(tx, key)
    return tx.calls.special(receiver, "__missing__", [key])
