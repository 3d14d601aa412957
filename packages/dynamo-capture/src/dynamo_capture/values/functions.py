"""Callables: functions the trace made, bound methods, partial functions, cells, ``super`` objects."""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from dynamo_capture.values.base import Value
from dynamo_capture.values.constant import Const

if TYPE_CHECKING:
    from dynamo_capture.frame import GlobalsScope
    from dynamo_capture.trace import Trace
    from fx_interface.source import Source


class CellValue(Value):
    """A closure cell. ``content`` None: empty. ``real``: the cell that existed before, whose change is an effect."""

    __slots__ = ("content", "real", "source")

    def __init__(self, content: Value | None = None, real: Any = None, source: Source | None = None) -> None:
        self.content = content
        self.real = real
        self.source = source

    def python_type(self) -> type:
        return types.CellType

    def get_attr(self, tx: Trace, name: str) -> Value:
        if name == "cell_contents":
            if self.content is None:
                raise tx.raises(ValueError, "Cell is empty")
            return tx.force(self.content)
        return super().get_attr(tx, name)


class FunctionValue(Value):
    """A function that the trace made by ``def`` or ``lambda``."""

    __slots__ = (
        "attrs",
        "closure",
        "code",
        "defaults",
        "globals",
        "kwdefaults",
        "name",
        "qualname",
        "source",
    )

    def __init__(self, code: types.CodeType, scope: GlobalsScope) -> None:
        self.code = code
        self.globals = scope
        self.defaults: list[Value] = []
        self.kwdefaults: dict[str, Value] = {}
        self.closure: list[CellValue] = []
        self.name = code.co_name
        self.qualname = code.co_qualname
        self.attrs: dict[str, Value] = {}
        self.source: Source | None = None

    def python_type(self) -> type:
        return types.FunctionType

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tx.inliner.call_function(self, args, kwargs)

    def truth(self, tx: Trace) -> bool:
        return True

    def get_attr(self, tx: Trace, name: str) -> Value:
        return tx.attributes.of_new_function(self, name)

    def set_attr(self, tx: Trace, name: str, value: Value) -> None:
        if self.source is not None:
            raise self.unsupported(f"setting the attribute {name!r}")
        self.attrs[name] = value

    def describe(self) -> str:
        return self.qualname


class MethodValue(Value):
    """A function bound to an object."""

    __slots__ = ("function", "receiver", "source")

    def __init__(self, function: Value, receiver: Value, source: Source | None = None) -> None:
        self.function = function
        self.receiver = receiver
        self.source = source

    def python_type(self) -> type:
        return types.MethodType

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tx, [self.receiver, *args], kwargs)

    def truth(self, tx: Trace) -> bool:
        return True

    def get_attr(self, tx: Trace, name: str) -> Value:
        if name == "__self__":
            return self.receiver
        if name == "__func__":
            return self.function
        return self.function.get_attr(tx, name)

    def describe(self) -> str:
        return f"the method {self.function.describe()}"


class BuiltinMethod(Value):
    """A method of a builtin object (``list.append``) bound to a value."""

    __slots__ = ("name", "receiver", "source")

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name
        self.source: Source | None = None

    def python_type(self) -> type:
        return types.BuiltinMethodType

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.receiver.call_method(tx, self.name, args, kwargs)

    def truth(self, tx: Trace) -> bool:
        return True

    def get_attr(self, tx: Trace, name: str) -> Value:
        if name == "__self__":
            return self.receiver
        if name == "__name__":
            return Const(self.name)
        return super().get_attr(tx, name)

    def describe(self) -> str:
        return f"{self.receiver.describe()}.{self.name}"


class PartialValue(Value):
    """``functools.partial``."""

    __slots__ = ("args", "attrs", "function", "kwargs", "source")

    def __init__(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], source: Source | None = None
    ) -> None:
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.source = source
        self.attrs: dict[str, Value] = {}

    def python_type(self) -> type:
        return functools.partial

    def call(self, tx: Trace, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tx, [*self.args, *args], {**self.kwargs, **kwargs})

    def truth(self, tx: Trace) -> bool:
        return True

    def get_attr(self, tx: Trace, name: str) -> Value:
        from dynamo_capture.values.mapping import DictValue
        from dynamo_capture.values.sequences import TupleValue

        if name == "func":
            return self.function
        if name == "args":
            return TupleValue(list(self.args))
        if name == "keywords":
            return DictValue({key: [Const(key), value] for key, value in self.kwargs.items()})
        if name in self.attrs:
            return self.attrs[name]
        raise tx.raises(AttributeError, f"'functools.partial' object has no attribute {name!r}")

    def set_attr(self, tx: Trace, name: str, value: Value) -> None:
        self.attrs[name] = value


class SuperValue(Value):
    """``super(cls, receiver)``."""

    __slots__ = ("cls", "receiver", "source")

    def __init__(self, cls: type, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver
        self.source = None

    def python_type(self) -> type:
        return super

    def get_attr(self, tx: Trace, name: str) -> Value:
        return tx.attributes.of_super(self, name)

    def call_method(self, tx: Trace, name: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.get_attr(tx, name).call(tx, args, kwargs)


class DescriptorValue(Value):
    """A ``property``, ``staticmethod`` or ``classmethod`` object that the trace made around a traced function."""

    __slots__ = ("function", "kind", "source")

    def __init__(self, kind: type, function: Value) -> None:
        self.kind = kind
        self.function = function
        self.source = None

    def python_type(self) -> type:
        return self.kind
