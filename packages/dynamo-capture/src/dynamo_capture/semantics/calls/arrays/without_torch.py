"""Functions that compute with arrays of numpy and numbers, and have nothing of torch.

    def coefficient(t, i, j):               # t: an array of 7 numbers
        return integrate.quad(lambda tau: ..., t[i], t[i + 1])[0]

Where one of them is traced as a part of another function and a graph ends in it, it is called instead: its frame is
weighed alone, and mostly left to Python, with all that would have begun anew behind each break in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any, Final

import torch

from dynamo_capture.foundation import numpy_types
from dynamo_capture.foundation.break_kinds import CONTENT_DECIDES
from dynamo_capture.foundation.errors import GraphBreak
from dynamo_capture.values import Const, FunctionValue, Lazy, ListValue, SymValue, TupleValue, Value
from dynamo_capture.values.tensors.array import ArrayValue

_PLAIN: Final = (int, float, complex, str, bytes, type(None), slice, range)
_CODE: Final = (FunctionType, BuiltinFunctionType, type, ModuleType)
_ITEMS: Final = 16
"""Lists with more items are not looked through."""


def names_no_torch(code: CodeType, scope: Mapping[str, Any]) -> bool:
    """Whether none of the names that code uses is ``torch``, or a tensor, module or function of torch."""
    names = list(_names(code))
    return "torch" not in names and all(has_no_torch(scope[name]) for name in names if name in scope)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def has_no_torch(value: Any, depth: int = 2) -> bool:
    """Whether an object is an array, a number, a function or a short list of them, and nothing of torch."""
    if isinstance(value, _CODE):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        return value is not torch and not (isinstance(name, str) and name.partition(".")[0] == "torch")
    if type(value) in (list, tuple) and depth > 0 and len(value) <= _ITEMS:
        return all(has_no_torch(item, depth - 1) for item in value)
    return isinstance(value, (*_PLAIN, *numpy_types.ARRAYS, *numpy_types.SCALARS))


def note_function(reason: GraphBreak, code: CodeType, scope: Mapping[str, Any], values: list[Value]) -> None:
    """A graph ends in a function that was called with ``values``: whether it is one of arrays is noted in the reason;
    the outermost one counts."""
    if _are_of_arrays(values) and names_no_torch(code, scope):
        reason.apart = code


def check_not_apart(code: CodeType, scope: Mapping[str, Any], values: list[Value]) -> None:
    """A graph break at a call of a function, in which one has ended before, if it is one of arrays."""
    if _are_of_arrays(values) and names_no_torch(code, scope):
        raise GraphBreak(CONTENT_DECIDES, f"{code.co_qualname} computes with arrays whose content decides")


def _are_of_arrays(values: list[Value]) -> bool:
    return any(map(_is_array, values)) and all(map(_is_plain, values))


def _is_array(value: Value) -> bool:
    if isinstance(value, Lazy):
        return isinstance(value.real, numpy_types.ARRAYS)
    return isinstance(value, ArrayValue)


def _is_plain(value: Value, depth: int = 2) -> bool:
    if isinstance(value, Lazy):
        return has_no_torch(value.real, depth)
    if isinstance(value, (ListValue, TupleValue)):
        items = value.items
        return depth > 0 and len(items) <= _ITEMS and all(_is_plain(item, depth - 1) for item in items)
    if isinstance(value, (ArrayValue, FunctionValue, SymValue)):
        return True
    return isinstance(value, Const) and (value.is_open or has_no_torch(value.value, depth))
