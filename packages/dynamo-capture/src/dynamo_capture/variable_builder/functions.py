"""Existing functions, methods and partial functions as values."""

from __future__ import annotations

import functools
import types
from typing import Any

from dynamo_capture._eval_frame import Suspended
from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import has_member
from dynamo_capture.foundation.known_objects import (
    BUILTIN_METHODS,
    PLAIN,
    is_known,
)
from dynamo_capture.session.controls import is_allowed_in_graph
from dynamo_capture.sources.sources import known_object
from dynamo_capture.values import (
    BuiltinMethod,
    Const,
    DictValue,
    Lazy,
    MethodValue,
    PartialValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.functions import FunctionValue
from dynamo_capture.variable_builder.objects import by_identity, wraps
from fx_interface.source import AttrSource, ItemSource, Source


@wraps(types.FunctionType)
def _function(tx: Context, real: Any, source: Source) -> Value:
    if is_allowed_in_graph(real) or not tx.policy.any_with_this_code(real, source):
        tx.guards.is_object(source, real)
        return Const(real, source)
    found = tx.wrapping.seen(real, source)
    if found is not None:
        return found
    tx.guards.length(AttrSource(source, "__dict__"), vars(real))
    made = _by_code(tx, real, source)
    made.source, made.real = source, real
    made.name, made.qualname = real.__name__, real.__qualname__
    if real.__defaults__ is not None:
        defaults = AttrSource(source, "__defaults__")
        tx.guards.length(defaults, real.__defaults__)
        made.defaults = [Lazy(item, ItemSource(defaults, i)) for i, item in enumerate(real.__defaults__)]
    else:
        tx.guards.is_object(AttrSource(source, "__defaults__"), None)
    if real.__kwdefaults__ is not None:
        keywords = AttrSource(source, "__kwdefaults__")
        tx.guards.keys(keywords, real.__kwdefaults__)
        made.given_kwdefaults = {
            k: Lazy(item, ItemSource(keywords, k)) for k, item in real.__kwdefaults__.items()
        }
    else:
        tx.guards.is_object(AttrSource(source, "__kwdefaults__"), None)
    return tx.wrapping.remember(real, made)


def _by_code(tx: Context, real: types.FunctionType, source: Source) -> FunctionValue:
    """A function that is guarded by its code and namespace, being made anew each time."""
    tx.guards.type_is(source, types.FunctionType)
    tx.guards.is_object(AttrSource(source, "__code__"), real.__code__)
    tx.guards.is_object(AttrSource(source, "__globals__"), real.__globals__)
    made = FunctionValue(real.__code__, tx.inliner.scope(real.__globals__))
    cells = AttrSource(source, "__closure__")
    for index, cell in enumerate(real.__closure__ or ()):
        made.closure.append(tx.wrap(cell, ItemSource(cells, index)))  # type: ignore[arg-type]
    return made


@wraps(*BUILTIN_METHODS)
def _builtin_method(tx: Context, real: Any, source: Source) -> Value:
    """A function of a module or class is that object; a method of another object is known by what it is bound to."""
    if real.__self__ is None or (is_known(real.__self__) and type(real.__self__) not in PLAIN):
        return by_identity(tx, real, source)
    if not has_member(type(real.__self__), real.__name__):  # a function of pybind11, bound to its own record
        return by_identity(tx, real, source)
    tx.guards.type_is(source, type(real))
    tx.guards.equals(AttrSource(source, "__name__"), real.__name__)
    receiver = tx.wrap(real.__self__, AttrSource(source, "__self__"))
    return BuiltinMethod(receiver, real.__name__, source, real)


@wraps(types.MethodType)
def _method(tx: Context, real: Any, source: Source) -> Value:
    if numpy_types.is_generator_class(type(real.__self__)):  # ``numpy.random.rand``
        tx.guards.is_object(source, real)
        return BuiltinMethod(tx.wrap(real.__self__, known_object(real.__self__)), real.__name__)
    tx.guards.type_is(source, types.MethodType)
    receiver = tx.wrap(real.__self__, AttrSource(source, "__self__"))
    return MethodValue(tx.wrap(real.__func__, AttrSource(source, "__func__")), receiver, source, real)


@wraps(functools.partial)
def _partial(tx: Context, real: Any, source: Source) -> Value:
    known = tx.wrapping.seen(real, source)
    if known is not None:
        return known
    tx.guards.type_is(source, functools.partial)
    arguments, keywords = AttrSource(source, "args"), AttrSource(source, "keywords")
    tx.guards.length(arguments, real.args)
    held = tx.wrapping.seen(real.keywords, keywords)
    if held is None:
        held = tx.wrapping.remember(real.keywords, DictValue(None, dict, keywords, real.keywords))
    assert isinstance(held, DictValue)
    made = PartialValue(
        tx.wrap(real.func, AttrSource(source, "func")),
        [tx.wrap(item, ItemSource(arguments, i)) for i, item in enumerate(real.args)],
        held,
        source,
        real,
    )
    return tx.wrapping.remember(real, made)


@wraps(Suspended)
def _suspended(tx: Context, real: Any, source: Source) -> Value:
    arguments = AttrSource(source, "args")
    tx.guards.type_is(source, Suspended)
    made = _by_code(tx, real.function, AttrSource(source, "function"))
    sources = [ItemSource(arguments, index) for index in range(len(real.args))]
    code = real.function.__code__
    read_from = dict(zip(code.co_varnames, (one.expression for one in sources), strict=False))
    cells = AttrSource(AttrSource(source, "function"), "__closure__")
    for index, name in enumerate(code.co_freevars):
        read_from[name] = AttrSource(ItemSource(cells, index), "cell_contents").expression
    tx.policy.goes_on(tx.resumes.original(code), read_from)
    items: list[Value] = [Lazy(item, one) for item, one in zip(real.args, sources, strict=True)]
    return PartialValue(made, items, DictValue(), source)
