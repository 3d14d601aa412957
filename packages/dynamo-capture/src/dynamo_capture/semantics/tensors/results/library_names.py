"""Names that functions of torch in Python read, when a graph calls one and whoever compiles the graph runs it.

    F.relu(x)        # reads torch.relu, which a program may replace:    torch.relu = watched

A graph that holds such a function is guarded on those names. While a program has put something else there, the function
is traced as the program's own code is, so that the graph holds what is there.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodDescriptorType, ModuleType
from typing import Any, NamedTuple

import torch

from dynamo_capture.bytecode.decoded import decoded
from dynamo_capture.foundation.break_kinds import FUNCTION_REPLACED
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.foundation.library_functions import is_function_of_library
from dynamo_capture.semantics.tensors.torchs_members import is_torchs
from dynamo_capture.values.base import Context
from fx_interface.composites import COMPOSITES
from fx_interface.source import ImportedModuleSource, InstanceDictSource, ItemSource

_IN_C = (BuiltinFunctionType, MethodDescriptorType)
_FUNCTIONS = (FunctionType, BuiltinFunctionType)
_AT_IMPORT = {
    module: dict(vars(module))
    for module in (torch, torch.functional, torch.nn.functional, torch._C._nn, torch._tensor)
}
"""What a program may replace before a graph is made for the first time."""
_ON_ATTRIBUTES = ("LOAD_ATTR", "LOAD_METHOD")
_REPLACED_BEFORE = object()
"""In place of a function of the program that was there when the names were first looked for."""
_ABOUT_OVERRIDES = ("handle_torch_function", "has_torch_function")


class _Name(NamedTuple):
    module: ModuleType
    name: str
    value: Any


class _Names(NamedTuple):
    of_modules: tuple[_Name, ...]
    of_tensors: tuple[str, ...]


def rely_on_names(tx: Context, function: Any) -> bool:
    """The graph calls ``function``: guard what it reads by name, if it is torch's and in Python. False: something of
    that has been replaced. The graph ends if what stands for ``function`` while a graph is traced would read that."""
    is_torchs = _is_function_of_torch(function)
    if not is_torchs and (type(function) not in _IN_C or function not in COMPOSITES):
        return True
    known: set[Any] = tx.attributes.relied_on
    if function in known:
        return True
    composite = COMPOSITES.get(function)
    if is_torchs and not _guard(tx, _names_read(function)):
        return False
    if composite is not None and not _guard(tx, _names_read(composite)):
        raise GraphBreak(
            FUNCTION_REPLACED,
            f"{function.__name__} is called, and a function that it stands on is not torch's",
        )
    known.add(function)
    return True


def _guard(tx: Context, names: _Names) -> bool:
    if any(vars(module).get(name) is not value for module, name, value in names.of_modules):
        return False
    if not all(
        is_torchs(torch.Tensor, name, tx.attributes.in_class(torch.Tensor, name)) for name in names.of_tensors
    ):
        return False
    known: set[Any] = tx.attributes.relied_on
    for one in names.of_modules:
        if one not in known:
            known.add(one)
            space = InstanceDictSource(ImportedModuleSource(one.module.__name__))
            tx.guards.is_object(ItemSource(space, one.name), one.value)
    return True


@functools.cache
def _names_read(function: FunctionType) -> _Names:
    """What it and the functions of torch that it calls read, in the order in which they are found."""
    of_modules: dict[tuple[str, str], _Name] = {}
    of_tensors: dict[str, None] = {}
    pending, seen = [function], {function}
    while pending:
        one = pending.pop()
        own = sys.modules.get(one.__module__)
        cells = [cell.cell_contents for cell in one.__closure__ or ()]
        is_module = own is not None and vars(own) is one.__globals__
        found = list(_read(one.__code__, own, of_tensors)) if own is not None and is_module else []
        for name in found:
            if name.value is not function:
                of_modules.setdefault((name.module.__name__, name.name), name)
        for value in (*cells, *(name.value for name in found)):
            if _is_function_of_torch(value) and value not in seen:
                seen.add(value)
                pending.append(value)
    return _Names(tuple(of_modules.values()), tuple(of_tensors))


def _read(code: CodeType, own: ModuleType, of_tensors: dict[str, None]) -> Iterator[_Name]:
    """The functions of torch's modules that a code object names, and what may be methods of tensors."""
    place: Any = None
    for instruction in decoded(code).body.instructions:
        name = instruction.argval
        if isinstance(name, CodeType):
            yield from _read(name, own, of_tensors)
        if instruction.opname == "LOAD_GLOBAL":
            place = own
        elif instruction.opname not in _ON_ATTRIBUTES:
            place = None
        if not isinstance(name, str) or instruction.opname not in ("LOAD_GLOBAL", *_ON_ATTRIBUTES):
            continue
        if not isinstance(place, ModuleType):
            if hasattr(torch.Tensor, name):
                of_tensors[name] = None
            continue
        module, value = place, _value_of(place, name)
        place = value
        if isinstance(value, _FUNCTIONS) and not name.startswith(_ABOUT_OVERRIDES) and _is_of_torch(module):
            is_own = type(value) is not FunctionType or is_function_of_library(value)
            yield _Name(module, name, value if is_own else _REPLACED_BEFORE)


def _value_of(module: ModuleType, name: str) -> Any:
    """What a module of torch has under a name, or had when this module was loaded."""
    known = _AT_IMPORT.get(module)
    return vars(module).get(name) if known is None or name not in known else known[name]


def _is_of_torch(module: ModuleType) -> bool:
    name = module.__name__
    return name.partition(".")[0] == "torch" and sys.modules.get(name) is module


def _is_function_of_torch(value: Any) -> bool:
    return (
        type(value) is FunctionType
        and is_function_of_library(value)
        and value.__module__.partition(".")[0] == "torch"
        and value.__module__ != "torch.overrides"
    )
