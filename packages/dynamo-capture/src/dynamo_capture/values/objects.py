"""Existing objects, known by where they came from: reads follow Python's attribute protocol and leave guards behind."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from fx_interface.source import AttrSource, InstanceDictSource, ItemSource, Source, TypeSource
from torch import nn

from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.values.base import MISSING, Value, class_attribute

if TYPE_CHECKING:
    from dynamo_capture.emission import Emission
    from dynamo_capture.tracer import Tracer

class ObjectValue(Value):
    """A Python object that existed before, or a class, module or function.

    ``overlay`` holds attributes set while tracing (MISSING: deleted); they are written at the end.
    """

    __slots__ = ("obj", "overlay", "typed")

    def __init__(self, obj: Any, source: Source | None) -> None:
        self.source = source
        self.obj = obj
        self.overlay: dict[str, Any] | None = None
        self.typed = False

    def python_type(self) -> type:
        return type(self.obj)

    def describe(self) -> str:
        name = getattr(self.obj, "__qualname__", None) or f"a {type(self.obj).__name__}"
        return f"{name} ({self.source})" if self.source is not None else str(name)

    def as_python(self) -> Any:
        if self.overlay:
            raise GraphBreak("value", f"{self.describe()} was changed")
        return self.obj

    def guard_type(self, tracer: Tracer) -> None:
        """Rely on the object's class."""
        if not self.typed:
            self.typed = True
            if self.source is not None:
                tracer.guard_type(self.source, type(self.obj))

    def truth(self, tracer: Tracer) -> bool:
        self.guard_type(tracer)
        cls = type(self.obj)
        if class_attribute(cls, "__bool__") is MISSING and class_attribute(cls, "__len__") is MISSING:
            return True
        return tracer.truth_by_protocol(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if self.overlay is not None and name in self.overlay:
            found = self.overlay[name]
            if found is MISSING:
                raise Raised(tracer.exception(AttributeError(name)))
            return found
        obj = self.obj
        if isinstance(obj, type):
            return tracer.class_getattr(self, name)
        if isinstance(obj, types.ModuleType):
            return self._module_getattr(tracer, obj, name)
        if name == "__class__":
            self.guard_type(tracer)
            return tracer.wrap(type(obj), None if self.source is None else TypeSource(self.source))
        if name == "__dict__":
            return self._dict(tracer)
        self.guard_type(tracer)
        cls = type(obj)
        found = class_attribute(cls, name)
        if found is not MISSING:
            kind = type(found)
            if kind is property:
                return tracer.call_property(found, self, name)
            if hasattr(kind, "__set__") and hasattr(kind, "__get__"):
                return self._descriptor(tracer, found, name)
        own = self._own(tracer, name)
        if own is not None:
            return own
        if found is not MISSING:
            return tracer.bind(found, self, name)
        return self._missing(tracer, name)

    def _own(self, tracer: Tracer, name: str) -> Value | None:
        """The instance's own attribute; a guard notes what was found, or that there is none."""
        try:
            own = object.__getattribute__(self.obj, "__dict__")
        except AttributeError:
            return None
        if type(own) is not dict:
            return None
        base = None if self.source is None else InstanceDictSource(self.source)
        if name in own:
            return tracer.wrap(own[name], None if base is None else ItemSource(base, name))
        if base is not None:
            tracer.guard_absent(base, name)
        return None

    def _descriptor(self, tracer: Tracer, found: Any, name: str) -> Value:
        """A data descriptor: Python code is traced, C's is asked now and guarded by its answer."""
        getter = class_attribute(type(found), "__get__")
        if isinstance(getter, types.FunctionType):
            return tracer.call_python(
                getter, [tracer.of_python(found), self, tracer.of_python(type(self.obj))]
            )
        try:
            value = getattr(self.obj, name)
        except AttributeError as error:
            raise Raised(tracer.exception(error)) from None
        return tracer.wrap(value, None if self.source is None else AttrSource(self.source, name))

    def _missing(self, tracer: Tracer, name: str) -> Value:
        fallback = class_attribute(type(self.obj), "__getattr__")
        if isinstance(fallback, types.FunctionType):
            from dynamo_capture.values.constants import ConstantValue

            return tracer.call_python(fallback, [self, ConstantValue(name)])
        message = f"'{type(self.obj).__name__}' object has no attribute '{name}'"
        raise Raised(tracer.exception(AttributeError(message)))

    def _dict(self, tracer: Tracer) -> Value:
        self.guard_type(tracer)
        if self.overlay:
            raise GraphBreak("attribute", "__dict__ of an object that was changed while tracing")
        return tracer.wrap(
            self.obj.__dict__, None if self.source is None else InstanceDictSource(self.source)
        )

    def _module_getattr(self, tracer: Tracer, module: types.ModuleType, name: str) -> Value:
        if name == "__dict__":
            return tracer.wrap(module.__dict__, None if self.source is None else InstanceDictSource(self.source))
        if name in module.__dict__:
            source = None if self.source is None else ItemSource(InstanceDictSource(self.source), name)
            return tracer.wrap(module.__dict__[name], source)
        try:
            value = getattr(module, name)
        except AttributeError as error:
            raise Raised(tracer.exception(error)) from None
        return tracer.wrap(value, None if self.source is None else AttrSource(self.source, name))

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        if isinstance(self.obj, (type, types.ModuleType, types.FunctionType)):
            raise GraphBreak("side-effect", f"attribute {name!r} of {self.describe()} is set")
        self.guard_type(tracer)
        setter = class_attribute(type(self.obj), "__setattr__")
        if isinstance(setter, types.FunctionType) and not self._is_plain_module_write(tracer, value):
            from dynamo_capture.values.constants import ConstantValue

            tracer.call_python(setter, [self, ConstantValue(name), value])
            return
        self.store(tracer, name, value)

    def store(self, tracer: Tracer, name: str, value: Value) -> None:
        """``object.__setattr__``: properties are called, anything else is noted for the end."""
        found = class_attribute(type(self.obj), name)
        if type(found) is property:
            if found.fset is None:
                raise Raised(tracer.exception(AttributeError(f"property {name!r} has no setter")))
            tracer.call_python(found.fset, [self, value])
            return
        self._touch(tracer)
        assert self.overlay is not None
        self.overlay[name] = value

    def delattr(self, tracer: Tracer, name: str) -> None:
        self.getattr(tracer, name)
        self._touch(tracer)
        assert self.overlay is not None
        self.overlay[name] = MISSING

    def _touch(self, tracer: Tracer) -> None:
        if self.source is None:
            raise GraphBreak("side-effect", f"a change of {self.describe()}, which has no source")
        if self.overlay is None:
            self.overlay = {}
            tracer.effects.append(self)

    def _is_plain_module_write(self, tracer: Tracer, value: Value) -> bool:
        """nn.Module's ``__setattr__`` for a value that is no parameter, module or tensor is an ordinary write."""
        from dynamo_capture.values.tensors import TensorValue

        own = class_attribute(type(self.obj), "__setattr__") is nn.Module.__setattr__
        return own and not isinstance(value, (TensorValue, ModuleValue))

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_object(self, args, kwargs)

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        return tracer.iterate_by_protocol(self)

    def emit(self, emission: Emission) -> None:
        if self.source is not None:
            emission.load_source(self.source)
        else:
            emission.load_const(self.obj)


class ModuleValue(ObjectValue):
    """An ``nn.Module``: parameters, buffers and submodules are read from the module's own tables."""

    __slots__ = ()

    def _missing(self, tracer: Tracer, name: str) -> Value:
        if class_attribute(type(self.obj), "__getattr__") is not nn.Module.__getattr__:
            return super()._missing(tracer, name)
        own = self.obj.__dict__
        for table in ("_parameters", "_buffers", "_modules"):
            if table in own and name in own[table]:
                source = None
                if self.source is not None:
                    source = ItemSource(ItemSource(InstanceDictSource(self.source), table), name)
                return tracer.wrap(own[table][name], source)
        message = f"'{type(self.obj).__name__}' object has no attribute '{name}'"
        raise Raised(tracer.exception(AttributeError(message)))

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_module(self, args, kwargs)


class NewObject(Value):
    """An object made while tracing. ``storage``: the builtin that a subclass of dict, list or tuple extends."""

    __slots__ = ("attributes", "cls", "storage")

    def __init__(self, cls: type, storage: Value | None = None) -> None:
        self.source = None
        self.cls = cls
        self.attributes: dict[str, Value] = {}
        self.storage = storage

    def python_type(self) -> type:
        return self.cls

    def describe(self) -> str:
        return f"a new {self.cls.__name__}"

    def truth(self, tracer: Tracer) -> bool:
        plain = class_attribute(self.cls, "__bool__") is MISSING
        if plain and class_attribute(self.cls, "__len__") is MISSING:
            return True
        return tracer.truth_by_protocol(self)

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "__class__":
            return tracer.of_python(self.cls)
        found = class_attribute(self.cls, name)
        if found is not MISSING:
            if type(found) is property:
                return tracer.call_property(found, self, name)
            getter = class_attribute(type(found), "__get__")
            if hasattr(type(found), "__set__") and isinstance(getter, types.FunctionType):
                return tracer.call_python(getter, [tracer.of_python(found), self, tracer.of_python(self.cls)])
        if name in self.attributes:
            return self.attributes[name]
        if name == "__dict__":
            from dynamo_capture.values.containers import DictValue

            return DictValue(dict(self.attributes))
        if found is not MISSING:
            if isinstance(found, (types.MemberDescriptorType,)):
                raise Raised(tracer.exception(AttributeError(name)))
            return tracer.bind(found, self, name)
        fallback = class_attribute(self.cls, "__getattr__")
        if isinstance(fallback, types.FunctionType):
            from dynamo_capture.values.constants import ConstantValue

            return tracer.call_python(fallback, [self, ConstantValue(name)])
        message = f"'{self.cls.__name__}' object has no attribute '{name}'"
        raise Raised(tracer.exception(AttributeError(message)))

    def setattr(self, tracer: Tracer, name: str, value: Value) -> None:
        setter = class_attribute(self.cls, "__setattr__")
        if isinstance(setter, types.FunctionType):
            from dynamo_capture.values.constants import ConstantValue

            tracer.call_python(setter, [self, ConstantValue(name), value])
            return
        self.store(tracer, name, value)

    def store(self, tracer: Tracer, name: str, value: Value) -> None:
        """``object.__setattr__``."""
        found = class_attribute(self.cls, name)
        if type(found) is property:
            if found.fset is None:
                raise Raised(tracer.exception(AttributeError(f"property {name!r} has no setter")))
            tracer.call_python(found.fset, [self, value])
            return
        self.attributes[name] = value

    def delattr(self, tracer: Tracer, name: str) -> None:
        if name not in self.attributes:
            raise Raised(tracer.exception(AttributeError(name)))
        del self.attributes[name]

    def call(self, tracer: Tracer, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return tracer.call_special(self, "__call__", args, kwargs)

    def iterate(self, tracer: Tracer) -> Iterator[Value]:
        if self.storage is not None and not isinstance(
            class_attribute(self.cls, "__iter__"), types.FunctionType
        ):
            return self.storage.iterate(tracer)
        return tracer.iterate_by_protocol(self)

    def children(self) -> Iterator[Value]:
        if self.storage is not None:
            yield self.storage
        yield from self.attributes.values()

    def emit(self, emission: Emission) -> None:
        emission.build_object(self)


class ExceptionValue(NewObject):
    """An exception instance made while tracing."""

    __slots__ = ("args",)

    def __init__(self, cls: type, args: list[Value]) -> None:
        super().__init__(cls)
        self.args = args

    def __repr__(self) -> str:
        return f"{self.cls.__name__}({', '.join(repr(a.as_python()) if a.constant else a.describe() for a in self.args)})"

    def getattr(self, tracer: Tracer, name: str) -> Value:
        if name == "args":
            from dynamo_capture.values.containers import SequenceValue

            return SequenceValue(list(self.args), tuple)
        if name == "__cause__":
            return self.attributes.get(name) or tracer.const(None)
        if name in ("__traceback__", "__context__"):
            raise GraphBreak("exception", f"{name} is read")
        return super().getattr(tracer, name)

    def children(self) -> Iterator[Value]:
        yield from self.args
        yield from super().children()
