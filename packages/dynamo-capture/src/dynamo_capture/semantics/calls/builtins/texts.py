"""The text of objects: ``str`` and ``repr`` of those of the program, and the wrappers that end a ``repr`` at cycles."""

from __future__ import annotations

import dataclasses
import functools
import reprlib
import types
from typing import Any

from dynamo_capture.foundation.break_kinds import UNKNOWN_VALUE
from dynamo_capture.foundation.class_members import module_of
from dynamo_capture.foundation.errors import GraphBreak, NotConstant
from dynamo_capture.values import Const, ObjectValue, TextValue, Value
from dynamo_capture.values.base import Context


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
                text = Const(found).call(tx, [value], {})
                if not issubclass(text.python_type(), str):
                    asked = "__repr__" if name == "__repr__" else "__str__"
                    kind = text.python_type().__name__
                    raise tx.raises(TypeError, f"{asked} returned non-string (type {kind})")
                return text
            if issubclass(value.cls, BaseException):
                return text_of_exception(tx, value, name)
            if found is object.__repr__:  # says where the object is in memory: when the code runs
                return TextValue([(value, 1 if name == "__str__" else 2)])
            if special == "__str__" and found is not object.__str__:
                break
    raise GraphBreak(UNKNOWN_VALUE, f"the text of {value.describe()}")


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
