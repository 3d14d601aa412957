"""Constants: Python values that are computed with while tracing."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from fx_interface.source import Source

from dynamo_capture.graph_breaks import Raised
from dynamo_capture.values.base import Value

if TYPE_CHECKING:
    from dynamo_capture.emission import Emission
    from dynamo_capture.tracer import Tracer

LITERALS = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), type(NotImplemented))
TORCH_LITERALS = (torch.dtype, torch.device, torch.layout, torch.memory_format, torch.finfo, torch.iinfo)


def is_literal(value: Any) -> bool:
    """Whether ``value`` is immutable, harmless, and computed with while tracing."""
    kind = type(value)
    return kind in LITERALS or kind in TORCH_LITERALS or kind is range or isinstance(value, enum.Enum)


class ConstantValue(Value):
    """A literal, a dtype, a device, an enum member, a range, or a slice of constants."""

    __slots__ = ("value",)
    constant: ClassVar[bool] = True

    def __init__(self, value: Any, source: Source | None = None) -> None:
        self.source = source
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        return f"the constant {self.value!r}"

    def truth(self, tracer: Tracer) -> bool:
        return bool(self.value)

    def as_python(self) -> Any:
        return self.value

    def getattr(self, tracer: Tracer, name: str) -> Value:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise Raised(tracer.exception(error)) from None
        if isinstance(found, (types.BuiltinMethodType, types.MethodWrapperType)):
            from dynamo_capture.values.functions import ContainerMethod

            return ContainerMethod(self, name)
        return tracer.of_python(found)

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        return tracer.fold(lambda value, index: value[index], [self, key])

    def length(self, tracer: Tracer) -> Value:
        return tracer.fold(len, [self])

    def contains(self, tracer: Tracer, item: Value) -> Value:
        if not item.constant:
            return super().contains(tracer, item)
        return tracer.fold(lambda value, other: other in value, [self, item])

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        try:
            items = iter(self.value)
        except TypeError as error:
            raise Raised(tracer.exception(error)) from None
        return (tracer.of_python(item) for item in items)

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        raise Raised(tracer.exception(TypeError(f"{type(self.value).__name__!r} object is not callable")))

    def emit(self, emission: Emission) -> None:
        emission.load_const(self.value)
