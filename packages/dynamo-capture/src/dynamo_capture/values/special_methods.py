"""Python's special methods of ``torch.Tensor``, which a program may replace as it may any method.

A trace that relies on one is guarded on it. While one is replaced, nothing is compiled: the compiler, its libraries and
compiled programs use operators on tensors themselves.

    torch.Tensor.__add__ = watched_add      # programs that add tensors are not compiled as long as it is there
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import torch

import fx_guards
from dynamo_capture.values import Value
from dynamo_capture.values.base import Context
from dynamo_capture.values.operator_methods import BINARY, COMPARE, UNARY


def _table() -> dict[Callable[..., Any], tuple[str, str]]:
    table: dict[Callable[..., Any], tuple[str, str]] = {
        operator.getitem: ("__getitem__", ""),
        operator.setitem: ("__setitem__", ""),
        operator.contains: ("__contains__", ""),
    }
    for row in BINARY.values():
        table[row.function] = row.left, (row if row.plain is None else BINARY[row.plain]).right or ""
    table |= {function: (left, right) for function, left, right in COMPARE.values()}
    table |= {function: (name, "") for function, name in UNARY.values()}
    return table


_METHODS_OF = _table()
"""By operator function: the special method of its first operand, and that of its second if only that is a tensor."""
_OTHERS = (
    "__len__",
    "__iter__",
    "__bool__",
    "__abs__",
    "__int__",
    "__float__",
    "__index__",
    "__torch_function__",
)
_READ = (
    "shape",
    "dtype",
    "device",
    "ndim",
    "requires_grad",
    "is_leaf",
    "grad",
    "size",
    "stride",
    "dim",
    "data_ptr",
)
_OWN = vars(torch.Tensor)
_WATCHED = tuple(
    (name, _OWN.get(name, fx_guards.ABSENT))
    for name in sorted(
        {*_OTHERS, *_READ, *(name for names in _METHODS_OF.values() for name in names if name)}
    )
)
"""What the class itself holds under these names at import; most are inherited."""


def replaced_method() -> str | None:
    """A special method, or an attribute that everybody reads, that is not torch's any more; None: all are."""
    absent = fx_guards.ABSENT
    for name, value in _WATCHED:
        if _OWN.get(name, absent) is not value:
            return name
    return None


def rely_on(tx: Context, name: str) -> None:
    """The trace goes on as torch's own special method of this name does."""
    tx.attributes.in_class(torch.Tensor, name)


def rely_on_operator(tx: Context, function: Callable[..., Any], args: Sequence[Value]) -> None:
    """As ``rely_on``, for the method that answers an operator; other functions have none."""
    names = _METHODS_OF.get(function)
    if names is not None and args:
        tx.attributes.in_class(
            torch.Tensor, names[bool(names[1]) and not issubclass(args[0].python_type(), torch.Tensor)]
        )
