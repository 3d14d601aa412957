"""What classes have under a name, without asking their metaclasses: those may have members, and a ``__getattr__``, of
their own, which Python does not look at when it looks for a special method of an instance.
"""

from __future__ import annotations

import abc
import enum
import functools
import types
from collections.abc import Iterable
from typing import Any

import torch

from dynamo_capture.foundation.library_functions import LIBRARIES

_ABSENT: Any = object()
_bases: Any = type.__dict__["__mro__"].__get__
_names: Any = type.__dict__["__dict__"].__get__
_weak_offset: Any = type.__dict__["__weakrefoffset__"].__get__
flags_of: Any = type.__dict__["__flags__"].__get__
CLASS_OF_OBJECTS: Any = object.__dict__["__class__"]
_module_of: Any = type.__dict__["__module__"].__get__
name_of: Any = type.__dict__["__qualname__"].__get__
_HEAP_TYPE = 1 << 9
_IMMUTABLE_TYPE = 1 << 8


def has_member(cls: type, name: str) -> bool:
    """Whether a class of the method resolution order has this name."""
    return any(name in _names(base) for base in _bases(cls))


def member(cls: type, name: str, default: Any = None) -> Any:
    """What the first class of the method resolution order has under this name, as it lies there."""
    for base in _bases(cls):
        found = _names(base).get(name, _ABSENT)
        if found is not _ABSENT:
            return found
    return default


def has_weak_references(cls: type) -> bool:
    """Whether instances may be referred to weakly."""
    return bool(_weak_offset(cls))


def is_subtype(cls: type, base: type) -> bool:
    """Whether a class inherits from another one, as C asks: a ``__subclasscheck__`` is not."""
    return is_one_of(base, _bases(cls))


def is_one_of(cls: type, classes: Iterable[type]) -> bool:
    """Whether a class is among others, by identity: ``in`` asks its metaclass's ``__eq__``."""
    return any(cls is kind for kind in classes)


def is_key_by_identity(cls: type) -> bool:
    """Whether instances are equal to themselves alone, and their hash runs no code of the program."""
    hashes = member(cls, "__hash__")
    return member(cls, "__eq__") is object.__eq__ and (
        hashes is object.__hash__ or hashes is enum.Enum.__hash__
    )


def runs_program(cls: type) -> bool:
    """Whether any read of an instance's attribute, even of ``__class__``, runs a ``__getattribute__`` in Python."""
    found = member(cls, "__getattribute__")
    return type(found) is not types.WrapperDescriptorType


_OF_LIBRARIES = frozenset({type, abc.ABCMeta, enum.EnumMeta, type(torch.Tensor), type(torch.nn.Parameter)})
"""Metaclasses of which no member runs code of the program."""
_COMPARED = ("__getattribute__", "__eq__", "__hash__")


def runs_program_when_known(cls: type) -> bool:
    """Whether an instance, a class or a module say, cannot be taken for what it is without running code of the program:
    whoever looks it up in a table, compares it or reads what C keeps in it (``__mro__``, ``__flags__``, ``__dict__``)
    asks its class."""
    if type(cls) is type and cls in _OF_LIBRARIES:
        return False
    bases = _bases(cls)
    facts = {name for base in bases if not is_heap_type(base) for name in _kept_in_c(base)}
    return any(_is_of_program(bases, name) for name in (*_COMPARED, *facts))


_ARITHMETIC = (
    *(
        "add",
        "sub",
        "mul",
        "truediv",
        "floordiv",
        "mod",
        "pow",
        "matmul",
        "lshift",
        "rshift",
        "and",
        "or",
        "xor",
    ),
    "divmod",
)
_OPERATORS = frozenset(
    f"__{name}__"
    for name in (
        *(prefix + name for prefix in ("", "r", "i") for name in _ARITHMETIC),
        *(
            "neg",
            "pos",
            "abs",
            "invert",
            "index",
            "int",
            "float",
            "complex",
            "round",
            "trunc",
            "floor",
            "ceil",
        ),
        *("len", "length_hint", "reversed"),
    )
)


def has_own_operators(cls: type) -> bool:
    """Whether the program says what operators and conversions to numbers make of an instance. Flags have copies of
    what their library's class has."""
    bases = _bases(cls)
    libraries = [_names(base) for base in bases if is_of_library(base)]
    return any(
        all(members.get(name) is not _names(base)[name] for members in libraries)
        for base in bases
        if is_heap_type(base) and not is_of_library(base)
        for name in _OPERATORS.intersection(_names(base))
    )


_KEPT_IN_C = (types.GetSetDescriptorType, types.MemberDescriptorType)


@functools.cache
def _kept_in_c(cls: type) -> tuple[str, ...]:
    """What a class in C, of which nothing changes, says that C keeps in an instance."""
    return tuple([name for name, found in _names(cls).items() if type(found) in _KEPT_IN_C])


def _is_of_program(bases: tuple[type, ...], name: str) -> bool:
    """Whether the first class that has a name is the program's, and what it has is code."""
    base = next(base for base in bases if name in _names(base))
    found = _names(base)[name]
    if (
        type(found) in (types.WrapperDescriptorType, *_KEPT_IN_C)
        or not is_heap_type(base)
        or is_of_library(base)
    ):
        return False
    return name in _COMPARED or has_member(type(found), "__get__")


def is_looked_up_by_program(cls: type) -> bool:
    """Whether code of the program runs where Python code asks an instance for an attribute that it may not have, or
    compares it."""
    return runs_program_when_known(cls) or _answers_missing(cls)


def runs_program_when_missing(cls: type) -> bool:
    """Whether code of the program runs where an instance is asked for an attribute that it does not have."""
    return runs_program(cls) or _answers_missing(cls)


def _answers_missing(cls: type) -> bool:
    return has_member(cls, "__getattr__") and _is_of_program(_bases(cls), "__getattr__")


def hashes_by_program(cls: type) -> bool:
    """Whether an instance's hash runs code of the program."""
    return _is_of_program(_bases(cls), "__hash__")


def module_of(cls: type) -> str:
    """The name of a class's module; empty where the class has something else under ``__module__``."""
    found = _module_of(cls)
    return found if type(found) is str else ""


def is_of_library(cls: type) -> bool:
    """Whether a class is torch's or Python's own."""
    return module_of(cls).partition(".")[0] in LIBRARIES


def class_of_program_answers(value: Any) -> bool:
    """Whether the class of a value cannot be asked for anything without running code of the program."""
    meta = type(type(value))
    return meta is not type and runs_program_when_known(meta)


def is_heap_type(cls: type) -> bool:
    """Whether a class was made by a ``class`` statement, or as if by one."""
    return bool(flags_of(cls) & _HEAP_TYPE)


def is_immutable(cls: type) -> bool:
    """Whether Python forbids to change the class."""
    flags = flags_of(cls)
    return not flags & _HEAP_TYPE or bool(flags & _IMMUTABLE_TYPE)
