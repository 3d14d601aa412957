"""Methods of lists, tuples, dicts, sets and strings over symbolic items.

``@method(list.append)`` declares a function of (trace, receiver, args, kwargs). What is not declared here may have a
substitute in Python (``polyfills``); what is pure runs for real when everything is known.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

from dynamo_capture.foundation.break_kinds import NOT_IN_PYTHON
from dynamo_capture.foundation.errors import GraphBreak, NotConstant, UserRaise
from dynamo_capture.foundation.type_names import message_name
from dynamo_capture.polyfills.torch import substitute_for
from dynamo_capture.semantics.calls.binding import by_position
from dynamo_capture.semantics.calls.signatures import METHOD_KINDS, takes
from dynamo_capture.semantics.calls.substituted import check_words
from dynamo_capture.semantics.operators.mappings import pairs_or_entries
from dynamo_capture.tables import declaring
from dynamo_capture.values import (
    NONE,
    BuiltinMethod,
    Const,
    DictIterator,
    DictValue,
    DictView,
    ListValue,
    ReversedListIterator,
    SequenceValue,
    SetValue,
    TupleValue,
    Value,
    boolean,
    is_none,
)
from dynamo_capture.values.base import Context

Method = Callable[["Context", Any, list[Value], dict[str, Value]], Value]
METHODS: dict[Any, Method] = {}


def method(*originals: Any) -> Callable[[Method], Method]:
    """Declare a method of a builtin class; declaring one twice is an error."""
    return declaring(METHODS, *originals)


def call_builtin_method(
    tx: Context, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``owner.name(...)`` for a container value."""
    try:
        return _called(tx, owner, name, args, kwargs)
    except UserRaise as raised:
        original = getattr(owner.python_type(), name, None)
        if isinstance(original, METHOD_KINDS):
            check_words(tx, Const(original), [owner, *args], kwargs, raised)
        raise


def _called(tx: Context, owner: Value, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    original = getattr(owner.python_type(), name, None)
    if original is None:
        raise tx.raises(
            AttributeError, f"{message_name(owner.python_type())!r} object has no attribute {name!r}"
        )
    if isinstance(original, types.BuiltinFunctionType):  # of the class, whatever the instance
        return Const(original).call(tx, args, kwargs)
    if isinstance(original, METHOD_KINDS):
        check_arguments(owner, original, args, kwargs)
    found = METHODS.get(original)
    if found is None:
        for base in owner.python_type().__mro__[1:-1]:  # a class need not do what object does
            found = METHODS.get(base.__dict__.get(name))
            if found is not None:
                break
    if found is not None:
        if kwargs:
            (_, *args), kwargs = by_position(original, [owner, *args], kwargs)
        return found(tx, owner, args, kwargs)
    substitute = substitute_for(original) or substitute_for(getattr(_plain_class(owner), name, None))
    if substitute is not None:
        return tx.inliner.call_function(Const(substitute), [owner, *args], kwargs)
    if name == "__call__":
        return owner.call(tx, args, kwargs)
    if original in (object.__eq__, object.__ne__) and len(args) == 1:
        is_same = tx.operators.same(owner, args[0])
        return boolean(original is object.__eq__) if is_same else Const(NotImplemented)
    general = _GENERAL.get(name)
    if general is not None:
        if kwargs or len(args) != _OPERANDS.get(name, 1):
            raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()}.{name} gets arguments that it does not take")
        if (
            name in _OF_SETS
            and isinstance(owner, SetValue)
            and not issubclass(args[0].python_type(), (set, frozenset))
        ):
            return Const(NotImplemented)
        if name in _MEETING and (
            _plain_class(args[0]) is not _plain_class(owner) or isinstance(owner, DictView)
        ):
            raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()}.{name} gets {args[0].describe()}")
        if general is _repeated and not issubclass(args[0].python_type(), int):
            raise GraphBreak(NOT_IN_PYTHON, f"{owner.describe()}.{name} gets {args[0].describe()}")
        return general(tx, owner, args)
    try:
        real = tx.calls.python_object(owner)
        arguments = [tx.calls.python_object(arg) for arg in args]
        named = {key: tx.calls.python_object(value) for key, value in kwargs.items()}
    except NotConstant:
        raise GraphBreak(NOT_IN_PYTHON, f"the method {name!r} of {owner.describe()}") from None
    if isinstance(owner, (ListValue, DictValue, SetValue)):
        raise GraphBreak(NOT_IN_PYTHON, f"the method {name!r} of {owner.describe()}")
    made = tx.fold(lambda: getattr(real, name)(*arguments, **named))
    return tx.calls.from_python(made)


def check_arguments(owner: Value, original: Any, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Break the graph, so that Python raises, at a call that the method does not take."""
    if not takes(original, 1 + len(args), tuple(kwargs)):
        raise GraphBreak(
            NOT_IN_PYTHON, f"{owner.describe()}.{original.__name__} gets arguments that it does not take"
        )


def _plain_class(owner: Value) -> type:
    if issubclass(owner.python_type(), collections.deque):
        return collections.deque
    for kind, plain in ((ListValue, list), (TupleValue, tuple), (DictValue, dict), (SetValue, set)):
        if isinstance(owner, kind):
            return plain
    return owner.python_type()


def _set_item(tx: Context, owner: Value, args: list[Value]) -> Value:
    owner.set_item(tx, args[0], args[1])
    return NONE


def _del_item(tx: Context, owner: Value, args: list[Value]) -> Value:
    owner.del_item(tx, args[0])
    return NONE


def _take_in(tx: Context, owner: Value, args: list[Value]) -> Value:
    if not isinstance(owner, DictValue):
        return tx.operators.binary("|=", owner, args[0])
    owner.call_method(tx, "update", args, {})
    return owner


def _extended(tx: Context, owner: Value, args: list[Value]) -> Value:
    """Unlike the operator, which asks the other operand before."""
    assert isinstance(owner, ListValue)  # no other container has the method
    owner.extend(tx, args[0])
    return owner


def _repeated(tx: Context, owner: Value, args: list[Value]) -> Value:
    return tx.operators.binary("*", owner, Const(tx.integer(args[0])))


_OPERANDS = {"__len__": 0, "__iter__": 0, "__bool__": 0, "__setitem__": 2}
_GENERAL: dict[str, Callable[[Any, Value, list[Value]], Value]] = {
    "__len__": lambda tx, owner, args: Const(owner.length(tx)),
    "__iter__": lambda tx, owner, args: owner.iterate(tx),
    "__contains__": lambda tx, owner, args: boolean(owner.contains(tx, args[0])),
    "__getitem__": lambda tx, owner, args: owner.get_item(tx, args[0]),
    "__setitem__": _set_item,
    "__delitem__": _del_item,
    "__bool__": lambda tx, owner, args: boolean(owner.truth(tx)),
    "__eq__": lambda tx, owner, args: tx.operators.compare("==", owner, args[0]),
    "__ne__": lambda tx, owner, args: tx.operators.compare("!=", owner, args[0]),
    "__add__": lambda tx, owner, args: tx.operators.binary("+", owner, args[0]),
    "__iadd__": _extended,
    "__or__": lambda tx, owner, args: tx.operators.binary("|", owner, args[0]),
    "__ior__": _take_in,
    "__and__": lambda tx, owner, args: tx.operators.binary("&", owner, args[0]),
    "__sub__": lambda tx, owner, args: tx.operators.binary("-", owner, args[0]),
    "__mul__": _repeated,
    "__rmul__": _repeated,
}
_OF_SETS = frozenset({"__or__", "__and__", "__sub__", "__ior__"})
_MEETING = frozenset({"__eq__", "__ne__", "__add__", "__or__", "__and__", "__sub__"})
"""What gives NotImplemented, or raises, for an object of another kind than the receiver."""


# Lists and deques.


@method(list.append, collections.deque.append)
def list_append(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.append(tx, [args[0]])
    return NONE


@method(collections.deque.appendleft)
def deque_appendleft(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.resizes(tx)
    owner.items.insert(0, args[0])
    if owner.maxlen is not None and len(owner.items) > owner.maxlen:
        del owner.items[-1]
    return NONE


@method(collections.deque.popleft)
def deque_popleft(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if not owner.items:
        raise tx.raises(IndexError, "pop from an empty deque")
    owner.resizes(tx)
    return tx.force(owner.items.pop(0))


@method(list.extend, collections.deque.extend)
def list_extend(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.extend(tx, args[0])
    return NONE


@method(list.pop, collections.deque.pop)
def list_pop(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    index = tx.integer(args[0]) if args else -1
    if not -len(owner.items) <= index < len(owner.items):
        raise tx.raises(IndexError, "pop from empty list" if not owner.items else "pop index out of range")
    owner.resizes(tx)
    return tx.force(owner.items.pop(index))


@method(list.insert)
def list_insert(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    tx.effects.mutates(owner)
    owner.items.insert(tx.integer(args[0]), args[1])
    return NONE


@method(list.clear, collections.deque.clear)
def list_clear(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    owner.resizes(tx)
    owner.items.clear()
    return NONE


@method(list.__init__)
def list_init(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    tx.effects.mutates(owner)
    owner.items.clear()  # before the argument is read, which may be the list itself
    if args:
        owner.items.extend(args[0].unpack(tx))
    return NONE


@method(list.copy)
def list_copy(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return ListValue(list(owner.items))


@method(list.reverse)
def list_reverse(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    tx.effects.mutates(owner)
    owner.items.reverse()
    return NONE


@method(list.__reversed__)
def list_reversed(tx: Context, owner: ListValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return ReversedListIterator(owner, owner)


# Dictionaries.


@method(dict.get)
def dict_get(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found = owner.find(tx, tx.hash_key(args[0]))
    return found if found is not None else args[1] if len(args) > 1 else kwargs.get("default", NONE)


@method(dict.keys, collections.OrderedDict.keys)
def dict_keys(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return DictView(owner, "keys")


@method(dict.values, collections.OrderedDict.values)
def dict_values(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return DictView(owner, "values")


@method(dict.items, collections.OrderedDict.items)
def dict_items(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return DictView(owner, "items")


@method(dict.setdefault, collections.OrderedDict.setdefault)
def dict_setdefault(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found = owner.find(tx, tx.hash_key(args[0]))
    if found is None:
        found = args[1] if len(args) > 1 else NONE
        owner.set_item(tx, args[0], found)
    return found


@method(dict.pop, collections.OrderedDict.pop)
def dict_pop(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    found = owner.find(tx, tx.hash_key(args[0]))
    if found is None:
        default = args[1] if len(args) > 1 else kwargs.get("default")
        if default is None:
            raise _missing(tx, owner, args[0])
        return default
    owner.del_item(tx, args[0])
    return found


def _missing(tx: Context, owner: DictValue, key: Value) -> UserRaise:
    """The KeyError; that of an ordered dict takes None for no argument, and a tuple for its arguments."""
    if owner.cls is dict or owner.cls is collections.defaultdict:
        return tx.raises(KeyError, key)
    if is_none(key):
        return tx.raises(KeyError)
    return tx.raises(KeyError, *(key.unpack(tx) if issubclass(key.python_type(), tuple) else [key]))


@method(dict.popitem, collections.OrderedDict.popitem)
def dict_popitem(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    entries = owner.all_entries(tx)
    if not entries:
        raise tx.raises(KeyError, "popitem(): dictionary is empty")
    last = tx.truth(args[0] if args else kwargs.get("last", Const(True)))
    key, value = entries[list(entries)[-1 if last else 0]]
    owner.del_item(tx, key)
    return TupleValue([key, tx.force(value)])


@method(dict.__init__, dict.update, collections.OrderedDict.update)
def dict_update(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for source in args:
        for key, value in pairs_or_entries(tx, source, ordered=owner.cls is collections.OrderedDict):
            owner.set_item(tx, key, value)
    for name, value in kwargs.items():
        owner.set_item(tx, Const(name), value)
    return NONE


@method(dict.clear, collections.OrderedDict.clear)
def dict_clear(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    for key, _ in list(owner.all_entries(tx).values()):
        owner.del_item(tx, key)
    return NONE


@method(dict.copy, collections.OrderedDict.copy, collections.defaultdict.copy)
def dict_copy(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.calls.copy_dict(owner)


@method(collections.OrderedDict.move_to_end)
def dict_move_to_end(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    entries = owner.all_entries(tx)
    key = tx.hash_key(args[0])
    if key not in entries:
        raise _missing(tx, owner, args[0])
    tx.effects.mutates(owner)
    entry = entries.pop(key)
    rest = dict(entries)
    last = tx.truth(args[1] if len(args) > 1 else kwargs.get("last", Const(True)))
    entries.clear()
    entries.update({**rest, key: entry} if last else {key: entry, **rest})
    return NONE


@method(dict.__reversed__, collections.OrderedDict.__reversed__)
def dict_reversed(tx: Context, owner: DictValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return DictIterator(tx, owner, "keys", backward=True)


__all__ = ["METHODS", "BuiltinMethod", "SequenceValue", "call_builtin_method", "method"]
