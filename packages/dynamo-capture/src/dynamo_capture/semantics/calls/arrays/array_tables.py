"""What is known of numpy's functions and arrays by name: which functions torch has alike, which methods write."""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable
from typing import Any

import torch

from dynamo_capture.foundation import numpy_types

_SAME_NAMES = (
    "sqrt", "exp", "exp2", "log", "log2", "log10", "log1p", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh",
    "arcsin", "arccos", "arctan", "floor", "ceil", "trunc", "square", "negative", "isnan", "isfinite", "isinf",
    "reciprocal", "rad2deg", "deg2rad", "absolute",
)  # fmt: skip
_OPERATOR_NAMES = {
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    "equal": operator.eq,
    "not_equal": operator.ne,
}
_OPERATORS: dict[Callable[..., Any], Callable[..., Any]] = {
    f: f
    for f in (
        operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le, operator.gt,
        operator.ge, operator.eq, operator.ne, operator.neg,
    )
}  # fmt: skip


def _functions() -> dict[Any, Any]:
    """Functions of numpy and those of torch that compute the same for floats of one dtype."""
    if not numpy_types.INSTALLED:
        return {}
    import numpy

    unary = {getattr(numpy, name): getattr(torch, name) for name in _SAME_NAMES}
    return (
        unary
        | {abs: torch.abs}
        | {getattr(numpy, name): function for name, function in _OPERATOR_NAMES.items()}
    )


SAME: dict[Any, Any] = {**_functions(), **_OPERATORS}
"""Functions of numpy, and operators, with those of torch that compute the same for floats of one dtype."""

WHOLE = frozenset(
    function
    for function, same in SAME.items()
    if same
    in (
        operator.add, operator.sub, operator.mul, operator.lt, operator.le, operator.gt, operator.ge, operator.eq,
        operator.ne,
    )
)  # fmt: skip
"""Those of them that are the same for integers of one dtype, too."""

CHANGING = frozenset(
    {
        "sort",
        "fill",
        "put",
        "resize",
        "partition",
        "itemset",
        "setflags",
        "setfield",
        "tofile",
        "dump",
        "byteswap",
    }
    | {
        f"__i{name}__"
        for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor")
    }
    | {"__setitem__", "__delitem__", "__setstate__"}
)
"""Methods that write to the array, or to a file."""


CALLED = (types.FunctionType, types.MethodType, functools.partial)
"""Classes of functions of the program."""

MOST_ROWS = 64
"""How many rows of an array a loop is unrolled over."""

PLAIN: dict[Any, Any] = {
    getattr(operator, f"i{name}"): getattr(operator, name)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift")
} | {operator.iand: operator.and_, operator.ior: operator.or_, operator.ixor: operator.xor}
"""The operator that computes what an operator in place writes."""


@functools.cache
def shown_parts() -> dict[str, Any]:
    """Attributes of arrays that are arrays, and functions that give the same."""
    import numpy

    return {"T": numpy.transpose, "real": numpy.real, "imag": numpy.imag}


@functools.cache
def facts_of_form() -> dict[Any, str]:
    """Functions of an array's form, and attributes that are the same."""
    if not numpy_types.INSTALLED:
        return {}
    import numpy

    return {numpy.shape: "shape", numpy.ndim: "ndim", numpy.size: "size"}


@functools.cache
def makers_alike() -> tuple[Any, ...]:
    """Functions that make an array of another one's form."""
    if not numpy_types.INSTALLED:
        return ()
    import numpy

    return (numpy.zeros_like, numpy.ones_like, numpy.full_like, numpy.empty_like)


@functools.cache
def asks_for_memory() -> tuple[Any, ...]:
    """Functions that tell whether arrays share memory, which copies of their numbers do not."""
    if not numpy_types.INSTALLED:
        return ()
    import numpy

    return (numpy.shares_memory, numpy.may_share_memory)
