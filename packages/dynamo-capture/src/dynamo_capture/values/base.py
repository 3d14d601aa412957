"""The base of symbolic values: what the translator keeps on its stack in place of the program's objects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from fx_interface.source import Source

from dynamo_capture.graph_breaks import GraphBreak

if TYPE_CHECKING:
    from dynamo_capture.emission import Emission
    from dynamo_capture.tracer import Tracer


MISSING: Any = object()


def class_attribute(cls: type, name: str) -> Any:
    """What the MRO holds under ``name``, unbound; MISSING if nothing."""
    for base in cls.__mro__:
        found = base.__dict__.get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


class Value:
    """One value. ``source`` tells where it can be read again at run time; None for what the trace made."""

    __slots__ = ("source",)
    constant: ClassVar[bool] = False

    def __init__(self, source: Source | None = None) -> None:
        self.source = source

    def python_type(self) -> type:
        """The class that ``type(value)`` gives."""
        raise GraphBreak("value", f"the type of {self} is not known")

    def describe(self) -> str:
        """A few words for messages."""
        return f"{type(self).__name__} ({self.source})" if self.source else type(self).__name__

    def truth(self, tracer: Tracer) -> bool:
        """``bool(value)``."""
        return tracer.truth_by_protocol(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        """``getattr(value, name)``; Raised(AttributeError) where there is none."""
        raise GraphBreak("attribute", f"attribute {name!r} of {self.describe()}")

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        """``setattr(value, name, new)``."""
        raise GraphBreak("attribute", f"setting {name!r} of {self.describe()}")

    def delattr(self, tracer: Tracer, name: str) -> None:
        """``delattr(value, name)``."""
        raise GraphBreak("attribute", f"deleting {name!r} of {self.describe()}")

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """``value(*args, **kwargs)``."""
        raise GraphBreak("unknown-call", f"a call of {self.describe()}")

    def getitem(self, tracer: Tracer, key: Value) -> Value:
        """``value[key]``."""
        return tracer.call_special(self, "__getitem__", [key])

    def setitem(self, tracer: Tracer, key: Value, value: Value) -> None:
        """``value[key] = new``."""
        tracer.call_special(self, "__setitem__", [key, value])

    def delitem(self, tracer: Tracer, key: Value) -> None:
        """``del value[key]``."""
        tracer.call_special(self, "__delitem__", [key])

    def length(self, tracer: Tracer) -> Value:
        """``len(value)``."""
        return tracer.call_special(self, "__len__", [])

    def contains(self, tracer: Tracer, item: Value) -> Value:
        """``item in value``."""
        for candidate in self.iterate(tracer):
            if candidate is item or tracer.compare("==", candidate, item).truth(tracer):
                return tracer.const(True)
        return tracer.const(False)

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        """The items of ``iter(value)``, each made when it is asked for."""
        return tracer.iterate_by_protocol(self)

    def emit(self, emission: Emission) -> None:
        """Write instructions that leave the value on the stack at run time."""
        if self.source is None:
            raise GraphBreak("value", f"{self.describe()} cannot be rebuilt")
        emission.load_source(self.source)

    def children(self) -> Iterator[Value]:
        """Values that this one holds, for finding what a result needs."""
        return iter(())

    def as_python(self) -> Any:
        """The Python object, for values that are one."""
        raise GraphBreak("value", f"{self.describe()} is not a constant")


class NullValue(Value):
    """The NULL that calls push; also an unbound local."""

    __slots__ = ()

    def emit(self, emission: Emission) -> None:
        raise GraphBreak("value", "an unfinished call is on the stack")


NULL = NullValue()
