"""The operators whose formulas give eager's results to the last bit: those that round correctly, once, or not at all.

IEEE 754 fixes sums, differences, products and quotients of two numbers, and comparisons, selections, conversions and
moves of memory have nothing to round. Everything else (``exp``, ``softmax``, sums over a dimension, even ``sqrt``, for
which torch calls a library that does not round correctly) depends on an algorithm, and is left to torch's own kernel by
whoever wants eager's bits (``STRICT``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch._ops import OpOverload

from primtorch_decomps.registry import DECOMPOSITIONS, OperatorTable

FAMILIES = frozenset(
    (
        "comparison",
        "conversion",
        "diagonals",
        "embedding",
        "factories",
        "indexing",
        "joining",
        "rearranging",
        "view_copies",
        "views",
    )
)
"""Families of decompositions that move, compare or make values, but never round."""

_ADDING = frozenset(("diagonals.trace.default",))
"""Members of those families that add elements up."""

ROUNDED_ONCE = frozenset(
    (
        *("add.Tensor", "add.Scalar", "sub.Tensor", "sub.Scalar", "rsub.Tensor", "rsub.Scalar"),
        *("mul.Tensor", "mul.Scalar", "div.Tensor", "div.Scalar", "true_divide.Tensor"),
    )
)
"""Arithmetic that IEEE 754 fixes, where eager's kernel does it in one rounding (see ``_has_one_rounding``)."""

EXACT = frozenset(
    (
        *("maximum.default", "minimum.default", "fmax.default", "fmin.default", "heaviside.default"),
        *("bitwise_and.Tensor", "bitwise_and.Scalar", "bitwise_or.Tensor", "bitwise_or.Scalar"),
        *("bitwise_xor.Tensor", "bitwise_xor.Scalar", "bitwise_not.default", "logical_not.default"),
        *("relu.default", "relu6.default", "hardtanh.default", "threshold.default", "hardshrink.default"),
        *("threshold_backward.default", "hardtanh_backward.default", "hardshrink_backward.default"),
        *("where.self", "where.ScalarSelf", "where.ScalarOther", "where.Scalar"),
        *("masked_fill.Scalar", "masked_fill.Tensor", "clamp.default", "clamp.Tensor"),
        *("clamp_min.default", "clamp_min.Tensor", "clamp_max.default", "clamp_max.Tensor"),
        *("floor.default", "ceil.default", "trunc.default", "round.default", "neg.default", "abs.default"),
        *("sign.default", "sgn.default", "positive.default", "isnan.default", "isinf.default"),
        *("isposinf.default", "isneginf.default", "amax.default", "amin.default", "max.default"),
        *("min.default", "aminmax.default", "argmax.default", "argmin.default", "max.dim", "min.dim"),
        *("any.default", "any.dim", "any.dims", "all.default", "all.dim", "all.dims"),
        *("_is_all_true.default", "_is_any_true.default"),
    )
)
"""Operators that choose among their operands' values, or change nothing but their sign."""

_HALVES = (torch.float16, torch.bfloat16)


def exact_table(table: Mapping[OpOverload, Any]) -> OperatorTable:
    """Those entries of ``table`` that give eager's bits."""
    kept: dict[OpOverload, Any] = {}
    for op, entry in table.items():
        name = str(op).removeprefix("aten.")
        if name in ROUNDED_ONCE:
            kept[op] = replace(entry, function=_where_one_rounding(entry.function))
        elif name in EXACT or (entry.family in FAMILIES and f"{entry.family}.{name}" not in _ADDING):
            kept[op] = entry
    return OperatorTable(kept)


def _where_one_rounding(function: Callable[..., Any]) -> Callable[..., Any]:
    """``function``, declining calls that eager rounds in another way."""

    @functools.wraps(function)
    def decide(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs) if _has_one_rounding(args, kwargs) else NotImplemented

    return decide


def _has_one_rounding(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Not with a factor ``alpha``, which eager contracts; not with a half type and a number, nor among other dtypes,
    where it depends on the kernel whether the number is rounded first."""
    if kwargs.get("alpha", 1) != 1 or len(args) > 2:
        return False
    dtypes = [getattr(arg, "dtype", None) for arg in args]
    return len(set(dtypes)) == 1 or not any(dtype in _HALVES for dtype in dtypes)


STRICT: OperatorTable = exact_table(DECOMPOSITIONS)
"""The decompositions that give eager's results to the last bit on a CPU; other operators stay torch's own kernels."""
