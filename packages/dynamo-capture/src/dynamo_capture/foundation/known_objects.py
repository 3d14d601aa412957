"""Which objects are constants for the translator: immutable ones, and those whose identity is their meaning."""

from __future__ import annotations

import contextvars
import enum
import functools
import inspect
import logging
import operator
import re
import types
import typing
from collections import OrderedDict
from collections.abc import ItemsView
from typing import Any

import torch

from dynamo_capture._eval_frame import RegionFunction
from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.class_members import (
    class_of_program_answers,
    has_own_operators,
    is_immutable,
    runs_program_when_known,
)
from dynamo_capture.foundation.libraries.distributed_tensors import is_placement
from dynamo_capture.foundation.library_functions import LIBRARIES

PLAIN = (int, float, bool, str, bytes, complex, type(None), type(Ellipsis), type(NotImplemented))
BY_EQUALITY = (torch.dtype, torch.device, torch.layout, torch.memory_format, range, slice)
_TYPING_FORMS: tuple[Any, ...] = (
    typing.List, typing.List[int], typing.Optional[int], typing.Union, typing.Tuple, typing.Callable,  # noqa: UP006, UP045
    typing.Callable[[int], int], typing.Literal[1], typing.Annotated[int, 1], typing.NewType("_Int", int),
)  # fmt: skip
METHOD_IN_CPP: type = type(torch._C.Graph.__dict__["inputs"])
"""Of the methods of classes that libraries in C++ define."""
BY_IDENTITY = (
    METHOD_IN_CPP,
    types.ModuleType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    types.CodeType,
    property,
    staticmethod,
    classmethod,
    functools._lru_cache_wrapper,
    inspect.Signature,
    inspect.Parameter,
    torch.torch_version.TorchVersion,
    types.GenericAlias,
    types.UnionType,
    logging.Logger,
    re.Match,
    re.Pattern,
    torch._ops.OpOverload,
    torch._ops.OpOverloadPacket,
    torch._ops._OpNamespace,
    contextvars.ContextVar,
    typing.TypeVar,
    *dict.fromkeys(map(type, _TYPING_FORMS)),
    torch.jit.ScriptFunction,
    torch.finfo,
    torch.iinfo,
    functools.cached_property,
    operator.itemgetter,
    operator.attrgetter,
    operator.methodcaller,
    RegionFunction,
)
BUILTIN_METHODS = (types.BuiltinFunctionType, types.MethodWrapperType)
KINDS_BY_IDENTITY = (type, enum.Enum, logging.Logger, types.ModuleType, torch._ops.HigherOrderOperator)
"""As BY_IDENTITY, with their subclasses."""
_KNOWN = frozenset(
    (*PLAIN, *BY_EQUALITY, *BY_IDENTITY, *BUILTIN_METHODS, torch.Size, type, types.FunctionType)
)


def _ready_classes() -> None:
    """CPython 3.11 completes the classes of these iterators when it is first asked for an attribute of theirs: before,
    ``issubclass`` with an abstract class ends the process."""
    code = _ready_classes.__code__
    for iterator in (code.co_lines(), code.co_positions()):
        assert type(iterator).__mro__


_ready_classes()


def is_known(value: Any) -> bool:
    """Whether an object is a constant for the translator: immutable, or one whose identity is its meaning."""
    kind = type(value)
    if class_of_program_answers(value):
        return False
    if kind in _KNOWN:
        return True
    if issubclass(kind, KINDS_BY_IDENTITY):  # ``isinstance`` would ask the object for its ``__class__``
        return not is_answered_by_program(kind)
    if issubclass(kind, numpy_types.CONSTANTS):
        return numpy_types.is_constant(value)
    if kind is tuple or kind is frozenset:
        return all(map(is_known, value))
    return is_member_of_c(value) or is_placement(kind)


def is_answered_by_program(kind: type) -> bool:
    """Whether code of the program runs where an object that is known by its identity is looked up, compared or computed
    with: a constant is asked while code is compiled, and the program in every call."""
    own = not issubclass(kind, type) and has_own_operators(kind)
    return own or runs_program_when_known(kind)


def may_change_class(value: Any) -> bool:
    """Whether Python lets a program assign ``value.__class__``. Modules of torch and of Python are taken to keep it."""
    kind = type(value)
    if issubclass(kind, types.ModuleType):
        return str(vars(value).get("__name__")).partition(".")[0] not in LIBRARIES
    return not is_immutable(kind)


def is_member_of_c(value: Any) -> bool:
    """Whether a value is a member of an enumeration that C++ code declares through pybind11."""
    kind = type(value)
    return type(kind).__name__ == "pybind11_type" and hasattr(kind, "__members__")


_INSTANCE_METHOD = type(torch._C.FunctionSchema.__dict__["__str__"])


def in_c(function: Any) -> Any:
    """The function in C that an ``instancemethod`` of pybind11 stands for, which has no hash; another as it is."""
    while type(function) is _INSTANCE_METHOD:
        function = function.__func__
    return function


def is_plain_key(key: Any) -> bool:
    """Whether a key can be guarded and looked up as a constant."""
    kind = type(key)
    if kind is tuple:
        return all(map(is_plain_key, key))
    return kind in (str, int, bool, float, bytes, type(None)) or isinstance(key, type)


def items_in_order(real: dict[Any, Any]) -> ItemsView[Any, Any]:
    """A dict's keys and values, as its builtin class goes through them: an OrderedDict has an order of its own."""
    return OrderedDict.items(real) if isinstance(real, OrderedDict) else dict.items(real)
