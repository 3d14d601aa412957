"""Callables: functions the trace made, bound methods, partial functions, cells, ``super`` objects."""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import fx_guards
from dynamo_capture.context.state import Namespace
from dynamo_capture.foundation.break_kinds import EMPTY_CELL
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values.base import Context, Value
from dynamo_capture.values.constant import NONE, Const, is_none
from fx_interface.source import Source


class CellValue(Value):
    """A closure cell. ``content`` None: empty. ``real``: the cell that existed before, whose change is an effect."""

    __slots__ = ("content", "real", "source")
    python_class = types.CellType

    def __init__(self, content: Value | None = None, real: Any = None, source: Source | None = None) -> None:
        self.content = content
        self.real = real
        self.source = source

    def children(self, tx: Context) -> list[Value]:
        return [] if self.content is None else [self.content]

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name != "cell_contents":
            return None
        if self.content is None:
            self.must_stay_empty()
            raise tx.raises(ValueError, "Cell is empty")
        return tx.force(self.content)

    def must_stay_empty(self) -> None:
        """A graph break where the cell was empty before the trace: no guard says that it will be in another call."""
        if self.real is not None and self.real == types.CellType():
            raise GraphBreak(EMPTY_CELL, "a variable that is shared with other functions has no value yet")


class FunctionValue(Value):
    """A function that the trace made by ``def`` or ``lambda``."""

    __slots__ = (
        "attrs",
        "closure",
        "code",
        "defaults",
        "given_kwdefaults",
        "globals",
        "kwdefaults_dict",
        "name",
        "qualname",
        "real",
        "source",
    )
    python_class = types.FunctionType

    def __init__(self, code: types.CodeType, scope: Namespace[Value]) -> None:
        self.code = code
        self.globals = scope
        self.defaults: list[Value] = []
        self.given_kwdefaults: dict[str, Value] = {}
        self.kwdefaults_dict: Any = None
        """The dictionary of them, once the program has asked for it, or has set it."""
        self.closure: list[CellValue] = []
        self.name = code.co_name
        self.qualname = code.co_qualname
        self.attrs: dict[Any, Value] = {}
        """By name; what only its dictionary holds, under a name that is another attribute, by a tuple of the name."""
        self.source: Source | None = None
        self.real: types.FunctionType | None = None
        """The function, if it existed: one that is made anew for each call, and known by its code."""

    @property
    def kwdefaults(self) -> dict[str, Value]:
        """The defaults of keywords."""
        if self.kwdefaults_dict is None:
            return self.given_kwdefaults
        return {key: value for key, (_, value) in self.kwdefaults_dict.entries.items()}

    def children(self, tx: Context) -> list[Value]:
        keyword = self.kwdefaults.values() if self.kwdefaults_dict is None else [self.kwdefaults_dict]
        return [*self.defaults, *keyword, *self.closure, *self.attrs.values()]

    def identity(self) -> object:
        return self if self.real is None else self.real

    def own_key(self, tx: Context) -> Any:
        """As a key an existing function is itself, and is guarded to be that one: its code alone will not do."""
        if self.real is not None and self.source is not None:
            tx.guards.is_object(self.source, self.real)
        return self.real

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.inliner.call_function(self, args, kwargs)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        return tx.attributes.of_new_function(self, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        if name == "__get__" and args:
            return self if is_none(args[0]) else MethodValue(self, args[0])
        return super().call_method(tx, name, args, kwargs)

    def set_attr(self, tx: Context, name: str, value: Value) -> None:
        tx.attributes.set_of_new_function(self, name, value)

    def describe(self) -> str:
        return self.qualname


_BOUND_KINDS: dict[type, type] = {
    types.MethodDescriptorType: types.BuiltinMethodType,
    types.WrapperDescriptorType: types.MethodWrapperType,
}
"""What functions in C that take ``self`` are when they are bound."""


def _method_key(tx: Context, receiver: Value, function: Any) -> Any:
    """Methods are equal where they are the same function of the same object."""
    if isinstance(receiver, Const):
        return (receiver.value, types.MethodType, function)
    return (receiver.identity_key(tx), types.MethodType, function)


class MethodValue(Value):
    """A function bound to an object; one in C as ``super()`` finds it. ``real``: the method, if it existed."""

    __slots__ = ("function", "real", "receiver", "source")
    is_read_again = True

    def __init__(
        self, function: Value, receiver: Value, source: Source | None = None, real: Any = None
    ) -> None:
        self.function = function
        self.receiver = receiver
        self.source = source
        self.real = real

    def identity(self) -> object:
        return self if self.real is None else self.real

    def own_key(self, tx: Context) -> Any:
        return _method_key(tx, self.receiver, tx.hash_key(self.function))

    def python_type(self) -> type:
        kind = self.function.python_type() if isinstance(self.function, Const) else types.FunctionType
        return _BOUND_KINDS.get(kind, types.MethodType)

    def children(self, tx: Context) -> list[Value]:
        return [self.function, self.receiver]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tx, [self.receiver, *args], kwargs)

    def get_attr(self, tx: Context, name: str) -> Value:
        """What the class of methods does not have, the function may."""
        if self.python_type() is not types.MethodType:
            return super().get_attr(tx, name)
        if name == "__doc__" or tx.attributes.in_class(types.MethodType, name) is fx_guards.ABSENT:
            return tx.attribute(self.function, name)
        return super().get_attr(tx, name)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if self.python_type() is types.MethodType:
            return {"__self__": self.receiver, "__func__": self.function}.get(name)
        if name == "__self__":
            return self.receiver
        return self.function.get_attr(tx, name) if name == "__name__" else None

    def describe(self) -> str:
        return f"the method {self.function.describe()}"


class BuiltinMethod(Value):
    """A method of a builtin object (``list.append``) bound to a value. ``real``: the method, if it existed.
    ``function``: the method in C that was found for an object of a class of the program, which is not looked up
    again."""

    __slots__ = ("function", "name", "real", "receiver", "source")
    is_read_again = True

    def __init__(
        self,
        receiver: Value,
        name: str,
        source: Source | None = None,
        real: Any = None,
        function: Any = None,
    ) -> None:
        self.receiver = receiver
        self.name = name
        self.source = source
        self.real = real
        self.function = function

    def identity(self) -> object:
        return self if self.real is None else self.real

    def own_key(self, tx: Context) -> Any:
        return _method_key(tx, self.receiver, self.name)

    def python_type(self) -> type:
        """Methods that Python gives a class for its slots are of a kind of their own."""
        if isinstance(self.receiver, Const):  # some are of a class of their own
            return type(getattr(self.receiver.value, self.name))
        found = inspect.getattr_static(self.receiver.python_type(), self.name, None)
        if isinstance(found, types.FunctionType):  # a method of torch's that is taken for one operation
            return types.MethodType
        is_slot = isinstance(found, types.WrapperDescriptorType)
        return types.MethodWrapperType if is_slot else types.BuiltinMethodType

    def children(self, tx: Context) -> list[Value]:
        return [self.receiver]

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.function is not None:
            return tx.calls.call_method_in_c(self.receiver, self.function, args, kwargs)
        return self.receiver.call_method(tx, self.name, args, kwargs)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if name == "__self__":
            return self.receiver
        return Const(self.name) if name == "__name__" else None

    def describe(self) -> str:
        return f"{self.receiver.describe()}.{self.name}"


class SuperValue(Value):
    """``super(cls, receiver)``."""

    __slots__ = ("cls", "receiver")
    python_class = super

    def __init__(self, cls: type, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver

    def children(self, tx: Context) -> list[Value]:
        return [self.receiver]

    def get_attr(self, tx: Context, name: str) -> Value:
        return tx.attributes.of_super(self, name)

    def call_method(self, tx: Context, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.get_attr(tx, name).call(tx, args, kwargs)


class DescriptorValue(Value):
    """A ``property``, ``staticmethod`` or ``classmethod`` object that the trace made of ``arguments``."""

    __slots__ = ("arguments", "kind")

    def __init__(self, kind: type, arguments: list[Value]) -> None:
        self.kind = kind
        self.arguments = arguments

    def python_type(self) -> type:
        return self.kind

    def children(self, tx: Context) -> list[Value]:
        return list(self.arguments)

    def own_attribute(self, tx: Context, name: str) -> Value | None:
        if self.kind is property:
            place = {"fget": 0, "fset": 1, "fdel": 2}.get(name, -1)
            return None if place < 0 else [*self.arguments, NONE, NONE, NONE][place]
        (function,) = self.arguments
        if name in functools.WRAPPER_ASSIGNMENTS:
            return function.get_attr(tx, name)
        return function if name in ("__func__", "__wrapped__") else None

    def call(self, tx: Context, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if self.kind is staticmethod:
            return self.arguments[0].call(tx, args, kwargs)
        return super().call(tx, args, kwargs)
