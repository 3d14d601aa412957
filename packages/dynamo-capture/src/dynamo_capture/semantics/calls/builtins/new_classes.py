"""``class`` statements, ``type(name, bases, entries)`` and ``collections.namedtuple`` of constants: a class that each
call makes, if anything of it outlives the graph.

The trace works with a sample: a class with the same content. So the content is known, but for the functions in it,
which may close over anything. Classes without a metaclass are made so, from Python's own classes and each other.
"""

from __future__ import annotations

import builtins
import collections
import types
from typing import Any

import fx_guards
from dynamo_capture.bytecode.decode import free_variables
from dynamo_capture.foundation.break_kinds import CLASS_MADE
from dynamo_capture.foundation.class_members import is_immutable
from dynamo_capture.foundation.errors import DataDependent, GraphBreak, NotConstant
from dynamo_capture.foundation.known_objects import is_known
from dynamo_capture.frames.frame import Frame, Return, break_of
from dynamo_capture.frames.globals_scope import GlobalsScope
from dynamo_capture.frames.steps import prepare
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import (
    CellValue,
    Const,
    DescriptorValue,
    DictValue,
    FunctionValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.new_class import NewClass, NewType
from fx_interface.errors import UnbackedSymbolError

_NAMES = ("typename", "field_names")


@handles(collections.namedtuple)
def named_tuple_class(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
    """The sample; None where not all arguments are known, so that the function is followed."""
    if len(args) > len(_NAMES):
        return None
    try:
        named = dict(zip(_NAMES, args, strict=False)) | kwargs
        given = {name: tx.calls.python_object(value) for name, value in named.items()}
    except (NotConstant, GraphBreak):
        return None
    if not isinstance(given.get("field_names"), (str, list, tuple)):
        return None
    module = tx.frames[-1].globals.real.get("__name__", "__main__")
    arguments = {**given, "module": given.get("module") or module}
    sample: type = tx.fold(lambda: collections.namedtuple(**arguments))
    tx.new_classes[sample] = NewClass(sample, arguments)
    return Const(sample)


_READ_BY_TYPE = ("__set_name__", "__init_subclass__", "__del__", "__prepare__")


@handles(builtins.__build_class__)
def build_class(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """The ``class`` statement."""
    body, name, *bases = map(tx.force, args)
    if kwargs or not isinstance(body, FunctionValue):
        raise _refused("with a metaclass or keywords")
    scope = body.globals
    assert isinstance(scope, GlobalsScope)
    variables: dict[str, Value] = dict(zip(free_variables(body.code), body.closure, strict=True))
    frame = Frame(tx, prepare(body.code), scope, variables)
    frame.names = {}
    try:
        done = frame.run()
    except (GraphBreak, NotConstant, DataDependent, UnbackedSymbolError) as error:
        raise _refused(f"in whose body {break_of(error).reason}") from None
    assert isinstance(done, Return)
    return new_type(tx, tx.constant(name), bases, frame.names)


def new_type(tx: Context, name: Any, bases: list[Value], entries: dict[str, Value]) -> Value:
    """``type(name, bases, entries)``."""
    known = tuple(base.value if isinstance(base, Const) else None for base in bases)
    if not all(type(base) is type and _is_plain(tx, base) for base in known):
        raise _refused("from a class of the program or with a metaclass")
    entries = dict(entries)
    cell = entries.pop("__classcell__", None)
    if "__module__" not in entries:
        entries["__module__"] = tx.frames[-1].globals.read("__name__")
    made: dict[types.FunctionType, Value] = {}
    content = {key: _sample(tx, tx.force(value), made) for key, value in entries.items()}
    sample: type = tx.fold(lambda: type(name, known, content))  # type: ignore[arg-type]
    tx.new_classes.update(made)
    tx.new_classes[sample] = NewType(sample, name, bases, entries)
    found = Const(sample)
    if isinstance(cell, CellValue):
        cell.content = found
    return found


def _refused(what: str) -> GraphBreak:
    return GraphBreak(CLASS_MADE, f"a class is made, {what}")


def _is_plain(tx: Context, base: type) -> bool:
    return base in tx.new_classes or is_immutable(base)


def _sample(tx: Context, value: Value, made: dict[types.FunctionType, Value]) -> Any:
    """What the sample has for a value."""
    if isinstance(value, FunctionValue):
        return _function(tx, value, made)
    if isinstance(value, DescriptorValue):
        return value.kind(*[_sample(tx, tx.force(part), made) for part in value.arguments])
    if isinstance(value, DictValue) and value.source is None and value.cls is dict:  # annotations
        return {
            tx.constant(key): _sample(tx, tx.force(item), made)
            for key, item in value.all_entries(tx).values()
        }
    if isinstance(value, (Const, TupleValue)) and tx.is_constant(value):
        real = tx.constant(value)
        if is_known(real) and not any(hasattr(type(real), name) for name in _READ_BY_TYPE[:1]):
            return real
    raise _refused(f"that holds {value.describe()}")


def _function(tx: Context, value: FunctionValue, made: dict[types.FunctionType, Value]) -> types.FunctionType:
    """A function with the same code, which the trace takes for ``value``."""
    if value.name in _READ_BY_TYPE or not set(value.attrs) <= {"__annotations__"}:
        raise _refused(f"that has {value.name}()")
    try:
        defaults = tuple(tx.constant(default) for default in value.defaults)
        keywords = {name: tx.constant(default) for name, default in value.kwdefaults.items()}
        annotations = {name: part.python_object(tx) for name, part in value.attrs.items()}
    except NotConstant:
        raise _refused("in which a function has defaults or annotations that are not known") from None
    if not all(map(fx_guards.is_closed_default, (*defaults, *keywords.values()))):
        raise _refused("in which a function has defaults that are objects")
    cells = []
    for cell in value.closure:
        cells.append(types.CellType())
        tx.wrapping.remember(cells[-1], cell)
    scope: Any = value.globals
    sample = types.FunctionType(value.code, scope.real, value.name, defaults or None, tuple(cells))
    sample.__kwdefaults__ = keywords or None
    sample.__qualname__ = value.qualname
    sample.__annotations__ = annotations.get("__annotations__", {})
    made[sample] = value
    return sample
