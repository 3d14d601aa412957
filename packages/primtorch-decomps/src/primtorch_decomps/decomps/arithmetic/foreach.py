"""The ``_foreach`` family: operators over lists of tensors are the single operator on each, by one rule for all.

``_foreach_add.List(xs, ys, alpha=2)`` is ``[add.Tensor(x, y, alpha=2) for x, y in zip(xs, ys)]``. Names and overloads
are read off torch's registry; a member whose single operator has no decomposition stays a library call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from primtorch_decomps.prims import PrimTensor
from primtorch_decomps.registry import Decomposition, declared, decomposes

_PREFIX = "_foreach_"
_OVERLOADS = {
    "default": ("default",),
    "Scalar": ("Scalar", "Tensor_Scalar", "default", "Tensor"),
    "ScalarList": ("Scalar", "Tensor_Scalar", "default", "Tensor"),
    "List": ("Tensor", "Tensor_Tensor", "default"),
    "Tensor": ("Tensor",),
    "ScalarAndTensor": ("Scalar",),
}
"""By overload of the list operator: the single operator's, the first that has a decomposition."""
_BY_NAME = {"addcdiv": "value", "addcmul": "value"}
"""Single operators that take their last argument, a number, by name."""
_OF_NUMBER = {"maximum": "clamp_min", "minimum": "clamp_max"}
"""What the single operator is called where the other operand is a number."""


def _single(name: str, overload: str) -> Decomposition | None:
    """The decomposition of the operator on one tensor."""
    if overload.startswith("Scalar"):
        name = _OF_NUMBER.get(name, name)
    found = (declared(f"aten.{name}.{single}") for single in _OVERLOADS[overload])
    return next((entry for entry in found if entry is not None), None)


def _rows(args: tuple[Any, ...]) -> Iterator[list[Any]]:
    """The arguments for one tensor after the other; what is no list is the same for all."""
    length = len(next(arg for arg in args if isinstance(arg, (list, tuple))))
    for index in range(length):
        yield [arg[index] if isinstance(arg, (list, tuple)) else arg for arg in args]


def _over_lists(name: str, overload: str) -> Callable[..., Any]:
    def foreach(*args: Any, **kwargs: Any) -> Any:
        entry = _single(name, overload)
        if entry is None:
            return NotImplemented
        keyword = _BY_NAME.get(name)
        results: list[PrimTensor] = []
        for row in _rows(args):
            named = {**kwargs, keyword: row.pop()} if keyword is not None and len(row) > 3 else kwargs
            made = entry.function(*row, **named)
            if made is NotImplemented:
                return NotImplemented
            results.append(made)
        return results

    return foreach


def _norms(tensors: Any, ord: Any = 2, dtype: torch.dtype | None = None) -> Any:
    entry = declared("aten.linalg_vector_norm.default")
    return NotImplemented if entry is None else [entry.function(x, ord, dtype=dtype) for x in tensors]


def _declare_family() -> None:
    for full in sorted(torch._C._dispatch_get_all_op_names()):
        packet, _, overload = full.removeprefix("aten::").partition(".")
        overload = overload or "default"
        if not full.startswith(f"aten::{_PREFIX}") or packet.endswith("_") or overload not in _OVERLOADS:
            continue
        name = packet.removeprefix(_PREFIX)
        function = _norms if name == "norm" else _over_lists(name, overload)
        decomposes(f"aten.{packet}.{overload}")(function)


_declare_family()
