"""Calls of existing objects: what is traced into, what becomes a graph node, what is computed now, what breaks the graph."""

from __future__ import annotations

import builtins
import functools
import logging
import types
from typing import TYPE_CHECKING, Any

import guards
import torch
from fx_interface.source import InstanceDictSource, ItemSource
from torch import nn

from dynamo_capture.builtin_calls import BUILTINS, PURE, PURE_MODULES
from dynamo_capture.frame import inline
from dynamo_capture.graph_breaks import GraphBreak, Raised
from dynamo_capture.operators import python_of
from dynamo_capture.values.base import MISSING, Value, class_attribute
from dynamo_capture.values.constants import ConstantValue
from dynamo_capture.values.containers import DictValue, SequenceValue, SetValue, SliceValue
from dynamo_capture.values.functions import BoundMethod, PartialValue
from dynamo_capture.values.objects import ExceptionValue, ModuleValue, NewObject, ObjectValue
from dynamo_capture.values.tensors import SymIntValue, TensorValue

if TYPE_CHECKING:
    from dynamo_capture.tracer import Tracer

_C_FUNCTIONS = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    types.ClassMethodDescriptorType,
)
_TORCH_PYTHON = ("torch.nn.functional", "torch.functional", "torch._C", "torch.special", "torch.fft", "torch.linalg")
_LOGGING = frozenset(
    getattr(logging.Logger, name)
    for name in ("debug", "info", "warning", "error", "critical", "exception", "log")
)
_HOOK_TABLES = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")


def call_object(tracer: Tracer, value: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call an existing object."""
    obj = value.obj
    handler = _handler(obj)
    if handler is not None:
        return handler(tracer, *args, **kwargs)
    if isinstance(obj, type):
        return _call_class(tracer, obj, args, kwargs)
    if isinstance(obj, types.FunctionType):
        return _call_function(tracer, value, args, kwargs)
    if isinstance(obj, _C_FUNCTIONS):
        return _call_c(tracer, obj, args, kwargs)
    if isinstance(obj, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        return tracer.tensor_call(obj, args, kwargs)
    if isinstance(obj, functools._lru_cache_wrapper):
        return _call_cached(tracer, obj, args, kwargs)
    found = class_attribute(type(obj), "__call__")
    if found is MISSING:
        raise tracer.raise_type(TypeError, f"'{type(obj).__name__}' object is not callable")
    if isinstance(found, types.FunctionType):
        value.guard_type(tracer)
        return tracer.wrap(found, None).call(tracer, [value, *args], kwargs)
    raise GraphBreak("unknown-call", f"a call of {value.describe()}")


def _handler(obj: Any) -> Any:
    try:
        return BUILTINS.get(obj)
    except TypeError:
        return None


def _call_cached(tracer: Tracer, obj: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A cached function: with constants its own cache answers, otherwise what it wraps is traced."""
    if args and isinstance(args[0], ObjectValue) and isinstance(args[0].obj, logging.Logger):
        return _log(tracer, obj, args, kwargs)  # "log this once": the cache is what makes it once
    if all(arg.constant for arg in (*args, *kwargs.values())):
        return tracer.fold(
            lambda *values: obj(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True))),
            [*args, *kwargs.values()],
        )
    return tracer.call_python(obj.__wrapped__, args, kwargs)


def _log(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A message to a logger: given after the graph, with the values of now."""
    texts = [tracer.snapshot(arg) for arg in args[1:]]
    return tracer.call_later(function, [args[0], *texts], {key: tracer.snapshot(value) for key, value in kwargs.items()})


def _holds_tensor(value: Value) -> bool:
    if isinstance(value, (TensorValue, SymIntValue)):
        return True
    if isinstance(value, (SequenceValue, DictValue, SliceValue)):
        return any(_holds_tensor(child) for child in value.children())
    return False


def _is_torch_function(function: Any) -> bool:
    """Whether a Python function of torch is one operation of the graph."""
    module = getattr(function, "__module__", None) or ""
    return module.startswith(_TORCH_PYTHON) or module == "torch" or module == "torch._tensor"


def _call_function(tracer: Tracer, value: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    function = value.obj
    operands = (*args, *kwargs.values())
    if _is_torch_function(function) and any(_holds_tensor(arg) for arg in operands):
        return _call_torch(tracer, function, args, kwargs)
    if function in PURE and all(_is_plain(arg) for arg in operands):
        return _fold_call(tracer, function, args, kwargs)
    if function in _LOGGING and _is_plain(args[0]):
        return _log(tracer, function, args, kwargs)
    if function.__module__ == "torch._dynamo.mutation_guard" and function.__name__ == "tag":
        # once stock's compiler has run in this process, it counts new modules; one that exists in the trace only is not
        # its business
        return ConstantValue(None)
    reason = getattr(function, "__fxstack_break__", None)
    if reason is not None:
        raise GraphBreak("asked-for", reason)
    if getattr(function, "__torch_dynamo_disable__", False) or getattr(function, "_torchdynamo_disable", False):
        raise GraphBreak("asked-for", f"{function.__qualname__} asks not to be compiled")
    return inline(tracer, value, args, kwargs)


def _call_torch(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """A function of ``torch.nn.functional`` and its like: one node, if its arguments can stand in a graph."""
    return tracer.tensor_call(function, args, kwargs)


def _call_c(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    operands = (*args, *kwargs.values())
    receiver = getattr(function, "__self__", None)
    objclass = getattr(function, "__objclass__", None)
    name = function.__name__
    if args and objclass is not None:
        return _call_descriptor(tracer, function, objclass, name, args, kwargs)
    if _from_torch(function):
        return _call_torch_builtin(tracer, function, args, kwargs)
    substitute = tracer.substitute(function)
    if substitute is not None:
        return tracer.call_python(substitute, args, kwargs)
    if isinstance(receiver, type) and name == "__new__":
        return _new(tracer, args)
    module = getattr(function, "__module__", None)
    if module in PURE_MODULES and all(_is_plain(arg) for arg in operands):
        return _fold_call(tracer, function, args, kwargs)
    if receiver is not None and not isinstance(receiver, (type, types.ModuleType)):
        return tracer.container_call(tracer.of_python(receiver), name, args, kwargs)
    if isinstance(receiver, type) and all(_is_plain(arg) for arg in operands):
        return _fold_call(tracer, function, args, kwargs)
    raise GraphBreak("unknown-call", f"a call of {getattr(function, '__qualname__', name)}")


def _from_torch(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__self__", None)
    if module.startswith("torch"):
        return True
    name = getattr(type(owner), "__name__", "") if owner is not None else ""
    return owner is not None and (
        getattr(owner, "__module__", "") == "torch._C"
        or name in ("_VariableFunctionsClass",)
        or getattr(owner, "__name__", "").startswith("torch")
    )


def _call_torch_builtin(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    operands = (*args, *kwargs.values())
    if function in PURE:
        return _fold_call(tracer, function, args, kwargs)
    if all(_is_plain(arg) for arg in operands) and not hasattr(torch, function.__name__):
        raise GraphBreak("unknown-call", f"a call of torch's {function.__name__}")
    return tracer.tensor_call(function, args, kwargs)


def _call_descriptor(
    tracer: Tracer, function: Any, cls: type, name: str, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """``cls.name(receiver, ...)`` of a class written in C."""
    receiver, rest = args[0], args[1:]
    if isinstance(receiver, TensorValue):
        return tracer.tensor_call(name, args, kwargs)
    if isinstance(receiver, NewObject):
        if name == "__setattr__":
            receiver.store(tracer, rest[0].as_python(), rest[1])
            return ConstantValue(None)
        if name == "__delattr__":
            receiver.delattr(tracer, rest[0].as_python())
            return ConstantValue(None)
        if name == "__getattribute__":
            return receiver.getattr(tracer, rest[0].as_python())
        if receiver.storage is not None and cls is not object:
            return tracer.container_call(receiver.storage, name, rest, kwargs)
        if name == "__init__":
            if isinstance(receiver, ExceptionValue):
                receiver.args = rest
            return ConstantValue(None)
        if name in ("__repr__", "__str__"):
            raise GraphBreak("unknown-call", f"the text of {receiver.describe()}")
    if isinstance(receiver, ObjectValue):
        if name == "__setattr__":
            receiver.store(tracer, rest[0].as_python(), rest[1])
            return ConstantValue(None)
        if name == "__getattribute__":
            return receiver.getattr(tracer, rest[0].as_python())
        if name == "__init__" and cls is object:
            return ConstantValue(None)
        if name in ("__eq__", "__ne__") and cls is object:
            return ConstantValue(NotImplemented)
        if isinstance(receiver.obj, (dict, list, tuple, set, frozenset)):
            return tracer.container_call(tracer.storage_of(receiver), name, rest, kwargs)
        if isinstance(receiver.obj, (type, types.MappingProxyType)) or name in ("__hash__", "__eq__", "__contains__", "__len__", "__getitem__"):
            if all(_is_plain(arg) for arg in args):
                return _fold_call(tracer, function, args, kwargs)
    if isinstance(receiver, (SequenceValue, DictValue, SetValue)) or receiver.constant:
        substitute = tracer.substitute(function)
        if substitute is not None and not receiver.constant:
            return tracer.call_python(substitute, args, kwargs)
        return tracer.container_call(receiver, name, rest, kwargs)
    raise GraphBreak("unknown-call", f"a call of {cls.__name__}.{name} on {receiver.describe()}")


def _is_plain(value: Value) -> bool:
    """Whether the value is a Python object that may be handed to a pure function now."""
    if value.constant:
        return True
    if isinstance(value, ObjectValue):
        return not value.overlay
    if isinstance(value, BoundMethod):
        return isinstance(value.function, ObjectValue) and _is_plain(value.receiver)
    if isinstance(value, (SequenceValue, DictValue, SetValue, SliceValue)):
        return all(_is_plain(child) for child in value.children())
    return False


def _fold_call(tracer: Tracer, function: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    try:
        return tracer.of_python(
            function(*(python_of(tracer, a) for a in args), **{k: python_of(tracer, v) for k, v in kwargs.items()})
        )
    except (GraphBreak, Raised):
        raise
    except Exception as error:
        raise Raised(tracer.exception(error)) from None


# ---- classes ----


def _call_class(tracer: Tracer, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Make an instance."""
    meta_call = class_attribute(type(cls), "__call__")
    if isinstance(meta_call, types.FunctionType) and not issubclass(cls, nn.Module):
        if issubclass(cls, __import__("enum").Enum):
            return _fold_call(tracer, cls, args, kwargs)
        if not _is_harmless_metaclass(type(cls)):
            return tracer.call_python(meta_call, [tracer.wrap(cls, None), *args], kwargs)
    substitute = tracer.substitute(cls)
    if substitute is not None:
        return tracer.call_python(substitute, args, kwargs)
    if issubclass(cls, BaseException):
        return _make_exception(tracer, cls, args, kwargs)
    if issubclass(cls, (torch.Tensor, torch.autograd.Function)):
        raise GraphBreak("unknown-call", f"a {cls.__name__} is made")
    if cls in PURE and all(_is_plain(arg) for arg in (*args, *kwargs.values())):
        return _fold_call(tracer, cls, args, kwargs)
    new = class_attribute(cls, "__new__")
    if isinstance(new, staticmethod):
        new = new.__func__
    if isinstance(new, types.FunctionType):
        made = tracer.wrap(new, tracer.member_source(cls, "__new__")).call(tracer, [tracer.wrap(cls, None), *args], kwargs)
    else:
        made = _new(tracer, [tracer.wrap(cls, None), *args])
    init = class_attribute(cls, "__init__")
    if isinstance(made, NewObject) and issubclass(made.cls, cls):
        if isinstance(init, types.FunctionType):
            tracer.wrap(init, tracer.member_source(cls, "__init__")).call(tracer, [made, *args], kwargs)
        elif made.storage is not None:
            _fill(tracer, made, args, kwargs)
        elif (args or kwargs) and not isinstance(new, types.FunctionType) and init is object.__init__:
            raise tracer.raise_type(TypeError, f"{cls.__name__}() takes no arguments")
    return made


def _is_harmless_metaclass(meta: type) -> bool:
    return meta.__module__ in ("abc", "enum", "typing", "torch._C")


def _make_exception(tracer: Tracer, cls: type, args: list[Value], kwargs: dict[str, Value]) -> Value:
    made = ExceptionValue(cls, args)
    init = class_attribute(cls, "__init__")
    if isinstance(init, types.FunctionType):
        tracer.call_python(init, [made, *args], kwargs)
    return made


_STORAGES: dict[type, Any] = {
    dict: lambda: DictValue({}),
    list: lambda: SequenceValue([], list),
    tuple: lambda: SequenceValue([], tuple),
    set: lambda: SetValue({}),
    __import__("collections").OrderedDict: lambda: DictValue({}, __import__("collections").OrderedDict),
}


def _new(tracer: Tracer, args: list[Value]) -> Value:
    """``object.__new__(cls)`` and its like."""
    cls = args[0].as_python()
    bases = [base for base in cls.__mro__ if base in _STORAGES]
    if bases and cls.__mro__.index(bases[0]) >= 0:
        if bases[0] is tuple:
            items = list(args[1].iterate(tracer)) if len(args) > 1 else []
            return SequenceValue(items, cls)
        return NewObject(cls, _STORAGES[bases[0]]())
    for base in cls.__mro__[:-1]:
        if not base.__flags__ & (1 << 9):
            raise GraphBreak("unknown-call", f"a {cls.__name__} is made, whose base {base.__name__} is written in C")
    return NewObject(cls)


def _fill(tracer: Tracer, made: NewObject, args: list[Value], kwargs: dict[str, Value]) -> None:
    assert made.storage is not None
    if isinstance(made.storage, DictValue):
        tracer.container_call(made.storage, "update", args, kwargs)
    elif isinstance(made.storage, SequenceValue) and args:
        made.storage.items.extend(args[0].iterate(tracer))
    elif isinstance(made.storage, SetValue) and args:
        tracer.container_call(made.storage, "update", args, {})


# ---- modules ----


def call_module(tracer: Tracer, value: ModuleValue, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """Call an ``nn.Module``: its ``forward``, directly where no hook can see the difference."""
    module = value.obj
    value.guard_type(tracer)
    if class_attribute(type(module), "__call__") is not nn.Module.__call__:
        return tracer.call_special(value, "__call__", args, kwargs)
    if module._compiled_call_impl is not None or _global_hooks():
        return tracer.call_python(nn.Module._call_impl, [value, *args], kwargs)
    if any(_has_hooks(tracer, value, table) for table in _HOOK_TABLES):
        return tracer.call_python(nn.Module._call_impl, [value, *args], kwargs)
    return tracer.getattr(value, "forward").call(tracer, args, kwargs)


def _has_hooks(tracer: Tracer, value: ModuleValue, table: str) -> bool:
    """Whether a module has hooks of a kind; that it has none is one cheap guard."""
    own = value.obj.__dict__
    if value.overlay or own.get(table):
        return tracer.getattr(value, table).truth(tracer)
    if value.source is not None:
        tracer.guard(guards.Length(ItemSource(InstanceDictSource(value.source), table), 0))
    return False


def _global_hooks() -> bool:
    module = nn.modules.module
    return bool(
        module._global_backward_pre_hooks
        or module._global_backward_hooks
        or module._global_forward_hooks
        or module._global_forward_pre_hooks
    )


__all__ = ["BoundMethod", "PartialValue", "builtins", "call_module", "call_object"]
