"""Python's special methods of ``torch.Tensor``, which a program may replace as it may any method.

A trace that relies on one is guarded on it. While one is replaced, nothing is compiled: the compiler, its libraries and
compiled programs use operators on tensors themselves.

    torch.Tensor.__add__ = watched_add      # programs that add tensors are not compiled as long as it is there
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

import guards
from dynamo_capture.operator_methods import BINARY, COMPARE, UNARY

if TYPE_CHECKING:
    from dynamo_capture.trace import Trace


def _table() -> dict[Callable[..., Any], tuple[str, ...]]:
    table: dict[Callable[..., Any], tuple[str, ...]] = {
        operator.getitem: ("__getitem__",),
        operator.setitem: ("__setitem__",),
        operator.contains: ("__contains__",),
    }
    for row in BINARY.values():
        names = [row.left, row.right] if row.plain is None else [row.left, BINARY[row.plain].left]
        table[row.function] = tuple(name for name in names if name is not None)
    table |= {function: (left, right) for function, left, right in COMPARE.values()}
    table |= {function: (name,) for function, name in UNARY.values()}
    return table


METHODS_OF = _table()
"""By operator function: the special methods that it calls on tensors."""
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
    (name, _OWN.get(name, guards.ABSENT))
    for name in sorted({*_OTHERS, *_READ, *(name for names in METHODS_OF.values() for name in names)})
)
"""What the class itself holds under these names at import; most are inherited."""


def replaced_method() -> str | None:
    """A special method, or an attribute that everybody reads, that is not torch's any more; None: all are."""
    absent = guards.ABSENT
    for name, value in _WATCHED:
        if _OWN.get(name, absent) is not value:
            return name
    return None


def rely_on(tx: Trace, *names: str) -> None:
    """The trace goes on as torch's own special methods of these names do."""
    for name in names:
        tx.attributes.in_class(torch.Tensor, name)
