"""The standard library and widely used packages: what is pure, what is an effect, what is followed."""

from __future__ import annotations

import atexit
import bisect
import functools
import importlib
import inspect
import operator
import os
import queue
import struct
import sys
import types
import typing
from typing import Any

from dynamo_capture.foundation.break_kinds import BREAK_REQUESTED, C_OBJECT_MADE, NOT_IN_PYTHON
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.semantics.attributes.imported import check_import, imported_module
from dynamo_capture.semantics.registry import handles, pure
from dynamo_capture.session.controls import graph_break
from dynamo_capture.sources.sources import CallSource, known_object
from dynamo_capture.values import (
    NONE,
    Const,
    DictValue,
    FunctionValue,
    KeyValue,
    ObjectValue,
    PartialValue,
    SymValue,
    Value,
    boolean,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.mapping_views import ProxyValue
from dynamo_capture.values.objects.new_cache import NewCache
from dynamo_capture.values.operator_methods import BINARY, COMPARE

pure(
    inspect.isfunction,
    inspect.ismethod,
    inspect.isclass,
    inspect.getmodule,
    inspect.iscoroutinefunction,
    typing.get_origin,
    typing.get_args,
    typing.cast,
    importlib.util.find_spec,
    sys.intern,
    inspect.cleandoc,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
    str.maketrans,
    bisect.bisect_left,
    bisect.bisect_right,
    struct.pack,
    struct.unpack,
    struct.calcsize,
)

pure(  # of the functions of paths those that only compute, and ask neither the file system nor the process
    os.path.basename,
    os.path.commonpath,
    os.path.commonprefix,
    os.path.dirname,
    os.path.isabs,
    os.path.join,
    os.path.normcase,
    os.path.normpath,
    os.path.split,
    os.path.splitdrive,
    os.path.splitext,
    getattr(os.path, "splitroot", os.path.split),  # there from 3.12 on
)


@handles(sys.getrecursionlimit)
def recursion_limit(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    source = CallSource(known_object(sys.getrecursionlimit), (), ())
    return tx.wrap(sys.getrecursionlimit(), source)


@handles(os.fspath)
def path_of(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if issubclass(args[0].python_type(), (str, bytes)):
        return args[0]
    if isinstance(args[0], ObjectValue) and tx.attributes.has_special(args[0], "__fspath__"):
        made = tx.calls.special(args[0], "__fspath__", [])
        if issubclass(made.python_type(), (str, bytes)):
            return made
    path = tx.constant(args[0])
    return Const(tx.fold(lambda: os.fspath(path)))


@handles(graph_break)
def break_graph(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    message = args[0] if args else kwargs.get("msg")
    text = "" if message is None else str(tx.constant(message))
    raise GraphBreak(
        BREAK_REQUESTED, f"graph_break() was called: {text}" if text else "graph_break() was called"
    )


@handles(types.MappingProxyType)
def mapping_proxy(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    (mapping,) = args
    if not isinstance(mapping, DictValue):
        raise GraphBreak(C_OBJECT_MADE, f"a mappingproxy of {mapping.describe()} is made")
    return ProxyValue(mapping)


for _symbol, _row in BINARY.items():

    def _binary(tx: Context, args: list[Value], kwargs: dict[str, Value], symbol: str = _symbol) -> Value:
        return tx.operators.binary(symbol, args[0], args[1])

    handles(_row.function)(_binary)

for _symbol, (_function, _, _) in COMPARE.items():

    def _compare(tx: Context, args: list[Value], kwargs: dict[str, Value], symbol: str = _symbol) -> Value:
        return tx.operators.compare(symbol, args[0], args[1])

    handles(_function)(_compare)


def _check_sequence(tx: Context, value: Value) -> None:
    """What is to be joined to another is a sequence as C sees it: it has items, and is no dict."""
    kind = value.python_type()
    if not has_member(kind, "__getitem__") or issubclass(kind, dict):
        raise tx.raises(TypeError, f"'{kind.__name__}' object can't be concatenated")


@handles(operator.iconcat)
def extend_in_place(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    _check_sequence(tx, args[0])
    return tx.operators.binary("+=", args[0], args[1])


@handles(operator.concat)
def concatenate(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    _check_sequence(tx, args[0])
    return tx.operators.binary("+", args[0], args[1])


@handles(operator.neg)
def negate(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.operators.unary("-", args[0])


@handles(operator.pos)
def positive(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.operators.unary("+", args[0])


@handles(operator.invert)
def invert(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return tx.operators.unary("~", args[0])


@handles(operator.not_)
def not_(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(not tx.truth(args[0]))


@handles(operator.truth)
def truth(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(tx.truth(args[0]))


@handles(operator.is_)
def is_(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(tx.operators.same(args[0], args[1]))


@handles(operator.is_not)
def is_not(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(not tx.operators.same(args[0], args[1]))


@handles(operator.contains)
def contains(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return boolean(args[0].contains(tx, args[1]))


@handles(operator.getitem)
def getitem(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return args[0].get_item(tx, args[1])


@handles(operator.setitem)
def setitem(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    args[0].set_item(tx, args[1], args[2])
    return NONE


@handles(operator.delitem)
def delitem(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    args[0].del_item(tx, args[1])
    return NONE


@handles(operator.index)
def index(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = tx.force(args[0])
    return value if isinstance(value, SymValue) else Const(tx.integer(value))


@handles(functools.update_wrapper)
def update_wrapper(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Copies what describes a function onto one that the trace made; on anything else Python's own code does it."""
    given = _given(functools.update_wrapper, args, kwargs)
    wrapper, wrapped = given["wrapper"], given["wrapped"]
    assigned = _names(tx, given.get("assigned"), functools.WRAPPER_ASSIGNMENTS)
    updated = _names(tx, given.get("updated"), functools.WRAPPER_UPDATES)
    if not isinstance(wrapper, FunctionValue) or not set(updated) <= {"__dict__"}:
        return tx.inliner.call_function(Const(functools.update_wrapper), args, kwargs)
    copied = []
    if updated and tx.attributes.has(wrapped, "__dict__"):
        items = wrapped.get_attr(tx, "__dict__").call_method(tx, "items", [], {}).unpack(tx)
        copied = [item.unpack(tx) for item in items]
    for name in assigned:
        if tx.attributes.has(wrapped, name):
            wrapper.set_attr(tx, name, wrapped.get_attr(tx, name))
    target = wrapper.get_attr(tx, "__dict__")
    for key, value in copied:  # a class has items (``__dict__``) that as attributes would be other things
        target.set_item(tx, key, value)
    wrapper.set_attr(tx, "__wrapped__", wrapped)
    return wrapper


@handles(functools.wraps)
def wraps(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    defaults = {
        "assigned": tx.known(functools.WRAPPER_ASSIGNMENTS),
        "updated": tx.known(functools.WRAPPER_UPDATES),
    }
    given = _given(functools.wraps, args, kwargs)
    named = {name: given[name] if name in given else defaults[name] for name in ("wrapped", *defaults)}
    return PartialValue.of(Const(functools.update_wrapper), [], named)


def _given(function: Any, args: list[Value], kwargs: dict[str, Value]) -> dict[str, Value]:
    """The arguments that are given to a function of Python, by name."""
    return dict(inspect.signature(function).bind(*args, **kwargs).arguments)


def _names(tx: Context, given: Value | None, default: tuple[str, ...]) -> tuple[str, ...]:
    return default if given is None else tuple(str(tx.constant(name)) for name in given.unpack(tx))


@handles(functools._lru_cache_wrapper)
def make_cache(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    code = tx.frames[0].code
    if id(code) in tx.policy.functions.without_caches:
        raise GraphBreak(NOT_IN_PYTHON, "a cache is made inside the compiled function")
    if len(args) != 4 or kwargs:
        raise GraphBreak(NOT_IN_PYTHON, "a cache is made inside the compiled function by other arguments")
    function, maxsize, typed, _ = args
    if not function.is_callable(tx):
        raise tx.raises(TypeError, "the first argument must be callable")
    return NewCache(function, tx.constant(maxsize), tx.truth(typed))


@handles(importlib.import_module)
def import_module(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    names = [tx.constant(arg) for arg in args]
    named = {name: tx.constant(value) for name, value in kwargs.items()}
    name = [*names, *named.values()][0]
    if type(name) is str:
        check_import(tx, name)
    return imported_module(tx, tx.fold(lambda: importlib.import_module(*names, **named)), str(name))


@handles(functools.cmp_to_key)
def cmp_to_key(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    return KeyValue(args[0])


@handles(queue.SimpleQueue.put)
def put_in_queue(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``q.put(item)``: what is asked of the queue ends the graph, and so does not see one without the other."""
    tx.effects.deferred(queue.SimpleQueue.put, args, kwargs)
    return NONE


@handles(atexit.register)
def register_at_exit(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """``atexit.register(f, *args)``: nothing in a graph sees whether a function will be called at the end."""
    if not args or not args[0].is_callable(tx):
        return None
    tx.effects.deferred(atexit.register, args, kwargs)
    return args[0]
