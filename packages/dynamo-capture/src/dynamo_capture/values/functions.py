"""Callables made while tracing: closures, bound methods, methods of symbolic values, partials, super()."""

from __future__ import annotations

from collections.abc import Iterator
from types import CodeType
from typing import TYPE_CHECKING, Any

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.values.base import Value

if TYPE_CHECKING:
    from dynamo_capture.emission import Emission
    from dynamo_capture.tracer import Tracer


class CellValue(Value):
    """A closure cell. ``content`` is None while it is empty."""

    __slots__ = ("content", "mutated")

    def __init__(self, content: Value | None, source: Any = None) -> None:
        self.source = source
        self.content = content
        self.mutated = False

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "cell_contents" and self.content is not None:
            return self.content
        raise Raised(tracer.exception(ValueError("Cell is empty")))


class ClosureValue(Value):
    """A function made by the traced program. ``globals_of`` is the frame-independent owner of its globals."""

    __slots__ = ("attributes", "cells", "code", "defaults", "globals_value", "kwdefaults", "name")

    def __init__(
        self,
        code: CodeType,
        name: str,
        defaults: list[Value],
        kwdefaults: dict[str, Value],
        cells: list[CellValue],
        globals_value: Any,
    ) -> None:
        self.source = None
        self.code = code
        self.name = name
        self.defaults = defaults
        self.kwdefaults = kwdefaults
        self.cells = cells
        self.globals_value = globals_value
        self.attributes: dict[str, Value] = {}

    def python_type(self) -> type:
        return type(lambda: None)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def describe(self) -> str:
        return f"the function {self.name}"

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.inline_closure(self, args, kwargs)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name in self.attributes:
            return self.attributes[name]
        known = {"__name__": self.code.co_name, "__qualname__": self.name, "__doc__": None}
        if name in known:
            return tracer.of_python(known[name])
        if name == "__code__":
            return tracer.of_python(self.code)
        raise Raised(tracer.exception(AttributeError(f"'function' object has no attribute '{name}'")))

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        self.attributes[name] = value

    def emit(self, emission: Emission) -> None:
        emission.build_closure(self)


class BoundMethod(Value):
    """``function`` bound to ``receiver``."""

    __slots__ = ("function", "receiver")

    def __init__(self, function: Value, receiver: Value, source: Any = None) -> None:
        self.source = source
        self.function = function
        self.receiver = receiver

    def python_type(self) -> type:
        return type(self.__init__)

    def truth(self, tracer: Tracer) -> bool:
        return True

    def describe(self) -> str:
        return self.function.describe()

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tracer, [self.receiver, *args], kwargs)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "__self__":
            return self.receiver
        if name == "__func__":
            return self.function
        return self.function.getattr(tracer, name)

    def emit(self, emission: Emission) -> None:
        emission.build_method(self)


class TensorMethod(Value):
    """A method of a tensor, by name."""

    __slots__ = ("name", "tensor")

    def __init__(self, tensor: Value, name: str) -> None:
        self.source = None
        self.tensor = tensor
        self.name = name

    def describe(self) -> str:
        return f"Tensor.{self.name}"

    def truth(self, tracer: Tracer) -> bool:
        return True

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.tensor_call(self.name, [self.tensor, *args], kwargs)

    def children(self) -> Iterator[Value]:
        return iter((self.tensor,))

    def emit(self, emission: Emission) -> None:
        emission.value(self.tensor)
        emission.emitter.load_attr(self.name)


class ContainerMethod(Value):
    """A method of a list, tuple, dict, set, iterator or constant, by name."""

    __slots__ = ("container", "name")

    def __init__(self, container: Value, name: str) -> None:
        self.source = None
        self.container = container
        self.name = name

    def describe(self) -> str:
        return f"{self.container.python_type().__name__}.{self.name}"

    def truth(self, tracer: Tracer) -> bool:
        return True

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.container_call(self.container, self.name, args, kwargs)

    def children(self) -> Iterator[Value]:
        return iter((self.container,))

    def emit(self, emission: Emission) -> None:
        emission.value(self.container)
        emission.emitter.load_attr(self.name)


class PartialValue(Value):
    """``functools.partial(function, *args, **kwargs)``."""

    __slots__ = ("args", "function", "kwargs")

    def __init__(self, function: Value, args: list[Value], kwargs: dict[str, Value]) -> None:
        self.source = None
        self.function = function
        self.args = args
        self.kwargs = kwargs

    def truth(self, tracer: Tracer) -> bool:
        return True

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return self.function.call(tracer, [*self.args, *args], {**self.kwargs, **kwargs})

    def children(self) -> Iterator[Value]:
        yield self.function
        yield from self.args
        yield from self.kwargs.values()

    def emit(self, emission: Emission) -> None:
        emission.build_partial(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "func":
            return self.function
        raise GraphBreak("attribute", f"attribute {name!r} of a partial")


class SuperValue(Value):
    """``super(cls, receiver)``."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: type, receiver: Value) -> None:
        self.source = None
        self.cls = cls
        self.receiver = receiver

    def getattr(self, tracer: Tracer, name: str) -> Value:
        return tracer.super_getattr(self, name)
