"""Where zeros may become NaN: a gradient that does not arrive counts as zero, which infinity makes NaN.

In eager nothing is computed for such a result. A compiled backward computes for all; only calls in which nothing but
such zeros meets what the forward has saved can tell the difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from aot_autograd.recording.values import Value

_KEEP_ZERO = frozenset(
    {
        *(
            "where",
            "mm",
            "bmm",
            "addmm",
            "baddbmm",
            "convolution_backward",
            "masked_fill",
            "threshold_backward",
        ),
        *(
            "index",
            "index_put",
            "index_select",
            "gather",
            "scatter",
            "scatter_add",
            "embedding_dense_backward",
        ),
        *("select_scatter", "slice_scatter", "add", "sub", "cat", "copy", "max_pool2d_with_indices_backward"),
        "native_dropout_backward",
    }
)
"""Operators that make zeros of zeros, unless parameters are infinite, of which the forward makes nothing of use."""


def nan_from_zeros(
    live: Iterable[Value], under: Mapping[int, frozenset[int]], count: int
) -> tuple[tuple[int, ...], ...]:
    """Sets of tangents, by position, whose zeros alone meet saved values; the least of them. None for one tangent."""
    if count < 2:
        return ()
    found = {
        under[operand.number]
        for value in live
        if _name(value) not in _KEEP_ZERO and _meets_saved(value, under)
        for operand in value.operands
        if under.get(operand.number)
    }
    least = [some for some in found if len(some) < count and not any(other < some for other in found)]
    return tuple(sorted(tuple(sorted(some)) for some in least))


def _name(value: Value) -> str:
    packet = getattr(value.op, "overloadpacket", None)  # a layer of a recurrent network is a function
    return "" if packet is None else str(packet.__name__)


def _meets_saved(value: Value, under: Mapping[int, frozenset[int]]) -> bool:
    return bool(under.get(value.number)) and any(not under.get(operand.number) for operand in value.operands)
