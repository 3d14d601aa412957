"""The text of objects: ``str``, ``repr`` and ``format``, texts made of others, and the wrappers that end a ``repr`` at
cycles."""

from __future__ import annotations

import dataclasses
import functools
import reprlib
import types
from typing import Any

from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.class_members import module_of
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.frames.left_functions import limit_lookups
from dynamo_capture.semantics.calls.builtins.methods import method
from dynamo_capture.semantics.operators import open_texts
from dynamo_capture.semantics.registry import handles
from dynamo_capture.values import Const, ObjectValue, Piece, SymValue, TextValue, Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.operator_methods import check_shown, shown_by_program


def text_of(tx: Context, value: Value, name: str = "__str__") -> Value:
    """``str(value)`` (or ``repr``, by ``name``) of an object of the program."""
    if isinstance(value, TextValue) and name == "__str__":
        return value
    if isinstance(value, ObjectValue):
        for special in ("__str__", "__repr__") if name == "__str__" else ("__repr__",):
            found = tx.attributes.in_class(value.cls, special)
            if found is str.__str__ and isinstance(value.base, Const):
                return Const(str(value.base.value))
            if isinstance(found, types.FunctionType):
                return _checked(tx, Const(found).call(tx, [value], {}), name)
            if issubclass(value.cls, BaseException):
                return text_of_exception(tx, value, name)
            if found is object.__repr__:  # says where the object is in memory: when the code runs
                return TextValue([Piece(value, 1 if name == "__str__" else 2)])
            if special == "__str__" and found is not object.__str__:
                break
    raise GraphBreak(UNKNOWN_VALUE, f"the text of {value.describe()}")


def _said(tx: Context, value: Value, name: str, spec: list[Value]) -> Value | None:
    """What code of the program gives as the text of a member of an enumeration, or of another object that is known."""
    if type(value) is not Const or isinstance(value.value, type) or not shown_by_program(value.value):
        return None
    found = tx.attributes.in_class(type(value.value), name)
    if name == "__str__" and found is object.__str__:
        return _said(tx, value, "__repr__", spec)
    if not isinstance(found, types.FunctionType):
        return None
    return _checked(tx, tx.inliner.call_function(Const(found), [value, *spec], {}), name)


def _checked(tx: Context, text: Value, name: str) -> Value:
    """What a special method has given, if it is a text."""
    if issubclass(text.python_type(), str):
        return text
    kind = text.python_type().__name__
    if name == "__format__":
        raise tx.raises(TypeError, f"__format__ must return a str, not {kind}")
    raise tx.raises(TypeError, f"{name} returned non-string (type {kind})")


def shown(tx: Context, value: Value) -> Any:
    """A Python object equal to a value that is known, to be made a text of: a class, or a container of classes, whose
    metaclass shows it by code of the program is Python's to show. NotConstant where something is not known."""
    real = tx.calls.python_object(value)
    check_shown(real)
    return real


def text_of_exception(tx: Context, value: ObjectValue, name: str) -> Value:
    """What the exception's builtin base class makes of its arguments."""
    args = value.get_attr(tx, "args").unpack(tx)
    texts = [Const(str if len(args) == 1 else repr).call(tx, [arg], {}) for arg in args]
    if name == "__str__" and len(args) == 1 and not issubclass(value.cls, KeyError):
        return texts[0]
    try:
        plain = [tx.calls.python_object(arg) for arg in args]
    except NotConstant:
        raise GraphBreak(UNKNOWN_VALUE, f"the text of {value.describe()}") from None
    if name == "__repr__":
        shown = f"({plain[0]!r})" if len(plain) == 1 else repr(tuple(plain))
        return Const(value.cls.__name__ + shown)
    base: type = next(cls for cls in value.cls.__mro__ if module_of(cls) == "builtins")
    return Const(tx.fold(lambda: str(base(*plain))))


@handles(str)
def make_str(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    if len(args) > 1 or kwargs:  # decodes bytes
        return tx.calls.call_folded(str, args, kwargs)
    if not args:
        return Const("")
    value = tx.force(args[0])
    if isinstance(value, SymValue):
        limit_lookups(tx, value)
    made = open_texts.text(tx, value, 1) or _said(tx, value, "__str__", [])
    if made is not None:
        return made
    try:
        real = shown(tx, value)
    except NotConstant:
        return text_of(tx, value)
    return Const(tx.fold(lambda: str(real)))


@handles(repr)
def representation(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value = tx.force(args[0])
    made = open_texts.text(tx, value, 2) or _said(tx, value, "__repr__", [])
    if made is not None:
        return made
    try:
        real = shown(tx, args[0])
    except NotConstant:
        return text_of(tx, args[0], "__repr__")
    return Const(tx.fold(lambda: repr(real)))


@handles(format)
def formatted(tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
    value, spec = args[0], tx.constant(args[1]) if len(args) > 1 else ""
    if not isinstance(spec, str):
        tx.fold(lambda: format(None, spec))  # raises
    if isinstance(value, ObjectValue):
        custom = tx.attributes.in_class(value.cls, "__format__")
        if isinstance(custom, types.FunctionType):
            return _checked(
                tx, tx.inliner.call_function(Const(custom), [value, Const(spec)], {}), "__format__"
            )
    value = tx.force(value)
    open_text = open_texts.text(tx, value, 0, spec) or _said(tx, value, "__format__", [Const(spec)])
    if open_text is not None:
        return open_text
    try:
        real = shown(tx, value)
    except NotConstant:
        if not spec:
            return Const(str).call(tx, [value], {})
        raise GraphBreak(UNKNOWN_VALUE, f"{value.describe()} is formatted") from None
    return Const(tx.fold(lambda: format(real, spec)))


@method(str.join)
def str_join(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    items = [tx.force(item) for item in args[0].unpack(tx)]
    made = open_texts.joined_by(tx, owner, items)
    if made is not None:
        return made
    parts = [tx.constant(item) for item in items]
    return Const(tx.fold(lambda: owner.value.join(parts)))


@method(str.format)
def str_format(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    made = open_texts.by_format(tx, owner.value, args, kwargs) if type(owner.value) is str else None
    if made is not None:
        return made
    try:
        plain = [shown(tx, arg) for arg in args]
        named = {name: shown(tx, value) for name, value in kwargs.items()}
    except NotConstant:
        raise GraphBreak(UNKNOWN_VALUE, "an unknown value is formatted") from None
    return Const(tx.fold(lambda: owner.value.format(*plain, **named)))


def is_repr_wrapper(function: types.FunctionType) -> bool:
    """Whether a function is the wrapper that ends a ``__repr__`` at cycles by ``id``."""
    return function.__code__.co_name == "wrapper" and function.__code__ in _repr_wrappers()


@functools.cache
def _repr_wrappers() -> frozenset[types.CodeType]:
    """The code of those wrappers: of ``reprlib`` and of data classes."""

    @dataclasses.dataclass
    class Sample:
        pass

    wrapped: list[Any] = [Sample.__repr__, reprlib.recursive_repr()(lambda self: "")]
    return frozenset(function.__code__ for function in wrapped)


def wrapped_repr(function: types.FunctionType) -> Any:
    """What a wrapper of ``reprlib.recursive_repr`` calls; before CPython 3.12 only its closure says so."""
    free = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    return free["user_function"].cell_contents
