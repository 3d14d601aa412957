"""Functions that are made, with their cells; methods, partial functions, ``super``, tracebacks, weak references."""

from __future__ import annotations

import functools
import types
import weakref

import torch

import fx_guards
from dynamo_capture import _eval_frame
from dynamo_capture.codegen.reconstruct import Reconstruction, makes
from dynamo_capture.foundation.class_members import runs_program
from dynamo_capture.runtime import replacement_calls, tracebacks
from dynamo_capture.semantics.calls.library.getters import GetterValue
from dynamo_capture.semantics.modes.contexts import ContextFunction
from dynamo_capture.values import (
    BuiltinMethod,
    CellValue,
    Const,
    DescriptorValue,
    FunctionValue,
    KeyValue,
    MethodValue,
    PartialValue,
    RestValue,
    SuperValue,
    Value,
)
from dynamo_capture.values.objects.new_cache import NewCache
from dynamo_capture.values.objects.optimized import OptimizedValue
from dynamo_capture.values.opaque import NewReference
from dynamo_capture.values.tensors.hooks import HookHandle
from dynamo_capture.values.traceback import TracebackValue


@makes(FunctionValue)
def function(to: Reconstruction, value: FunctionValue) -> None:
    """Functions that the trace defined."""

    def arguments() -> None:
        to.emitter.load_const(value.code)
        to.emitter.load_const(value.globals.real)
        to.push_tuple(value.defaults)
        if value.kwdefaults_dict is None:
            to.push_dict([(Const(name), part) for name, part in value.kwdefaults.items()])
        else:
            to.push(value.kwdefaults_dict)
        to.push_tuple(list(value.closure))
        to.push_dict([(Const(name), part) for name, part in value.attrs.items()])

    to.call(replacement_calls.make_function, arguments, 6)


@makes(TracebackValue)
def traceback(to: Reconstruction, value: TracebackValue) -> None:
    """Where an exception has been."""

    def arguments() -> None:
        to.push(value.following)
        for part in (value.code, value.namespace, value.offset, value.line):
            to.emitter.load_const(part)

    to.call(tracebacks.new_traceback, arguments, 5)


@makes(CellValue)
def cell(to: Reconstruction, value: CellValue) -> None:
    """New cells."""
    if value.content is None:
        to.call(replacement_calls.make_cell, lambda: None, 0)
    elif not to.push_unfilled(value):
        content = value.content
        to.call(replacement_calls.make_cell, lambda: to.push(content))


@makes(MethodValue)
def method(to: Reconstruction, value: MethodValue) -> None:
    """Bound methods."""
    if value.python_type() is types.MethodType:
        to.call(types.MethodType, lambda: to.push_all([value.function, value.receiver]), 2)
    else:
        _bind(to, value.function, value.receiver)


def _bind(to: Reconstruction, function: Value, receiver: Value) -> None:
    """Bind a function in C, as its own ``__get__`` does."""
    to.call(vars(function.python_type())["__get__"], lambda: to.push_all([function, receiver]), 2)


@makes(DescriptorValue)
def descriptor(to: Reconstruction, value: DescriptorValue) -> None:
    """Properties, static and class methods."""
    to.call(value.kind, lambda: to.push_all(value.arguments), len(value.arguments))


@makes(BuiltinMethod)
def builtin_method(to: Reconstruction, value: BuiltinMethod) -> None:
    """Bound methods of builtin objects; no code of the program is asked for what it has asked for itself."""
    cls = value.receiver.python_type()
    found = fx_guards.class_lookup(cls, value.name)
    if runs_program(cls) and isinstance(found, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return _bind(to, Const(found), value.receiver)
    to.push(value.receiver)
    to.emitter.load_attr(value.name)


@makes(SuperValue)
def super_(to: Reconstruction, value: SuperValue) -> None:
    """``super`` objects."""
    to.call(super, lambda: to.push_all([Const(value.cls), value.receiver]), 2)


@makes(PartialValue)
def partial(to: Reconstruction, value: PartialValue) -> None:
    """``functools.partial``."""

    def make() -> None:
        if value.shown:
            to.call(replacement_calls.partial_with, lambda: arguments([value.keywords]), 3)
            return
        kwargs = value.kwargs(to.tx)
        to.emitter.begin_call()
        to.emitter.load_const(functools.partial)
        to.emitter.end_callable()
        to.push_all([value.function, *value.args, *kwargs.values()])
        to.emitter.call(1 + len(value.args) + len(kwargs), tuple(kwargs))

    def arguments(keywords: list[Value]) -> None:
        to.push(value.function)
        to.push_tuple(value.args)
        to.push_all(keywords)

    def with_attributes() -> None:
        make()
        to.push_dict([(Const(name), part) for name, part in value.attrs.items()])

    if value.attrs:
        to.call(replacement_calls.with_attributes, with_attributes, 2)
    else:
        make()


@makes(NewCache)
def cache(to: Reconstruction, value: NewCache) -> None:
    """A function with a cache that has no entries."""

    def arguments() -> None:
        to.push(value.function)
        to.push_all([Const(value.maxsize), Const(value.typed)])
        to.push_dict([(Const(name), part) for name, part in value.attrs.items()])

    to.call(replacement_calls.new_cache, arguments, 4)


@makes(RestValue)
def rest(to: Reconstruction, value: RestValue) -> None:
    """Calls of bridges."""
    to.call(_eval_frame.rest, lambda: to.push_all([value.function, *value.args]), 1 + len(value.args))


@makes(GetterValue)
def getter(to: Reconstruction, value: GetterValue) -> None:
    """Getters of ``operator``."""
    to.emitter.begin_call()
    to.emitter.load_const(value.kind)
    to.emitter.end_callable()
    to.push_all([*value.args, *value.kwargs.values()])
    to.emitter.call(len(value.args) + len(value.kwargs), tuple(value.kwargs))


@makes(KeyValue)
def key(to: Reconstruction, value: KeyValue) -> None:
    """``functools.cmp_to_key``, and what that makes of an item."""
    to.call(
        replacement_calls.compared_by, lambda: to.push_all(value.children(to.tx)), len(value.children(to.tx))
    )


@makes(ContextFunction)
def context_function(to: Reconstruction, value: ContextFunction) -> None:
    """A function decorated by a context manager."""
    to.emitter.begin_call()
    to.push(value.manager)
    to.emitter.end_callable()
    to.push(value.function)
    to.emitter.call(1)


@makes(HookHandle)
def handle(to: Reconstruction, value: HookHandle) -> None:
    """Hooks of tensors: making the handle registers the hook, after those that the program has registered before."""
    hooks = to.tx.effects.hooks
    for earlier in hooks[: hooks.index(value)]:
        if not to.is_made(earlier):
            to.push(earlier)
            to.emitter.pop_top()
    register = getattr(torch.Tensor, value.register)
    to.call(register, lambda: to.push_all([value.tensor, value.hook]), 2)


@makes(NewReference)
def reference(to: Reconstruction, value: NewReference) -> None:
    """Weak references."""
    to.call(weakref.ref, lambda: to.push(value.target))


@makes(OptimizedValue)
def optimized(to: Reconstruction, value: OptimizedValue) -> None:
    """``compile(f, ...)``."""

    def arguments() -> None:
        to.push(value.compiler)
        to.push_tuple([] if value.model is None else [value.model])
        to.push_dict([(Const(name), option) for name, option in value.options.items()])

    to.call(replacement_calls.call_outside, arguments, 3)
