"""Making instances of the program's own classes, exceptions and named tuples."""

from __future__ import annotations

import collections
import enum
import functools
import inspect
import io
import sys
import types
from collections.abc import Iterable
from typing import Any

import torch

import fx_guards
from dynamo_capture.foundation.break_kinds import (
    C_OBJECT_MADE,
    CLASS_MADE,
    COMMUNICATION,
    CONTAINER_CLASS,
    NOT_IN_PYTHON,
)
from dynamo_capture.foundation.class_members import has_member, is_immutable, is_of_library, module_of
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import is_function_of_library
from dynamo_capture.frames.parameters import Parameters
from dynamo_capture.semantics.calls.builtins.slots import call_slot
from dynamo_capture.values import (
    NONE,
    Const,
    DictValue,
    ListValue,
    ObjectValue,
    PartialValue,
    SetValue,
    TensorValue,
    TupleValue,
    Value,
)
from dynamo_capture.values.base import Context
from dynamo_capture.values.containers.sequences import keeps_tuple_methods

_LOOKS_AT_ARGUMENTS = (UnicodeEncodeError, UnicodeDecodeError, UnicodeTranslateError, BaseExceptionGroup)
_BUFFERS = (io.StringIO, io.BytesIO)
_EXTENSIONS = frozenset(name for name in sys.stdlib_module_names if name.startswith("_"))
_OF_PROCESSES = ("torch._C._distributed_c10d", "torch.distributed.distributed_c10d")


def construct(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``cls(*args, **kwargs)`` for a class without a handler of its own."""
    cls: type = owner.value
    meta_call = tx.attributes.in_class(type(cls), "__call__")
    if isinstance(cls, enum.EnumMeta):
        _check_member(tx, cls, args)
        if hasattr(meta_call, "__module__") and not is_function_of_library(meta_call):
            raise GraphBreak(NOT_IN_PYTHON, f"the metaclass of {cls.__name__} is called")
    if isinstance(cls, enum.EnumMeta) or tx.calls.is_pure(cls) or _is_library_property(cls):
        return tx.calls.call_folded(cls, args, kwargs)
    if isinstance(meta_call, types.FunctionType):
        return tx.inliner.call_function(Const(meta_call), [owner, *args], kwargs)
    if isinstance(meta_call, type):  # as that of TypedDict, whose classes make plain dicts
        return tx.known(meta_call).call(tx, args, kwargs)
    return construct_plainly(tx, owner, args, kwargs)


def _check_member(tx: Context, cls: enum.EnumMeta, args: list[Value]) -> None:
    """A value that no member has is for ``_missing_``, which Python calls if the program has defined it."""
    missing = tx.attributes.in_class(cls, "_missing_")
    if not args or getattr(getattr(missing, "__func__", missing), "__module__", None) == enum.__name__:
        return
    asked = tx.calls.python_object(args[0])
    members: Iterable[Any] = cls.__members__.values()
    if not any(asked is member or asked == member.value for member in members):
        raise GraphBreak(NOT_IN_PYTHON, f"_missing_ of {cls.__name__} is called")


def _is_library_property(cls: type) -> bool:
    """Whether instances are descriptors of a library's own kind, such as lazy properties of distributions."""
    return issubclass(cls, property) and is_of_library(cls)


def construct_plainly(tx: Context, owner: Const, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """``type.__call__``: ``__new__``, then ``__init__``."""
    cls: type = owner.value
    maker = tx.attributes.in_class(cls, "__new__")
    if isinstance(maker, staticmethod):
        maker = maker.__func__
    if isinstance(maker, types.FunctionType):
        if (
            has_member(cls, "_fields")
            and issubclass(cls, tuple)
            and keeps_tuple_methods(cls)
            and "_make" in dir(cls)
            and _is_generated(maker)
        ):
            return _named_tuple(tx, owner, maker, args, kwargs)
        made = tx.inliner.call_function(Const(maker), [owner, *args], kwargs)
        if not issubclass(made.python_type(), cls):
            return made
    else:
        if issubclass(cls, tuple) and (len(args) > 1 or kwargs):
            tx.fold(lambda: tuple.__new__(cls, *[()] * len(args)))
        if (args or kwargs) and maker is object.__new__ and _is_heap(cls) and not _has_initializer(tx, cls):
            raise tx.raises(TypeError, f"{cls.__name__}() takes no arguments")
        made = _new_partial(tx, cls, args, kwargs) or new_instance(tx, cls, args)
    if isinstance(made, ObjectValue):
        _initialize(tx, made, args, kwargs)
    elif isinstance(made, TensorValue):
        _initialize_tensor(tx, made, args, kwargs)
    return made


def _has_initializer(tx: Context, cls: type) -> bool:
    return tx.attributes.in_class(cls, "__init__") is not object.__init__


def _initialize(tx: Context, made: ObjectValue, args: list[Value], kwargs: dict[str, Value]) -> None:
    initializer = tx.attributes.in_class(made.cls, "__init__")
    if isinstance(initializer, types.FunctionType):
        tx.frames[-1].made = made
        answer = tx.inliner.call_function(Const(initializer), [made, *args], kwargs)
        if not answer.stands_for(None):
            raise tx.raises(
                TypeError, f"__init__() should return None, not {answer.python_type().__name__!r}"
            )
        return
    call_slot(tx, made, initializer, args, kwargs)


def _initialize_tensor(tx: Context, made: TensorValue, args: list[Value], kwargs: dict[str, Value]) -> None:
    """Torch's own ``__init__`` of tensors does nothing."""
    initializer = tx.attributes.in_class(made.python_type(), "__init__")
    if isinstance(initializer, types.FunctionType):
        tx.calls.call_known(Const(initializer), [made, *args], kwargs)


def _new_partial(tx: Context, cls: type, args: list[Value], kwargs: dict[str, Value]) -> ObjectValue | None:
    """An instance of a subclass of ``functools.partial``, which holds what it calls in a place of its own."""
    if not args or not issubclass(cls, functools.partial) or cls.__new__ is not functools.partial.__new__:
        return None
    forbid_finalizer(tx, cls)
    made = ObjectValue(cls)
    made.base = tx.calls.call_known(Const(functools.partial), args, kwargs)
    return made


def held_partial(tx: Context, function: Value) -> PartialValue | None:
    """What a partial in C that is made of ``function`` calls itself: one without attributes is not kept."""
    held = function.base if isinstance(function, ObjectValue) else function
    if not isinstance(held, PartialValue) or held.attrs:
        return None
    if isinstance(function, ObjectValue):
        calls = tx.attributes.in_class(function.cls, "__call__")
        slots = [tx.attributes.in_class(function.cls, name) for name in function.attrs]
        if calls is not functools.partial.__call__ or not all(
            type(s) is types.MemberDescriptorType for s in slots
        ):
            return None
    return held


def new_instance(tx: Context, cls: type, args: list[Value]) -> Value:
    """``cls.__new__(cls)`` of a builtin base: an empty instance."""
    base = next(b for b in cls.__mro__ if not _is_heap(b))
    if inspect.isabstract(cls):
        tx.fold(lambda: object.__new__(cls))
    forbid_finalizer(tx, cls)
    if issubclass(cls, collections.defaultdict):
        raise GraphBreak(CONTAINER_CLASS, f"{cls.__qualname__} is a subclass of defaultdict")
    if issubclass(cls, torch.Tensor):
        return new_tensor(tx, cls, args)
    if issubclass(cls, type):
        raise GraphBreak(CLASS_MADE, "a class is made")
    if issubclass(cls, _LOOKS_AT_ARGUMENTS) or (issubclass(cls, (OSError, SyntaxError)) and len(args) > 1):
        raise GraphBreak(
            C_OBJECT_MADE, f"an instance of {cls.__qualname__} is made, which looks at its arguments"
        )
    if issubclass(cls, tuple):
        return new_tuple(cls, args[0].unpack(tx) if args else [])
    made = ObjectValue(cls)
    if issubclass(cls, BaseException):
        made.attrs["args"] = TupleValue(list(args))
    elif issubclass(cls, dict):
        made.base = DictValue({}, dict)
    elif issubclass(cls, list):
        made.base = ListValue([])
    elif issubclass(cls, set):
        made.base = SetValue({})
    elif not issubclass(cls, torch.autograd.Function) and (base is not object or not _is_made_by_object(cls)):
        if module_of(cls) in _OF_PROCESSES:
            raise GraphBreak(COMMUNICATION, f"other processes are spoken to, with {cls.__name__}")
        raise GraphBreak(
            C_OBJECT_MADE,
            f"an instance of {module_of(cls)}.{cls.__qualname__} is made, a class not written in Python",
        )
    return made


def new_tensor(tx: Context, cls: type, args: list[Value]) -> Value:
    """``torch.Tensor.__new__(cls, tensor)``: a view of a tensor, of that class."""
    given = tx.force(args[0]) if len(args) == 1 else None
    if not isinstance(given, TensorValue):
        raise GraphBreak(C_OBJECT_MADE, f"a tensor of the class {cls.__name__} is made")
    made: Value = tx.tensors.as_class(given, cls)
    return made


def forbid_finalizer(tx: Context, cls: type) -> None:
    """Break where ``cls`` has a ``__del__``: who goes on after a break would hold the instance until it returns.

    Of a buffer in memory nobody would notice."""
    if tx.attributes.in_class(cls, "__del__") is not fx_guards.ABSENT:
        what = f"an instance of {cls.__qualname__} is made, which has a finalizer"
        raise GraphBreak(C_OBJECT_MADE, what, as_written=cls not in _BUFFERS)


def new_tuple(cls: type, items: list[Value]) -> Value:
    """An instance of tuple or of a subclass."""
    if keeps_tuple_methods(cls):
        return TupleValue(list(items), cls)
    made = ObjectValue(cls)
    made.base = TupleValue(list(items))
    return made


def _is_heap(cls: type) -> bool:
    """Whether a class is written in Python: not in C, in a module of CPython's such as ``_random``."""
    return not is_immutable(cls) and module_of(cls) not in _EXTENSIONS


def _is_made_by_object(cls: type) -> bool:
    """Whether ``object.__new__`` can make an instance: classes made by libraries in C++ look like ones in Python."""
    try:
        object.__new__(cls)
    except TypeError:
        return False
    return True


def _is_generated(maker: Any) -> bool:
    return bool(maker.__module__ and maker.__module__.startswith("namedtuple_"))


def _named_tuple(tx: Context, owner: Const, maker: Any, args: list[Value], kwargs: dict[str, Value]) -> Value:
    cls = owner.value
    defaults = [tx.known(value) for value in maker.__defaults__ or ()]
    given = Parameters(maker.__code__, Const(maker), defaults, {}).bind(tx, [owner, *args], kwargs)
    return TupleValue(
        [given[name] for name in maker.__code__.co_varnames[1 : maker.__code__.co_argcount]], cls
    )


__all__ = ["NONE", "construct", "construct_plainly", "new_instance"]
